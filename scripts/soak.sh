#!/usr/bin/env bash
# soak.sh [--sanitizer address|thread] [--nats-faults] [ARGUMENT...]: compiles what is stale and runs
# test/soak/soak.mjs with the arguments (--minutes N, --report DIR, ...: see there).
# --sanitizer: with the addon built under that sanitizer; its reports count as failures.
# --nats-faults: afterwards scripts/soak-nats.sh, which takes ten minutes and 6 GB of memory.
set -euo pipefail
cd "$(dirname "$0")/.."
sanitizer='' faults=''
while :; do
  case ${1:-} in
    --sanitizer) sanitizer=${2:-}; shift 2 ;;
    --nats-faults) faults=1; shift ;;
    *) break ;;
  esac
done
bash scripts/nats-server.sh >/dev/null
node scripts/compile.mjs addon ts test-addon
if [ -z "$sanitizer" ]; then
  node --expose-gc test/soak/soak.mjs "$@"
else
  . scripts/sanitized-package.sh
  sanitized_package "$sanitizer"
  rm -rf "$folder/test/soak" "$folder/test/lifecycle/matrix"
  cp -r test/soak "$folder/test/"
  cp -r test/lifecycle/matrix "$folder/test/lifecycle/"
  mkdir -p "$folder/scripts"
  cp scripts/nats-server.sh "$folder/scripts/"
  log=$folder/soak.log
  status=0
  LD_PRELOAD=$library "${wrapper[@]}" node --expose-gc "$folder/test/soak/soak.mjs" --sanitized "$@" \
    2> >(tee "$log" >&2) || status=$?
  node scripts/sanitizer-report.mjs "$log"
  [ "$status" = 0 ] || exit "$status"
fi
if [ -n "$faults" ]; then bash scripts/soak-nats.sh; fi
