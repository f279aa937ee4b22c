#!/bin/sh
# Builds and runs the native tests: test-native.sh [plain] [thread] [address]
# `address` is AddressSanitizer and UndefinedBehaviorSanitizer in one build.
# Without arguments it runs all three variants. Each variant has a build folder of its own, so that
# the next run only compiles what has changed.
# Needs cmake, a C++17 compiler and GoogleTest (Debian: libgtest-dev).
set -u
cd "$(dirname "$0")/.."

jobs=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
generator="Unix Makefiles"
command -v ninja >/dev/null && generator=Ninja

# The ThreadSanitizer of current stable distributions aborts at start if the kernel randomizes
# addresses over a wide range (vm.mmap_rnd_bits > 28), so turn that off.
unrandomized=
setarch "$(uname -m)" -R true 2>/dev/null && unrandomized="setarch $(uname -m) -R"

export TSAN_OPTIONS="halt_on_error=1 second_deadlock_stack=1 ${TSAN_OPTIONS:-}"
export ASAN_OPTIONS="detect_leaks=1 detect_stack_use_after_return=1 strict_string_checks=1 ${ASAN_OPTIONS:-}"
export UBSAN_OPTIONS="print_stacktrace=1 ${UBSAN_OPTIONS:-}"

quietly() { # Runs a command and prints its output only if it fails.
  said=$("$@" 2>&1) || { status=$?; printf '%s\n' "$said"; return "$status"; }
}

run_variant() {
  folder=build-native/$1
  sanitizer=$1
  [ "$sanitizer" = plain ] && sanitizer=
  [ "$sanitizer" = address ] && sanitizer=address,undefined
  wrapper=
  [ "$1" = thread ] && wrapper=$unrandomized
  # CMake refuses a build folder that was configured for another generator.
  if [ -f "$folder/CMakeCache.txt" ] &&
    ! grep -q "^CMAKE_GENERATOR:INTERNAL=$generator\$" "$folder/CMakeCache.txt"; then
    rm -rf "$folder"
  fi
  rm -f "$folder/ctest.log"
  # The wrapper is needed for the build, too, which runs the test programs to list their tests.
  quietly cmake -S . -B "$folder" -G "$generator" \
    -DALLSTOP_TESTS=ON -DALLSTOP_SANITIZER="$sanitizer" &&
    quietly $wrapper cmake --build "$folder" -j "$jobs" &&
    $wrapper ctest --test-dir "$folder" -j "$jobs" --output-on-failure >"$folder/ctest.log" 2>&1
}

failed=
for variant in ${*:-plain thread address}; do
  case $variant in
    plain | thread | address) ;;
    *) echo "unknown variant: $variant (plain, thread, address)" >&2; exit 2 ;;
  esac
  started=$(date +%s)
  if run_variant "$variant"; then
    result=$(grep "tests passed" "build-native/$variant/ctest.log")
  else
    result=FAILED
    failed="$failed $variant"
    log=build-native/$variant/ctest.log # does not exist if the build failed
    [ -f "$log" ] && grep -vE "^ +Start |Passed +[0-9]" "$log"
  fi
  echo "$variant: $result ($(($(date +%s) - started)) s)"
done
if [ -n "$failed" ]; then
  echo "failed:$failed" >&2
  exit 1
fi
