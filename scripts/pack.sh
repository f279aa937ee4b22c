#!/usr/bin/env bash
# pack.sh FOLDER: packs the package into the folder, which it makes if there is none, and
# prints the tarball's path.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p "$1"
npm pack --silent --pack-destination "$1" >/dev/null
echo "$1"/allstop-*.tgz
