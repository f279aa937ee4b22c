// Gates and barriers, by which tests order threads instead of sleeping.
#ifndef ALLSTOP_TEST_NATIVE_GATE_H_
#define ALLSTOP_TEST_NATIVE_GATE_H_

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace allstop::test {

// Opens once and stays open: Wait returns from then on.
class Gate {
 public:
  void Open() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      open_ = true;
    }
    opened_.notify_all();
  }

  void Wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    opened_.wait(lock, [this] { return open_; });
  }

  // Returns whether the gate opens within this time, for an event that must not happen. In a
  // correct program it does not open at all, so a slow machine cannot make the test fail.
  bool OpensWrongly(std::chrono::milliseconds within = std::chrono::milliseconds(30)) {
    std::unique_lock<std::mutex> lock(mutex_);
    return opened_.wait_for(lock, within, [this] { return open_; });
  }

  bool is_open() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return open_;
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable opened_;
  bool open_ = false;
};

// Arrive blocks until `threads` threads have arrived; it can be used again and again.
class Barrier {
 public:
  explicit Barrier(int threads) : threads_(threads) {}

  void Arrive() {
    std::unique_lock<std::mutex> lock(mutex_);
    const int round = round_;
    if (++arrived_ == threads_) {
      arrived_ = 0;
      ++round_;
      all_arrived_.notify_all();
      return;
    }
    all_arrived_.wait(lock, [&] { return round_ != round; });
  }

 private:
  const int threads_;
  std::mutex mutex_;
  std::condition_variable all_arrived_;
  int arrived_ = 0;
  int round_ = 0;
};

}  // namespace allstop::test

#endif  // ALLSTOP_TEST_NATIVE_GATE_H_
