#!/usr/bin/env bash
# npm run nightly: what is too long for the gate (.ci/run), each night or before a release: long
# tests, sanitizers in Node, models, forced races, fuzzing, the binaries of all platforms,
# package managers, bundlers, runtimes and platforms, addons of others, the site, benchmarks, a soak.
# Takes some hours on two processors. Random tests have the seed of the day, unless
# ALLSTOP_TEST_SEED names one. Ends with "N passed, N failed".
set -uo pipefail
cd "$(dirname "$0")/.."
most=20400 # a hosted runner ends a job after six hours
. scripts/steps.sh
export ALLSTOP_TEST_SEED=${ALLSTOP_TEST_SEED:-$(date +%Y%m%d)}
echo "ALLSTOP_TEST_SEED=$ALLSTOP_TEST_SEED"

tests_and_sanitizers() {
  step 'compile' 900 node scripts/compile.mjs addon ts example test-addon
  step 'npm test, with the seed of the day' 3600 npm test
  step 'long tests' 7200 npm run --silent test:long
  step 'native tests under sanitizers' 5400 npm run --silent test:native
  step 'an attack under sanitizers' 3600 bash scripts/test-attack.sh 10 "$ALLSTOP_TEST_SEED"
  step 'addons under sanitizers, in Node' 3600 bash scripts/test-sanitized.sh
  step 'forced races' 3600 node scripts/test-faults.mjs --minutes 10
  step 'planted races are found' 5400 node scripts/test-faults.mjs --mutants
  step 'models' 1800 node scripts/verify-models.mjs
  step 'a simulated cluster' 3600 node test/simulation/run.mjs --seeds 1000 \
    --seed "$ALLSTOP_TEST_SEED"
  step 'planted faults of the cluster are found' 3600 node test/simulation/run.mjs --mutants
  for seed in 1 2 3 4 5; do
    step "chaos on real servers, seed $seed" 900 node test/simulation/chaos.mjs --seconds 360 \
      --seed "$seed"
  done
  step 'a training whose processes are killed' 3600 bash -c 'NATS_SERVER=$(bash scripts/nats-server.sh) \
    node examples/train/main.mjs --isolation nats --workers 3 --steps 96000 --kill 60 --kill-ps 15 \
    --kill-server 15 --kill-coordinator 15 --checkpoints "$0"' "$packed/train"
  step 'fuzzing' 5400 npm run --silent fuzz -- --minutes 30 --seed "$ALLSTOP_TEST_SEED"
}

the_package() {
  step 'compile for the package' 900 node scripts/compile.mjs addon ts
  step 'clang analyzer' 5400 bash scripts/lint-native.sh --analyze
  step 'headers with each compiler' 3600 node scripts/test-headers.mjs
  step 'all prebuilt binaries' 5400 npm run --silent prebuild:all
  step 'what is in them' 300 node scripts/test-prebuilds.mjs --complete
  step 'planted faults in them' 300 node scripts/test-prebuilds.mjs --planted
  step 'npm pack' 1800 bash scripts/pack.sh "$packed" --all
  step 'the packed tarball' 1200 bash scripts/test-package.sh "$packed"/allstop-*.tgz
  step 'package managers' 2400 node scripts/test-installs.mjs "$packed"/allstop-*.tgz
  step 'bundlers' 1800 node scripts/test-bundlers.mjs "$packed"/allstop-*.tgz
  step 'runtimes and platforms' 7200 npm run --silent test:matrix -- --tarball "$packed"/allstop-*.tgz
  step 'addons of third parties' 1800 bash scripts/test-addons.sh "$packed"/allstop-*.tgz
  step 'addons of other projects' 3600 node adoption/run.mjs
  step 'templates of new-addon' 1800 bash scripts/test-templates.sh "$packed"/allstop-*.tgz
  step 'Rust crates' 1800 bash scripts/test-rust.sh "$packed"/allstop-*.tgz
  step 'site of the documents' 1200 npm run --silent docs
}

step 'system packages' 1200 bash scripts/system-packages.sh cmake g++ make python3 libgtest-dev \
  clang clang-format clang-tidy clang-14 lld-14 llvm-14 libclang-rt-14-dev g++-mingw-w64-x86-64-posix binutils \
  pkg-config xz-utils qemu-user musl musl-tools g++-aarch64-linux-gnu wine wine64 spin redis-server cargo valgrind strace \
  libbenchmark-dev
step 'npm ci' 600 npm ci --no-audit --no-fund
export ALLSTOP_REQUIRE_NATS=1 # no NATS server: a failure, where `npm test` skips tests
side_by_side tests_and_sanitizers the_package
# What measures runs alone.
step 'planted costs are found' 3600 npm run --silent bench:guard -- --mutants
step 'a thousand virtual workers' 1200 node --expose-gc bench/nats-scale.mjs
step 'benchmarks still run' 2400 npm run --silent bench -- --quick
step 'soak' 3600 npm run --silent soak -- --minutes 20
step 'soak of map' 3600 node test/soak/map.mjs
report
