#!/usr/bin/env bash
# test-packaging.sh FOLDER: builds programs without Node on the package that FOLDER has (the unpacked
# tarball), in each way that docs/native-addons.md names: FetchContent and add_subdirectory, and
# `cmake --install` for find_package and pkg-config. Debug builds, which take half as long.
set -euo pipefail
cd "$(dirname "$0")/.."
package=$(realpath "$1")
tests=$PWD/test/package
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
debug=(-DCMAKE_BUILD_TYPE=Debug)

quietly() { # Runs a command and prints its output only if it fails.
  local said
  said=$("$@" 2>&1) || { local status=$?; printf '%s\n' "$said"; return "$status"; }
}

echo '=== FetchContent'
quietly cmake -S "$tests/fetched" -B "$work/fetched" "${debug[@]}" -DALLSTOP_SOURCE="$package"
quietly cmake --build "$work/fetched" -j 2
"$work/fetched/main"

echo '=== cmake --install'
quietly cmake -S "$package" -B "$work/build" "${debug[@]}" -DCMAKE_INSTALL_PREFIX="$work/built for"
quietly cmake --build "$work/build" -j 2
quietly cmake --install "$work/build" --prefix "$work/installed to" # another place: it can be moved
cp -r "$tests/installed" "$work/program"
cmake -S "$work/program" -B "$work/program/build" -DCMAKE_PREFIX_PATH="$work/installed to" \
  >"$work/configured" 2>&1 || { cat "$work/configured"; exit 1; }
quietly cmake --build "$work/program/build"
"$work/program/build/main"

echo '=== pkg-config'
if ! command -v pkg-config >/dev/null; then
  echo 'skipped: there is no pkg-config'
  exit
fi
PKG_CONFIG_PATH=$(dirname "$(find "$work/installed to" -name allstop.pc)")
export PKG_CONFIG_PATH
# Its paths may have a space, which pkg-config escapes for a shell.
eval "cc -std=c11 -o '$work/main' '$work/program/main.c' $(pkg-config --static --cflags --libs allstop)"
"$work/main"
