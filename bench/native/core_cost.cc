// What coordinators and registered threads cost in the core, in bytes and in
// nanoseconds, at two sizes.
//
//   core_cost ROUNDS SMALL LARGE
//
// prints {"sizeof": N, "bytes": [...], "costs": {"<operation>": {"small": [...],
// "large": [...]}, ...}}: bytes per coordinator (null where malloc cannot tell),
// and nanoseconds per item of each round.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "handle.h"

namespace {

using allstop::core::Coordinator;

constexpr bool kMallocTells =
#if defined(__GLIBC__) && (__GLIBC__ > 2 || (__GLIBC__ == 2 && __GLIBC_MINOR__ >= 33))
    true;
std::size_t BytesInUse() { return mallinfo2().uordblks; }
#else
    false;
std::size_t BytesInUse() { return 0; }
#endif

// By operation: nanoseconds of a round, of all items.
using Costs = std::map<std::string, double>;
// The same per item, a number a round.
using Rounds = std::map<std::string, std::vector<double>>;

// Processor time, as other processes have the clock: one thread does it all.
double ProcessorNs() { return static_cast<double>(std::clock()) * (1e9 / CLOCKS_PER_SEC); }

void Coordinators(int count, Costs& costs, std::vector<double>& bytes) {
  std::vector<std::shared_ptr<Coordinator>> all;
  all.reserve(static_cast<std::size_t>(count));
  const std::size_t before = BytesInUse();
  const double start = ProcessorNs();
  for (int i = 0; i < count; ++i) all.push_back(allstop::bench::MakeCoordinator());
  if (kMallocTells) bytes.push_back(static_cast<double>(BytesInUse() - before) / count);
  for (const auto& coordinator : all) {
    const allstop_coordinator handle = allstop::bench::HandleOf(coordinator);
    allstop_request_stop(&handle, nullptr);
  }
  all.clear();
  costs["a coordinator: created, stopped, destroyed"] += ProcessorNs() - start;
}

void Children(int count, Costs& costs) {
  const auto parent = allstop::bench::MakeCoordinator();
  const allstop_coordinator handle = allstop::bench::HandleOf(parent);
  std::vector<std::shared_ptr<Coordinator>> all;
  const double start = ProcessorNs();
  for (int i = 0; i < count; ++i) all.push_back(parent->CreateChild({"child", {}}));
  allstop_request_stop(&handle, nullptr);
  all.clear();
  costs["a child: created, stopped by its parent, destroyed"] += ProcessorNs() - start;
}

void Threads(int count, Costs& costs) {
  const auto coordinator = allstop::bench::MakeCoordinator();
  const allstop_coordinator handle = allstop::bench::HandleOf(coordinator);
  std::vector<allstop_thread*> all(static_cast<std::size_t>(count));
  const double start = ProcessorNs();
  for (allstop_thread*& thread : all)
    allstop_thread_register(&handle, allstop_str("bench"), 0, &thread);
  const auto join = coordinator->BeginJoin({});
  for (allstop_thread* thread : all) allstop_thread_done(&handle, thread, nullptr);
  coordinator->FinishJoin(*join);
  costs["a thread: registered, joined, ended"] += ProcessorNs() - start;
}

void PrintValues(const std::vector<double>& values) {
  std::printf("[");
  for (std::size_t i = 0; i < values.size(); ++i) std::printf(i ? ", %.2f" : "%.2f", values[i]);
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int rounds = std::atoi(argv[1]);
  const int small = std::atoi(argv[2]);
  const int large = std::atoi(argv[3]);
  Rounds at_small;
  Rounds at_large;
  std::vector<double> bytes;
  std::vector<double> ignored;
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    const auto measure = [&](int count, Rounds& to, std::vector<double>& bytes_each) {
      Costs costs;
      // As many items at both sizes, so that one is measured as long as the other.
      for (int done = 0; done < large; done += count) {
        Coordinators(count, costs, bytes_each);
        Children(count, costs);
        Threads(count, costs);
      }
      for (const auto& [operation, cost] : costs) {
        if (round >= 0) to[operation].push_back(cost / large);
      }
    };
    measure(large, at_large, round < 0 ? ignored : bytes);
    measure(small, at_small, ignored);
  }
  std::printf("{\"sizeof\": %zu, \"bytes\": ", sizeof(Coordinator));
  kMallocTells ? PrintValues(bytes) : static_cast<void>(std::printf("null"));
  std::printf(", \"costs\": {");
  bool first = true;
  for (const auto& [operation, values] : at_large) {
    std::printf("%s\"%s\": {\"small\": ", first ? "" : ", ", operation.c_str());
    PrintValues(at_small[operation]);
    std::printf(", \"large\": ");
    PrintValues(values);
    std::printf("}");
    first = false;
  }
  std::printf("}}\n");
}
