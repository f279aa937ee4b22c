#!/usr/bin/env bash
# test-templates.sh TARBALL [TEMPLATE...]: makes an addon of each template (or of those named) by the
# packed `allstop new-addon`, in an empty folder, and builds, starts and checks it as its user would.
# Checks it on the Nodes of the matrix, too, if they are there (build-runtimes/), and on those of
# ALLSTOP_NODES. Without cargo (Debian: cargo, or rustup) the template rust is skipped.
set -euo pipefail
tarball=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- cpp c cmake rust
shopt -s nullglob
nodes=()
for node in "$(dirname "$0")"/../build-runtimes/node_modules/n2[246]/bin/node ${ALLSTOP_NODES-}; do
  nodes+=("$(realpath --canonicalize-existing "$node")")
done
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

for template in "$@"; do
  if [ "$template" = rust ] && ! command -v cargo >/dev/null; then
    echo 'SKIPPED: there is no cargo for the template rust'
    continue
  fi
  echo "=== $template"
  # Then the library is in another folder.
  [ "$template" != rust ] || export CARGO_BUILD_TARGET=$(rustc -vV | sed -n 's/^host: //p')
  npx --yes --offline --package "$tarball" allstop new-addon "my $template" --template "$template" >made
  cd "my $template"
  start=$SECONDS
  npm install --silent --no-audit --no-fund "$tarball"
  [ ! -e build ] # "gypfile": false, or npm would have compiled with a node-gyp of its own
  CARGO_NET_OFFLINE=true npm run --silent build >"$work/built" 2>&1 || { cat "$work/built"; exit 1; }
  [[ "$(npm start --silent)" =~ ^joined\ after\ [1-9][0-9]*\ rounds$ ]]
  npm run --silent check
  for node in ${nodes[@]+"${nodes[@]}"}; do
    "$node" node_modules/allstop/dist/cli/main.js check-addon build/Release/addon.node \
      --exercise exercise.mjs
  done
  echo "$template: installed, built, started and checked in $((SECONDS - start)) s"
  cd ..
done
