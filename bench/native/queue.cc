// From C++ threads to C++ threads through a queue, one item of 8 bytes at a time.
//
//   queue PRODUCERS CONSUMERS ITEMS ROUNDS
//
// prints {"ours": [...], "mutex": [...], "spin": [...]}: nanoseconds for each item, of
// each round. All have room for 1024 items.
#include <allstop/allstop.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "handle.h"

namespace {

constexpr std::size_t kCapacity = 1024;

class Allstop {
 public:
  Allstop() {
    allstop_queue_options options = {};
    options.size = sizeof(options);
    options.capacity = kCapacity;
    allstop_queue_create(&allstop::abi::Table(), &options, &queue_);
  }
  ~Allstop() { allstop_queue_release(&queue_); }
  void Enqueue(std::uint64_t value) {
    allstop_queue_enqueue(&queue_, &value, sizeof(value), INFINITY);
  }
  void Dequeue() {
    allstop_item item;
    allstop_queue_dequeue(&queue_, &item, INFINITY);
    allstop_item_release(&item);
  }

 private:
  allstop_queue queue_ = {};
};

// What everybody writes.
class MutexQueue {
 public:
  void Enqueue(std::uint64_t value) {
    std::unique_lock<std::mutex> lock(mutex_);
    not_full_.wait(lock, [&] { return values_.size() < kCapacity; });
    values_.push_back(value);
    lock.unlock();
    not_empty_.notify_one();
  }
  void Dequeue() {
    std::unique_lock<std::mutex> lock(mutex_);
    not_empty_.wait(lock, [&] { return !values_.empty(); });
    values_.pop_front();
    lock.unlock();
    not_full_.notify_one();
  }

 private:
  std::mutex mutex_;
  std::condition_variable not_empty_;
  std::condition_variable not_full_;
  std::deque<std::uint64_t> values_;
};

// A ring of slots with turns, as rigtorp's MPMCQueue: who has to wait spins.
class SpinQueue {
 public:
  SpinQueue() : slots_(std::make_unique<Slot[]>(kCapacity)) {}
  void Enqueue(std::uint64_t value) {
    const std::size_t ticket = head_.fetch_add(1);
    Slot& slot = slots_[ticket % kCapacity];
    Wait(slot, ticket / kCapacity * 2);
    slot.value = value;
    slot.turn.store(ticket / kCapacity * 2 + 1, std::memory_order_release);
  }
  void Dequeue() {
    const std::size_t ticket = tail_.fetch_add(1);
    Slot& slot = slots_[ticket % kCapacity];
    Wait(slot, ticket / kCapacity * 2 + 1);
    slot.turn.store(ticket / kCapacity * 2 + 2, std::memory_order_release);
  }

 private:
  struct alignas(64) Slot {
    std::atomic<std::size_t> turn{0};
    std::uint64_t value = 0;
  };
  static void Wait(Slot& slot, std::size_t turn) {
    // The yield is ours: with more threads than processors nothing would get on.
    for (int spins = 0; slot.turn.load(std::memory_order_acquire) != turn; ++spins) {
      if (spins > 1000) std::this_thread::yield();
    }
  }
  std::unique_ptr<Slot[]> slots_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
};

template <typename Queue>
double NsPerItem(int producers, int consumers, int items) {
  Queue queue;
  std::vector<std::thread> threads;
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < producers; ++i) {
    threads.emplace_back([&] {
      for (int item = 0; item < items / producers; ++item) queue.Enqueue(item);
    });
  }
  for (int i = 0; i < consumers; ++i) {
    threads.emplace_back([&] {
      for (int item = 0; item < items / consumers; ++item) queue.Dequeue();
    });
  }
  for (auto& thread : threads) thread.join();
  const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
  return took.count() / items;
}

void Print(const char* name, const std::vector<double>& values, const char* after) {
  std::printf("\"%s\": [", name);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::printf("%s%.2f", i > 0 ? ", " : "", values[i]);
  }
  std::printf("]%s", after);
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 5) return 2;
  const int producers = std::atoi(arguments[1]);
  const int consumers = std::atoi(arguments[2]);
  const int items = std::atoi(arguments[3]);
  std::vector<double> ours;
  std::vector<double> mutex;
  std::vector<double> spin;
  for (int round = 0; round < std::atoi(arguments[4]); ++round) {
    ours.push_back(NsPerItem<Allstop>(producers, consumers, items));
    mutex.push_back(NsPerItem<MutexQueue>(producers, consumers, items));
    spin.push_back(NsPerItem<SpinQueue>(producers, consumers, items));
  }
  std::printf("{");
  Print("ours", ours, ", ");
  Print("mutex", mutex, ", ");
  Print("spin", spin, "}\n");
  return 0;
}
