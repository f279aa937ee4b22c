// One check for a stop, inline: ours in C and in C++, and std::stop_token's.
//
// All three read through a pointer that the compiler must load again each time,
// as a thread's function does that got its token or coordinator by reference.
#include <benchmark/benchmark.h>

#include <allstop/allstop.hpp>
#include <cstdint>
#include <stop_token>

#include "handle.h"

extern "C" std::uint64_t allstop_bench_poll_c(const allstop_coordinator* coord,
                                              std::uint64_t count);

namespace {

// A batch hides the library's own loop.
constexpr std::uint64_t kChecks = 1'000'000;

// Never inlined, so that all are compiled alike and alone: the C one is in
// another file anyway.
template <typename Flag>
[[gnu::noinline]] std::uint64_t Poll(const Flag& flag, std::uint64_t count) {
  std::uint64_t i = 0;
  while (i < count && !flag()) {
    ++i;
    asm volatile("" : "+r"(i) : : "memory");  // see should_stop.c
  }
  return i;
}

template <typename Body>
void Measure(benchmark::State& state, Body poll) {
  for (auto _ : state) {
    if (poll() != kChecks) state.SkipWithError("stopped by nobody");
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kChecks));
}

struct Ours {
  allstop::Coordinator coord;
  bool operator()() const { return coord.ShouldStop(); }
};

struct Theirs {
  std::stop_token token;
  bool operator()() const { return token.stop_requested(); }
};

void C(benchmark::State& state) {
  const auto coordinator = allstop::bench::MakeCoordinator();
  const allstop_coordinator handle = allstop::bench::HandleOf(coordinator);
  Measure(state, [&] { return allstop_bench_poll_c(&handle, kChecks); });
}

void Cpp(benchmark::State& state) {
  const auto coordinator = allstop::bench::MakeCoordinator();
  const allstop_coordinator handle = allstop::bench::HandleOf(coordinator);
  allstop_retain(&handle);
  const Ours ours{allstop::Coordinator(handle)};
  Measure(state, [&] { return Poll(ours, kChecks); });
}

void StopToken(benchmark::State& state) {
  const std::stop_source source;
  const Theirs theirs{source.get_token()};
  Measure(state, [&] { return Poll(theirs, kChecks); });
}

BENCHMARK(C);
BENCHMARK(Cpp);
BENCHMARK(StopToken);

}  // namespace

BENCHMARK_MAIN();
