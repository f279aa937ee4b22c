// From a native request to the moment when the last of n native waiters is
// awake, beside a condition variable that is used the same way.
//
//   wake_waiters WAITERS ROUNDS SAMPLES
//
// prints {"ours": [...], "peer": [...]}: the median of each round, in
// microseconds. The same threads wait for both, in turn.
#include <allstop/allstop.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <vector>

#include "handle.h"

namespace {

using Clock = std::chrono::steady_clock;

std::int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

class Allstop {
 public:
  void Wait() { allstop_wait_for_stop(&handle_, INFINITY); }
  void Request() { allstop_request_stop(&handle_, nullptr); }
  void Clear() { allstop_clear_stop(&handle_); }

 private:
  const std::shared_ptr<allstop::core::Coordinator> coordinator_ =
      allstop::bench::MakeCoordinator();
  const allstop_coordinator handle_ = allstop::bench::HandleOf(coordinator_);
};

class Bare {
 public:
  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return stopped_; });
  }
  void Request() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
  }
  void Clear() {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool stopped_ = false;
};

enum class Kind { kOurs, kPeer, kQuit };

class Bench {
 public:
  explicit Bench(int waiters) : waiters_(waiters) {
    for (int i = 0; i < waiters; ++i) threads_.emplace_back([this] { Run(); });
  }

  ~Bench() {
    Begin(Kind::kQuit);
    for (std::thread& thread : threads_) thread.join();
  }

  double SampleUs(Kind kind) {
    Begin(kind);
    while (entering_.load() != waiters_) std::this_thread::yield();
    // They are about to wait; there is no portable way to see that they sleep.
    std::this_thread::sleep_for(std::chrono::microseconds(1000 + 20 * waiters_));
    const std::int64_t start = NowNs();
    if (kind == Kind::kOurs) {
      ours_.Request();
    } else {
      peer_.Request();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return awake_ == waiters_; });
    if (kind == Kind::kOurs) {
      ours_.Clear();
    } else {
      peer_.Clear();
    }
    return static_cast<double>(last_awake_ - start) / 1000;
  }

 private:
  void Begin(Kind kind) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      kind_ = kind;
      entering_.store(0);
      awake_ = 0;
      last_awake_ = 0;
      ++sample_;
    }
    changed_.notify_all();
  }

  void Run() {
    for (std::uint64_t seen = 0;;) {
      Kind kind;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [&] { return sample_ != seen; });
        seen = sample_;
        kind = kind_;
      }
      if (kind == Kind::kQuit) return;
      entering_.fetch_add(1);
      if (kind == Kind::kOurs) {
        ours_.Wait();
      } else {
        peer_.Wait();
      }
      const std::int64_t now = NowNs();
      const std::lock_guard<std::mutex> lock(mutex_);
      last_awake_ = std::max(last_awake_, now);
      // The others are told only when all have woken: it must not disturb them.
      if (++awake_ == waiters_) changed_.notify_all();
    }
  }

  const int waiters_;
  Allstop ours_;
  Bare peer_;
  std::atomic<int> entering_{0};
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  Kind kind_ = Kind::kOurs;
  std::uint64_t sample_ = 0;
  int awake_ = 0;
  std::int64_t last_awake_ = 0;
  std::vector<std::thread> threads_;
};

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

void Print(const char* name, const std::vector<double>& values) {
  std::printf("\"%s\": [", name);
  for (std::size_t i = 0; i < values.size(); ++i) std::printf(i ? ", %.3f" : "%.3f", values[i]);
  std::printf("]");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int waiters = std::atoi(argv[1]);
  const int rounds = std::atoi(argv[2]);
  const int samples = std::atoi(argv[3]);
  std::vector<double> ours;
  std::vector<double> peer;
  Bench bench(waiters);
  for (int round = -1; round < rounds; ++round) {  // the first one warms up
    std::vector<double> round_ours;
    std::vector<double> round_peer;
    for (int sample = 0; sample < samples; ++sample) {
      // In turn, and not always the same one first.
      for (int turn = 0; turn < 2; ++turn) {
        const bool is_ours = (turn + sample) % 2 == 0;
        auto& values = is_ours ? round_ours : round_peer;
        values.push_back(bench.SampleUs(is_ours ? Kind::kOurs : Kind::kPeer));
      }
    }
    if (round < 0) continue;
    ours.push_back(Median(round_ours));
    peer.push_back(Median(round_peer));
  }
  std::printf("{");
  Print("ours", ours);
  std::printf(", ");
  Print("peer", peer);
  std::printf("}\n");
}
