#!/usr/bin/env bash
# test-sanitized.sh [address] [thread]: compiles the addon and the test addon under a sanitizer,
# loads both into Node and runs the lifecycle scripts, in which many threads use them at once.
# Without arguments it uses both sanitizers, one after the other. Needs `npm run compile:ts` first.
# Node itself is not instrumented, so reports about Node alone are ignored, and only leaks of memory
# that one of our addons allocated count.
set -uo pipefail
cd "$(dirname "$0")/.."
. scripts/sanitized-package.sh
failed=0

run() { # SANITIZER
  local sanitizer=$1 folder library wrapper
  if ! sanitized_package "$sanitizer"; then
    failed=1
    return
  fi

  # story SCRIPT EXIT-CODE ARGUMENT...: the script must end with that exit code, and without a
  # report of the sanitizer.
  story() {
    local script=$1 wanted=$2 status=0 log=$folder/$1-${3:-}.log
    shift 2
    LD_PRELOAD=$library timeout 300 "${wrapper[@]}" node --expose-gc \
      "$folder/test/lifecycle/scripts/$script.mjs" "$@" >"$log" 2>&1 || status=$?
    if [ "$status" = "$wanted" ] && node scripts/sanitizer-report.mjs "$log"; then
      echo "$sanitizer: ok: $script $*"
    else
      echo "$sanitizer: FAILED: $script $* (exit code $status, $log)"
      failed=1
    fi
  }
  story four-threads 0 1000
  story native-outlives-worker 5 ends exit
  story native-outlives-worker 5 terminated naturally
  story native-threads-at-exit 9 exit
  story posts 0 terminated
  story posts 5 exit
  story stop-flags 0 ends
  story stop-flags 0 terminated
  story stop-flags 5 exit
  story errors 0
  for how in dequeueSync enqueueSync dequeue enqueue; do
    story queues 0 terminate "$how" 5
    story queues 7 exit "$how" 3
  done
  story queues 0 'environment gone' ends
  story queues 0 'environment gone' terminated
  story sqlite 0 # where Node has node:sqlite: from 22 on
}

for sanitizer in ${*:-address thread}; do run "$sanitizer"; done
exit "$failed"
