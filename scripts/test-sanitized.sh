#!/usr/bin/env bash
# test-sanitized.sh [address] [thread]: compiles the addon and the test addon under a sanitizer,
# loads both into Node and runs the lifecycle scripts, in which many threads use them at once.
# Without arguments it uses both sanitizers, one after the other. Needs `npm run compile:ts` first.
# Node itself is not instrumented, so reports about Node alone are ignored, and only leaks of memory
# that one of our addons allocated count.
set -uo pipefail
cd "$(dirname "$0")/.."
root=$PWD
failed=0

build() { # SANITIZER FOLDER
  npx cmake-js compile -O "$2/build-cmake" --CDALLSTOP_ADDON=ON --CDALLSTOP_SANITIZER="$1" &&
    npx cmake-js compile -d test/addons/test-addon -O "$2/test/addons/test-addon/build" --CDALLSTOP_SANITIZER="$1"
}

run() { # SANITIZER
  local sanitizer=$1 folder=$root/build-sanitized/$1 library wrapper=()
  mkdir -p "$folder/test/lifecycle"
  if ! build "$sanitizer" "$folder" >"$folder/build.log" 2>&1; then
    cat "$folder/build.log"
    failed=1
    return
  fi
  # A copy of the package, in which the scripts import this build as `allstop`.
  cp package.json "$folder/"
  rm -rf "$folder/dist" "$folder/test/lifecycle/scripts"
  cp -r dist "$folder/"
  cp -r test/lifecycle/scripts "$folder/test/lifecycle/"

  case $sanitizer in
    address)
      library=$(gcc -print-file-name=libasan.so)
      export ASAN_OPTIONS=detect_leaks=1:exitcode=0
      ;;
    thread)
      library=$(gcc -print-file-name=libtsan.so)
      export TSAN_OPTIONS=exitcode=0:ignore_noninstrumented_modules=1:report_signal_unsafe=0
      # ThreadSanitizer aborts at start if the kernel randomizes addresses over a wide range.
      setarch "$(uname -m)" -R true 2>/dev/null && wrapper=(setarch "$(uname -m)" -R)
      ;;
    *) echo "unknown sanitizer: $sanitizer (address, thread)" >&2; exit 2 ;;
  esac

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
  story errors 0
  for how in dequeueSync enqueueSync dequeue enqueue; do
    story queues 0 terminate "$how" 5
    story queues 7 exit "$how" 3
  done
  story queues 0 'environment gone' ends
  story queues 0 'environment gone' terminated
}

for sanitizer in ${*:-address thread}; do run "$sanitizer"; done
exit "$failed"
