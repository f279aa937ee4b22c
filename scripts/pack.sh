#!/usr/bin/env bash
# pack.sh FOLDER: packs the package into the folder and prints the tarball's path.
set -euo pipefail
cd "$(dirname "$0")/.."
npm pack --silent --pack-destination "$1" >/dev/null
echo "$1"/allstop-*.tgz
