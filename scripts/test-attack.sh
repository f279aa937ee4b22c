#!/usr/bin/env bash
# test-attack.sh [MINUTES [SEED]]: builds test/native/library/attack.cc under AddressSanitizer with
# UBSan, under ThreadSanitizer, and under UBSan alone, and runs the three side by side, with a new
# seed each minute, from SEED (1) on, for MINUTES (1). A seed that fails ends the run; its output is
# printed. Linux only. Processes are forked in the latter two, with threads of their own in the last
# one, whose allocator is glibc's (freed memory is overwritten).
set -uo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-1}
first=${2:-1}
# ThreadSanitizer aborts at start if the kernel randomizes addresses over a wide range.
unrandomized=()
setarch "$(uname -m)" -R true 2>/dev/null && unrandomized=(setarch "$(uname -m)" -R)
export ASAN_OPTIONS='detect_leaks=1 detect_stack_use_after_return=1 strict_string_checks=1'
export UBSAN_OPTIONS=print_stacktrace=1
export MALLOC_PERTURB_=165
# die_after_fork: it ends a process that was forked from one with threads, unless told not to.
export TSAN_OPTIONS='halt_on_error=1 second_deadlock_stack=1 die_after_fork=0'

attack() { # VARIANT SANITIZER
  local folder=build-native/$1 seed said
  if ! said=$(cmake -S . -B "$folder" -DALLSTOP_TESTS=ON -DALLSTOP_SANITIZER="$2" 2>&1 &&
    cmake --build "$folder" --target allstop_attack --parallel "$(nproc)" 2>&1); then
    printf '%s\n' "$said"
    return 1
  fi
  for ((seed = first; seed < first + minutes; ++seed)); do
    if ! said=$("${unrandomized[@]}" "$folder/test/native/allstop_attack" 60 "$seed" 2>&1); then
      printf '%s\n%s: seed %s has failed\n' "$said" "$1" "$seed"
      return 1
    fi
    echo "$1: $said"
  done
}

attack address address,undefined &
attack thread thread &
attack undefined undefined &
failed=0
for job in $(jobs -p); do wait "$job" || failed=1; done
exit "$failed"
