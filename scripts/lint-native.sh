#!/usr/bin/env bash
# lint-native.sh [--analyze]: checks the format of the C++ and C sources and runs clang-tidy. Needs
# clang-format and clang-tidy (Debian packages of the same names). --analyze: with clang's analyzer,
# which takes six times as long as all other checks together; `npm run nightly` runs it.
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

export CHECKS=-clang-analyzer-*
[ "${1:-}" != --analyze ] || CHECKS=
git ls-files 'native/core/*.cc' 'native/abi/*.cc' |
  xargs -P 2 -n 3 sh -c 'clang-tidy --quiet --checks="$CHECKS" --warnings-as-errors="*" "$@" -- -std=c++17 2>/dev/null' tidy
