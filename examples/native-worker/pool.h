// Worker threads that take jobs from one queue. Does not depend on Node.
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

// The state of the pool.
struct Stats {
  std::uint32_t waiting = 0;  // threads that wait for a job
  std::uint32_t queued = 0;   // jobs that wait for a thread
  std::uint32_t done = 0;     // completed jobs
  double total = 0;           // the sum of the jobs' results
  std::string stopped_by;     // "name: message" of the error that stopped the threads
};

class Pool {
 public:
  // Starts `threads` threads, registered with `coord`. They end when `coord` is stopped, or when
  // the pool is closed and its queue is empty. The threads own the pool together with the caller,
  // because they may outlive the caller.
  static std::shared_ptr<Pool> Start(const allstop::Coordinator& coord, std::uint32_t threads);

  // Queues a job: count the primes below `limit`. A negative limit makes the thread throw.
  void Push(std::int64_t limit);
  // Closes the queue: the threads end when it is empty.
  void Close();
  Stats GetStats() const;

 private:
  static void Run(const allstop::Coordinator& coord, const std::shared_ptr<Pool>& pool);
  bool Take(const allstop::Coordinator& coord, std::int64_t* limit);
  void Finish(std::uint32_t result);

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::deque<std::int64_t> queue_;
  bool closed_ = false;
  Stats stats_;
};

}  // namespace native_worker

#endif  // NATIVE_WORKER_POOL_H_
