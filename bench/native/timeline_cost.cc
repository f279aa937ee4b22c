// An event of a coordinator's timeline, in a ring that is full, without the lock that the caller
// holds anyway.
//
//   timeline_cost ROUNDS
//
// prints the nanoseconds of an event, one number for each round.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "core/timeline.h"

using Clock = allstop::core::Clock;

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  constexpr int kEvents = 200'000;
  const int rounds = std::atoi(argv[1]);
  const std::string name = "fetcher";
  allstop::core::Timeline timeline(Clock::now());
  std::printf("[");
  for (int round = -1; round < rounds; ++round) {  // round -1 fills the ring and is not counted
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kEvents; ++i) {
      allstop::core::TimelineEvent event;
      event.at = Clock::now();
      event.type = allstop::core::TimelineType::kEnded;
      timeline.Add(event, name);
    }
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - start;
    if (round >= 0) std::printf(round == 0 ? "%.2f" : ", %.2f", took.count() / kEvents);
  }
  std::printf("]\n");
}
