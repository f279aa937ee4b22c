#!/usr/bin/env bash
# lint-native.sh [--analyze]: checks the format of the C++ and C sources and runs clang-tidy. Needs
# clang-format and clang-tidy (Debian packages of the same names). --analyze: with clang's analyzer,
# which takes many times as long as all other checks together; `npm run nightly` runs it.
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(git ls-files '*.cc' '*.c' '*.h' '*.hpp')
clang-format --dry-run --Werror "${sources[@]}"

# Each module (addon, program) that includes the C++ header must have its own function that describes
# a Napi::Error. If the symbol were visible, the dynamic linker could merge those of all modules.
module=$(mktemp)
trap 'rm -f "$module"' EXIT
for compiler in g++ clang++; do
  "$compiler" -std=c++17 -fvisibility=default -fPIC -shared -I native/include -o "$module" -x c++ - <<'END'
#include "allstop/allstop.hpp"
template bool allstop::StopOnException(const allstop::Coordinator&, void (*&&)());
END
  inside=$(nm "$module" | grep -c 'describe_foreign' || true)
  outside=$(nm -D "$module" | grep -c describe_foreign || true)
  if [ "$inside" -eq 0 ] || [ "$outside" -ne 0 ]; then
    echo "$compiler: describe_foreign must be in each module (symbols found: $inside) and visible to no other (visible: $outside)" >&2
    exit 1
  fi
done

tidy() { # CHECKS: of the files that stdin names
  xargs -P 2 -n 1 sh -c 'clang-tidy --quiet --checks="$0" --warnings-as-errors="*" \
    --header-filter="native/core/[a-z_]*\.cc$" "$@" -- -std=c++17 2>/dev/null' "$1"
}
if [ "${1:-}" = --analyze ]; then
  git ls-files 'native/core/*.cc' 'native/abi/*.cc' | tidy ''
  exit
fi
# The core as one file: most of the time goes into the headers, which each file includes. Two checks
# look at one file at a time: what may be thrown (they would look into the functions of other files),
# and aliases of namespaces (which they see in the main file only).
mkdir -p build-lint
git ls-files 'native/core/*.cc' | sed 's|.*|#include "../&"  // NOLINT|' >build-lint/core.cc
{ echo build-lint/core.cc; git ls-files 'native/abi/*.cc'; } |
  tidy '-clang-analyzer-*,-bugprone-exception-escape'
git ls-files 'native/core/*.cc' 'native/abi/*.cc' |
  tidy '-*,bugprone-exception-escape,misc-unused-alias-decls'
