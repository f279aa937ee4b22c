#!/usr/bin/env bash
# pack.sh FOLDER: packs the package into FOLDER, which is created if needed, and prints the path of
# the tarball.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
npm pack --silent --pack-destination "$1" >/dev/null
echo "$1"/allstop-*.tgz
