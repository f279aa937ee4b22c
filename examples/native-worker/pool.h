// Worker threads that take jobs from one queue. Nothing of Node.
#ifndef NATIVE_WORKER_POOL_H_
#define NATIVE_WORKER_POOL_H_

#include <allstop/allstop.hpp>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>

namespace native_worker {

// What the threads are at.
struct Stats {
  std::uint32_t waiting = 0;  // threads without a job
  std::uint32_t queued = 0;   // jobs without a thread
  std::uint32_t done = 0;     // jobs
  double total = 0;           // of what the jobs came to
  std::string stopped_by;     // the error that stopped the threads, as they learnt it
};

class Pool {
 public:
  // Starts `threads` threads, registered with `coord`. They end when it stops, or when
  // the pool is closed and the queue is empty. They own the pool together with the
  // caller, as they may outlive whatever started them.
  static std::shared_ptr<Pool> Start(const allstop::Coordinator& coord, std::uint32_t threads);

  // Counts the primes below `limit`. A negative one makes the thread throw.
  void Push(std::int64_t limit);
  // No more jobs.
  void Close();
  Stats GetStats() const;

 private:
  static void Run(const allstop::Coordinator& coord, const std::shared_ptr<Pool>& pool);
  bool Take(const allstop::Coordinator& coord, std::int64_t* limit);
  void Finish(std::uint32_t result);

  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<std::int64_t> queue_;
  bool closed_ = false;
  Stats stats_;
};

}  // namespace native_worker

#endif  // NATIVE_WORKER_POOL_H_
