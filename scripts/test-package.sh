#!/usr/bin/env bash
# test-package.sh [TARBALL]: installs the packed tarball in an empty project as a user would,
# without a compiler on the PATH, and runs scripts that use it.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tarball=$(realpath "${1:-$(bash scripts/pack.sh "$work/packed")}")
npx --no-install publint --strict "$tarball"
npx --no-install attw "$tarball" --profile esm-only
tar tzf "$tarball" | sed 's/^package\///' >"$work/contents"
if grep -vE '^examples/(nats/[a-z]+\.conf|first/main\.mjs|(server|native-c)/[A-Za-z.-]+)$' "$work/contents" | grep -E '^(test|\.ci|examples|bench|scripts|node_modules|binding\.gyp)'; then
  echo 'the tarball contains files that no user needs (listed above)' >&2
  exit 1
fi
for needed in dist/cli/main.js dist/cli/probe-process.js dist/cli/self-test-worker.js \
  dist/allstop-worker.js dist/testing/index.js CMakeLists.txt docs/nats.md examples/nats/server.conf examples/first/main.mjs \
  rust/allstop/src/lib.rs templates/cpp/addon.cc native/cmake/allstopConfig.cmake native/include/allstop/allstop_queue.h; do
  grep -qx "$needed" "$work/contents" || { echo "the tarball lacks $needed" >&2; exit 1; }
done

# The PATH has only Node and a shell: no compiler, no make, no python.
mkdir "$work/bin" "$work/project"
for tool in node npm sh env; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
cd "$work/project"
echo '{ "private": true, "type": "module" }' >package.json
PATH="$work/bin" npm install --silent --no-audit --no-fund "$tarball"
[ ! -e node_modules/allstop/binding.gyp ]
cp "$root"/test/package/consumer/* .
for script in import.mjs queues.mjs cluster.mjs testing.mjs require.cjs; do
  echo "node $script"
  "$(command -v timeout)" 60 env PATH="$work/bin" node "$script"
done
[ "$(PATH="$work/bin" npm exec --silent -- allstop include)" = "$PWD/node_modules/allstop/native/include" ]
PATH="$work/bin" npm exec --silent -- allstop doctor
node "$root/scripts/test-types.mjs" "$PWD"
size=$(stat -c %s "$tarball")
# The goal is 1.5 MB; the eight binaries alone are 1.88 MB. This keeps it from growing.
[ "$size" -le 2700000 ] || { echo "the tarball is larger than 2.7 MB: $size bytes" >&2; exit 1; }
echo "the tarball: $size bytes, $(wc -l <"$work/contents") files"
