// The cost of coordinators and registered threads in the core, in bytes and in nanoseconds, with
// a SMALL and a LARGE number of them alive at a time.
//
//   core_cost ROUNDS SMALL LARGE
//
// prints {"sizeof": N, "bytes": [...], "costs": {"<operation>": {"small": [...],
// "large": [...]}, ...}}. For each round: bytes per coordinator (null where malloc does not
// report its usage), and nanoseconds per item.
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

// By operation: the nanoseconds that one round took for all items.
using Costs = std::map<std::string, double>;
// By operation: the nanoseconds per item, one number for each round.
using Rounds = std::map<std::string, std::vector<double>>;

// Processor time, so that other processes do not disturb the result; this program has one thread.
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
  costs["coordinator"] += ProcessorNs() - start;
}

void Children(int count, Costs& costs) {
  const auto parent = allstop::bench::MakeCoordinator();
  const allstop_coordinator handle = allstop::bench::HandleOf(parent);
  std::vector<std::shared_ptr<Coordinator>> all;
  const double start = ProcessorNs();
  for (int i = 0; i < count; ++i) all.push_back(parent->CreateChild({"child", {}}));
  allstop_request_stop(&handle, nullptr);
  all.clear();
  costs["child"] += ProcessorNs() - start;
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
  costs["thread"] += ProcessorNs() - start;
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
  for (int round = -1; round < rounds; ++round) {  // round -1 warms up and is not counted
    const auto measure = [&](int count, Rounds& to, std::vector<double>& bytes_each) {
      Costs costs;
      // LARGE items in all at both sizes, so that both measurements take equally long.
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
