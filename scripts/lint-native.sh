#!/usr/bin/env bash
# Checks the format of the C++ and C sources and runs clang-tidy. Needs clang-format and clang-tidy
# (Debian packages of the same names).
set -euo pipefail
cd "$(dirname "$0")/.."

mapfile -t sources < <(git ls-files '*.cc' '*.c' '*.h' '*.hpp')
clang-format --dry-run --Werror "${sources[@]}"

# The public headers must compile without warnings under the strictest flags that users set.
headers=native/include
node_headers=$(node -p "require('node-api-headers').include_dir")
strict=(-Wall -Wextra -pedantic -Werror -fsyntax-only -I "$headers" -isystem "$node_headers")
for compiler in gcc clang; do
  for header in allstop.h allstop_poll.h allstop_queue.h allstop_node.h \
    allstop_pin_module.h allstop_stop_flag.h allstop_threadsafe_function.h; do
    "$compiler" -std=c11 "${strict[@]}" -include "allstop/$header" -x c /dev/null
  done
done
for compiler in g++ clang++; do
  for header in allstop.h allstop_poll.h allstop_queue.h allstop_node.h allstop.hpp \
    allstop_bounded_queue.hpp allstop_bridges.hpp allstop_coordinator.hpp allstop_exceptions.hpp \
    allstop_looper.hpp allstop_queue_runner.hpp allstop_queue_runner_threads.hpp \
    allstop_deadline.hpp allstop_interruptible.hpp allstop_pin_module.h allstop_registration.hpp \
    allstop_runner.hpp allstop_stop_flag.h allstop_stop_flag.hpp allstop_tensorflow.hpp \
    allstop_threadsafe_function.h allstop_threadsafe_function.hpp allstop_wait_until_stop.hpp; do
    "$compiler" -std=c++17 "${strict[@]}" -include "allstop/$header" -x c++ /dev/null
  done
  "$compiler" -std=c++17 -fno-exceptions -fno-rtti "${strict[@]}" -x c++ - <<'END'
#include "allstop/allstop.hpp"
using Function = void (*)();
template allstop::Thread::Thread(const allstop::Coordinator&, const std::string&, Function&&);
template allstop::LooperThread::LooperThread(const allstop::Coordinator&, allstop::Milliseconds,
                                             Function&&, allstop::LooperOptions);
bool Interrupts(const allstop::Coordinator& coord) { return bool(allstop::Interruptible(coord)); }
allstop::Registration Registered(const allstop::Coordinator& coord) { return {coord, "work"}; }
END
done

# Each module (addon, program) that includes the C++ header must have its own table of kept
# exceptions. If the table's symbol were visible, the dynamic linker could merge these tables.
module=$(mktemp)
trap 'rm -f "$module"' EXIT
for compiler in g++ clang++; do
  "$compiler" -std=c++17 -fvisibility=default -fPIC -shared -I "$headers" -o "$module" -x c++ - <<'END'
#include "allstop/allstop.hpp"
template bool allstop::StopOnException(const allstop::Coordinator&, void (*&&)());
END
  inside=$(nm "$module" | grep -c 'KeptExceptions3GetEvE4kept' || true)
  outside=$(nm -D "$module" | grep -c KeptExceptions || true)
  if [ "$inside" -eq 0 ] || [ "$outside" -ne 0 ]; then
    echo "$compiler: the table of kept exceptions must be in each module (symbols found: $inside) and visible to no other (visible: $outside)" >&2
    exit 1
  fi
done

git ls-files 'native/core/*.cc' 'native/abi/*.cc' |
  xargs -P 2 -n 3 sh -c 'clang-tidy --quiet --warnings-as-errors="*" "$@" -- -std=c++17 2>/dev/null' tidy
