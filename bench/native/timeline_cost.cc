// An event of a coordinator's timeline, in a ring that is full, with its look at the clock and
// without the lock that the caller holds anyway; beside the look at the clock alone.
//
//   timeline_cost ROUNDS
//
// prints {"ours": [...], "peer": [...]}: nanoseconds of an event, one number for each round.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/timeline.h"

namespace {

using Clock = allstop::core::Clock;

constexpr int kEvents = 200'000;

template <typename Body>
double NsOf(Body body) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kEvents; ++i) body();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
  return took.count() / kEvents;
}

void Print(const std::vector<double>& values) {
  for (std::size_t i = 0; i < values.size(); ++i) std::printf(i ? ", %.2f" : "%.2f", values[i]);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  const int rounds = std::atoi(argv[1]);
  const std::string name = "fetcher";
  allstop::core::Timeline timeline(Clock::now());
  std::vector<double> ours;
  std::vector<double> peer;
  for (int round = -1; round < rounds; ++round) {  // round -1 fills the ring and is not counted
    const double event_ns = NsOf([&] {
      allstop::core::TimelineEvent event;
      event.at = Clock::now();
      event.type = allstop::core::TimelineType::kEnded;
      timeline.Add(event, name);
    });
    volatile Clock::rep sink = 0;
    const double clock_ns = NsOf([&] { sink = Clock::now().time_since_epoch().count(); });
    if (round < 0) continue;
    ours.push_back(event_ns);
    peer.push_back(clock_ns);
  }
  std::printf("{\"ours\": [");
  Print(ours);
  std::printf("], \"peer\": [");
  Print(peer);
  std::printf("]}\n");
}
