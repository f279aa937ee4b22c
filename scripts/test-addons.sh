#!/usr/bin/env bash
# test-addons.sh [TARBALL]: builds the addons of examples/ as a third party would, outside of the
# repository and against the packed tarball, and runs them. The build tools come from the
# repository's node_modules, so that nothing has to be downloaded.
set -euo pipefail
cd "$(dirname "$0")/.."
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tarball=$(realpath "${1:-$(bash scripts/pack.sh "$work")}")

# Use the headers of the installed Node, so that node-gyp downloads none.
prefix=$(node -p 'path.resolve(process.execPath, "../..")')
if [ -e "$prefix/include/node/node_api.h" ]; then
  export npm_config_nodedir=${npm_config_nodedir:-$prefix}
fi

install() { # FOLDER PACKAGE...
  local folder=$1
  shift
  (cd "$folder" && npm install --silent --offline --ignore-scripts --no-audit --no-fund "$@")
}

project() { # EXAMPLE PACKAGE...
  local name=$1
  shift
  echo "=== $name"
  mkdir -p "$work/third party/$name" # a path with a space, as some users have
  cd "$work/third party/$name"
  git -C "$root" ls-files --cached --others --exclude-standard "examples/$name" |
    while read -r file; do cp "$root/$file" .; done
  cp "$root/test/addons/scenarios.mjs" .
  cp "$root/test/addons/$name.mjs" check.mjs
  npm pkg delete devDependencies # the programs of these packages are on the PATH already
  install . "$tarball" "$@"
}

PATH=$root/node_modules/.bin:$PATH

project native-c
node-gyp rebuild --silent
timeout 100 node check.mjs
timeout 20 node main.mjs >/dev/null
addon=$PWD/build/Release/reader.node

project native-worker "$root/node_modules/node-addon-api"
cmake-js compile --silent
timeout 100 node check.mjs
timeout 60 node main.mjs >/dev/null
cp "$root/test/addons/two-addons.mjs" .
timeout 30 node two-addons.mjs "$addon"
tsc --noEmit --strict --module nodenext --target es2022 --lib es2023,esnext.disposable \
  --typeRoots "$root/node_modules/@types" --types node index.d.mts

echo '=== wrong values, with and without C++ exceptions'
mkdir "$work/refusals"
cd "$work/refusals"
cp "$root/test/addons/refusals/"* .
install . "$tarball" "$root/node_modules/node-addon-api"
node-gyp rebuild --silent
timeout 60 node check.mjs

echo '=== an addon with a stop flag alone, without allstop at run time'
mkdir "$work/signal (only) \$1"
cd "$work/signal (only) \$1"
cp "$root/test/addons/signal-only/"* .
install . --save-dev "$tarball"
node-gyp rebuild --silent
npm prune --silent --omit=dev --offline --no-audit --no-fund
timeout 60 node check.mjs

echo '=== a CMake project of C alone'
cd "$work/third party/native-worker"
mkdir "$work/c-alone"
cp "$root/test/package/c-alone/"* "$work/c-alone"
cmake -S "$work/c-alone" -B "$work/c-alone/build" \
  -Dallstop_DIR="$(npx allstop cmake)" >/dev/null
cmake --build "$work/c-alone/build" >/dev/null
"$work/c-alone/build/main"

echo '=== two copies'
cd "$work"
for copy in a b; do
  mkdir $copy
  echo '{ "private": true }' >$copy/package.json
  install $copy "$tarball"
done
cp "$root/test/addons/two-copies.mjs" .
timeout 30 node two-copies.mjs "$addon"

bash "$root/scripts/test-packaging.sh" "$work/a/node_modules/allstop"
