# steps.sh: how .ci/run and scripts/nightly.sh run their steps; both source it. The caller sets
# `most`, the seconds that all steps together may take: so a run ends, whatever hangs.
#
# Steps run in lanes, side by side, since most of them leave a second processor idle. Each lane has a
# folder of its own, so that no step sees another lane's half-built files. The output of a step is
# printed as a whole when the step ends.

outputs=$(mktemp -d) # the output of each failed step, and RESULTS
packed=$(mktemp -d)  # for tarballs
copy=$(mktemp -d)    # the folder of the second lane
results=$outputs/results # a line for each step that has ended
trap 'rm -rf "$outputs" "$packed" "$copy"' EXIT

# SECONDS ends a step that hangs. It is several times what the step takes, since the processors of a
# shared machine may run at a third of their speed.
step() { # NAME SECONDS COMMAND...
  local name=$1 limit=$2 start=$SECONDS status left=$((most - SECONDS)) ended took
  local output="$outputs/$name.log"
  shift 2
  [ "$limit" -le "$left" ] || limit=$left
  echo "... $name"
  if [ "$limit" -gt 0 ]; then
    { TIMEFORMAT=%0U+%0S; time timeout --kill-after=10 "$limit" "$@" >"$output" 2>&1; } 2>"$output.took"
    status=$?
  else
    echo "not begun: the $most s of all steps are over" >"$output"
    echo 0 >"$output.took"
    status=124
  fi
  took=$(($(tail -n 1 "$output.took"))) # of all processors, by the step and what it has waited for
  rm "$output.took"
  case $status in
    0) ended=ok ;;
    124 | 137) ended="FAILED after its limit of $limit s" ;;
    *) ended="FAILED with exit code $status" ;;
  esac
  ( # One lane prints at a time.
    flock 9
    echo "=== $name"
    cat "$output"
    echo "--- $name: $ended ($((SECONDS - start)) s, processors $took s)"
    printf '%s\t%s\t%s\t%s\n' "$name" "$ended" "$((SECONDS - start))" "$took" >>"$results"
  ) 9>"$outputs/printing"
  if [ "$status" = 0 ]; then rm "$output"; fi
}

# Each LANE is a function that runs steps; the first runs in this folder, the second in a copy of it.
side_by_side() { # LANE LANE
  cp -a . "$copy/allstop"
  # Job control: without it, the lanes' programs, and so the tests of Ctrl-C, would ignore SIGINT.
  set -m
  "$1" </dev/null &
  (cd "$copy/allstop" && "$2") </dev/null &
  trap 'kill -- $(jobs -p | sed s/^/-/); exit 130' INT TERM
  wait
  trap - INT TERM
  set +m
}

# Prints the ends of the outputs of failed steps, a table of all steps, and "N passed, N failed".
# Returns 1 if a step has failed, or has never ended since its lane died.
report() {
  local output passed failed expected
  # A reader of a log whose beginning was cut off finds each failure here again.
  for output in "$outputs"/*.log; do
    [ -f "$output" ] || continue
    echo "=== the end of: $(basename "$output" .log)"
    tail -n 60 "$output"
  done
  echo
  printf '%-42s %8s %11s  %s\n' step seconds processors result
  while IFS=$'\t' read -r name ended seconds took; do
    printf '%-42s %8s %11s  %s\n' "$name" "$seconds" "$took" "$ended"
  done <"$results"
  passed=$(cut -f 2 "$results" | grep -cx ok)
  failed=$(cut -f 2 "$results" | grep -cvx ok)
  expected=$(grep -c "^ *step '" "$0")
  [ "$((passed + failed))" = "$expected" ] || {
    echo "of $expected steps, $((passed + failed)) have ended"
    failed=$((failed + expected - passed - failed))
  }
  echo
  echo "$passed passed, $failed failed"
  [ "$failed" = 0 ]
}
