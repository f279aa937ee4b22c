#include "pool.h"

#include <stdexcept>

namespace native_worker {
namespace {

bool IsPrime(std::int64_t number) {
  for (std::int64_t divisor = 2; divisor * divisor <= number; ++divisor) {
    if (number % divisor == 0) return false;
  }
  return number > 1;
}

// The job: replace it by yours. Nobody can interrupt it, so it asks now and then.
std::uint32_t CountPrimes(const allstop::Coordinator& coord, std::int64_t limit) {
  if (limit < 0) throw std::invalid_argument("the limit is negative");
  std::uint32_t count = 0;
  for (std::int64_t number = 0; number < limit && !coord.ShouldStop(); ++number) {
    if (IsPrime(number)) ++count;
  }
  return count;
}

// "name: message" of the error that stopped us, or nothing if there was none.
std::string DescribeStop(const allstop::Coordinator& coord) {
  try {
    allstop::RaiseRequestedException(coord);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace

std::shared_ptr<Pool> Pool::Start(const allstop::Coordinator& coord, std::uint32_t threads) {
  auto pool = std::make_shared<Pool>();
  try {
    for (std::uint32_t i = 1; i <= threads; ++i) {
      // Detached: nobody may wait on a JavaScript thread. `await coord.join()` does.
      allstop::Thread(coord, "worker " + std::to_string(i), [pool](const auto& shared) {
        Run(shared, pool);
      }).Detach();
    }
  } catch (...) {
    pool->Close();  // those that were started end
    throw;
  }
  return pool;
}

// What this throws stops everybody, and `await coord.join()` throws it in JavaScript.
void Pool::Run(const allstop::Coordinator& coord, const std::shared_ptr<Pool>& pool) {
  // A condition variable hears nothing of a stop: it has to be told. With the mutex, so
  // that the stop cannot come between Take's question and its wait.
  const allstop::StopCallback wake(coord, [&pool] {
    const std::lock_guard<std::mutex> lock(pool->mutex_);
    pool->changed_.notify_all();
  });
  std::int64_t limit = 0;
  while (pool->Take(coord, &limit)) pool->Finish(CountPrimes(coord, limit));
  if (!coord.ShouldStop()) return;
  std::string stopped_by = DescribeStop(coord);
  const std::lock_guard<std::mutex> lock(pool->mutex_);
  pool->stats_.stopped_by = std::move(stopped_by);
}

// Blocks until there is a job. False: there will be none.
bool Pool::Take(const allstop::Coordinator& coord, std::int64_t* limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  ++stats_.waiting;
  changed_.wait(lock, [&] { return coord.ShouldStop() || closed_ || !queue_.empty(); });
  --stats_.waiting;
  if (coord.ShouldStop() || queue_.empty()) return false;
  *limit = queue_.front();
  queue_.pop_front();
  return true;
}

void Pool::Finish(std::uint32_t result) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++stats_.done;
  stats_.total += result;
}

void Pool::Push(std::int64_t limit) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (closed_) throw std::logic_error("The pool is closed");
  queue_.push_back(limit);
  changed_.notify_one();
}

void Pool::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

Stats Pool::GetStats() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  Stats stats = stats_;
  stats.queued = static_cast<std::uint32_t>(queue_.size());
  return stats;
}

}  // namespace native_worker
