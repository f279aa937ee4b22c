#!/bin/bash
# Usage: soak-nats.sh
# Runs 20 rounds of the fault tests of a cluster on NATS, with longer outages of the servers and
# longer functions than the normal test suite has time for, and with values of a gigabyte. Takes
# ten minutes and 6 GB of memory. Prints the seed of its random choices; set ALLSTOP_TEST_SEED to
# repeat a run.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/nats-server.sh >/dev/null
npm run --silent compile
export ALLSTOP_TEST_SEED=${ALLSTOP_TEST_SEED:-$(date +%s)}
echo "ALLSTOP_TEST_SEED=$ALLSTOP_TEST_SEED"
nats=test/nats
ALLSTOP_SOAK=1 npx vitest run $nats/coordinator/faults.test.ts $nats/coordinator/races.test.ts $nats/wire/values.test.ts
