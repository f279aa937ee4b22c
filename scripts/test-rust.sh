#!/usr/bin/env bash
# test-rust.sh [TARBALL]: builds the crates of rust/ and runs the scenarios of test/addons/rust.mjs
# with an addon in Rust against the packed tarball. Without cargo (Debian: cargo, or rustup) it is
# skipped. The crates have no dependencies, so nothing is downloaded.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v cargo >/dev/null; then
  echo 'SKIPPED: there is no cargo, so the crates of rust/ are not tested (apt-get install cargo)'
  exit
fi
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tarball=$(realpath "${1:-$(bash scripts/pack.sh "$work")}")
export CARGO_TARGET_DIR=$root/build-rust CARGO_NET_OFFLINE=true

cd rust
cargo build --release --quiet --locked
cargo test --quiet --locked -p allstop -p allstop-sys >"$work/tested" 2>&1 || { cat "$work/tested"; exit 1; }
if cargo clippy --version >/dev/null 2>&1; then
  cargo clippy --quiet --locked --all-targets -- -D warnings
fi

cd "$work"
echo '{ "private": true }' >package.json
npm install --silent --offline --ignore-scripts --no-audit --no-fund "$tarball"
cp "$root/test/addons/scenarios.mjs" "$root/test/addons/rust.mjs" .
library=$(find "$CARGO_TARGET_DIR/release" -maxdepth 1 -name '*allstop_test_addon.so' -o -maxdepth 1 -name '*allstop_test_addon.dylib')
cp "$library" addon.node
timeout 120 node rust.mjs
