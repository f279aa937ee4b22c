#!/usr/bin/env bash
# pack.sh FOLDER [--all]: packs the package into FOLDER, which is created if needed, and prints the
# path of the tarball. It has the binary of this machine, and the others that are in prebuilds/;
# with --all those that can be built on Linux.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
node scripts/compile.mjs ts
node scripts/prebuild.mjs "${@:2}" >&2
npm pack --silent --ignore-scripts --pack-destination "$1" >/dev/null
echo "$1"/allstop-*.tgz
