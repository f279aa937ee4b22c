#!/bin/bash
# Usage: nats-server.sh
# Prints the path of a nats-server (2.10 or newer) for the tests and benchmarks: the one that
# NATS_SERVER_BIN names, the one on the PATH, or one that this script puts into build-nats/. The
# nats-server of Debian bookworm is too old: the script takes the package of the next release from
# the mirror that apt uses, and unpacks it without installing it or touching apt's own sources.
set -euo pipefail

fail() { # WHY: in one line, which `npm test` repeats
  echo "There is no nats-server 2.10 or newer: $1. Install one (https://nats.io/download), or set NATS_SERVER_BIN to its path." >&2
  exit 1
}

is_new_enough() {
  local version
  version=$("$1" --version 2>/dev/null | sed -n 's/^nats-server: v//p') || return 1
  [ "$(printf '2.10.0\n%s\n' "$version" | sort -V | head -1)" = 2.10.0 ]
}

if [ -n "${NATS_SERVER_BIN:-}" ]; then
  is_new_enough "$NATS_SERVER_BIN" || fail "NATS_SERVER_BIN=$NATS_SERVER_BIN is not one"
  echo "$NATS_SERVER_BIN"
  exit
fi
there=$(command -v nats-server || true)
if [ -n "$there" ] && is_new_enough "$there"; then echo "$there"; exit; fi

dir="$(cd "$(dirname "$0")/.." && pwd)/build-nats"
if [ -x "$dir/nats-server" ] && is_new_enough "$dir/nats-server"; then echo "$dir/nats-server"; exit; fi
command -v apt-get >/dev/null || fail 'it is not on the PATH, and this machine has no apt-get to fetch it with'
suite=${NATS_DEBIAN_SUITE:-trixie}
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -v security | head -1 || true)
[ -n "$mirror" ] || fail 'it is not on the PATH, and apt-get has no sources to fetch it from'
echo "Fetching nats-server from $mirror (once, about 10 s) ..." >&2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$work"/lists/partial "$work"/cache/archives/partial "$dir"
echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main" >"$work/sources.list"
cat >"$work/apt.conf" <<END
Dir::State::lists "$work/lists";
Dir::Cache "$work/cache";
Dir::Etc::sourcelist "$work/sources.list";
Dir::Etc::sourceparts "-";
APT::Sandbox::User "root";
END
export APT_CONFIG=$work/apt.conf
{ apt-get -qq update && cd "$work" && apt-get -qq download nats-server && dpkg -x nats-server_*.deb root; } >&2 ||
  fail "it is not on the PATH, and could not be fetched from $mirror"
install -m 755 "$(find "$work/root" -name nats-server -type f -perm -u+x | head -1)" "$dir/nats-server"
echo "$dir/nats-server"
