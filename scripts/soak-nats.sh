#!/bin/bash
# Usage: soak-nats.sh
# The faults of the cluster on NATS, 20 rounds of them, with servers that are away for longer
# and functions that compute for longer than the suite has time for, and values of a gigabyte
# (it takes 6 GB of memory, and ten minutes). It prints its seed;
# CLUSTER_SEED repeats one.
set -euo pipefail
cd "$(dirname "$0")/.."
bash scripts/nats-server.sh >/dev/null
npm run --silent compile
nats=test/cluster/nats
ALLSTOP_SOAK=1 npx vitest run $nats/coordinator/faults.test.ts $nats/coordinator/races.test.ts $nats/wire/values.test.ts
