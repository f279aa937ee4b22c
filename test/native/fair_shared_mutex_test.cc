#include "core/fair_shared_mutex.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

namespace allstop::core {
namespace {

using std::chrono::steady_clock;

TEST(FairSharedMutexTest, AWriterGoesBeforeTheReadersThatComeAfterIt) {
  FairSharedMutex mutex;
  std::atomic<int> entries{0};
  std::atomic<bool> is_over{false};
  // Each of two readers stays until the other one has come in, so that the mutex is never without
  // readers; but not for ever: the other one may wait for the writer, which waits for this one.
  const auto read = [&] {
    while (!is_over) {
      mutex.lock_shared();
      const int own = ++entries;
      const auto until = steady_clock::now() + std::chrono::milliseconds(250);
      while (entries == own && !is_over && steady_clock::now() < until) std::this_thread::yield();
      mutex.unlock_shared();
    }
  };
  std::thread one(read);
  std::thread other(read);
  while (entries < 2) std::this_thread::yield();
  for (int write = 0; write < 5; ++write) {  // else it never ends
    mutex.lock();
    mutex.unlock();
  }
  is_over = true;
  one.join();
  other.join();
}

}  // namespace
}  // namespace allstop::core
