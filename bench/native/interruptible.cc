// How long after the stop each blocking call ends under an Interruptible, as a table, and what
// other threads notice: `interruptible [ROUNDS]`. Linux.
#include <algorithm>
#include <allstop/allstop.hpp>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "../../test/native/library/blocking_calls.h"

namespace {

using Clock = std::chrono::steady_clock;

// Whether the thread `id` is asleep in the kernel.
bool IsBlocked(pid_t id) {
  const std::string path = "/proc/self/task/" + std::to_string(id) + "/stat";
  std::FILE* const file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return false;
  char state = '?';
  const int read = std::fscanf(file, "%*d %*s %c", &state);
  std::fclose(file);
  return read == 1 && state == 'S';
}

struct Result {
  double ms;  // from RequestStop to the end of the call
  bool interrupted;
};

// `release` ends a call that the stop has not ended within half a second.
Result Measure(const std::function<long()>& block, const std::function<void()>& release) {
  const auto coord = allstop::Coordinator::Create();
  std::atomic<pid_t> id{0};
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;  // guarded by mutex
  Result result = {};
  std::thread thread([&] {
    long returned;
    int error;
    {
      const allstop::Interruptible guard(coord);
      id = static_cast<pid_t>(syscall(SYS_gettid));
      errno = 0;
      returned = block();
      error = errno;
    }
    const std::lock_guard<std::mutex> lock(mutex);
    ended = true;
    result.interrupted = returned == -1 && error == EINTR;
    changed.notify_all();
  });
  while (id == 0 || !IsBlocked(id)) std::this_thread::yield();
  const auto stopped = Clock::now();
  coord.RequestStop();
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait_for(lock, std::chrono::milliseconds(500), [&] { return ended; });
    result.ms = std::chrono::duration<double, std::milli>(Clock::now() - stopped).count();
  }
  if (release) release();
  thread.join();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 31;
  allstop::test::BlockingCalls calls;

  // Other threads: one blocked all the time, one that sleeps again and again.
  int pipe_ends[2];
  if (pipe(pipe_ends) != 0) return 1;
  std::atomic<bool> end{false};
  std::atomic<long> interrupted{0}, made{0};
  std::thread blocked([&] {
    char byte;
    ++made;
    if (read(pipe_ends[0], &byte, 1) != 1) ++interrupted;
  });
  std::thread sleeps([&] {
    const timespec moment = {0, 200'000};
    for (; !end; ++made) {
      if (nanosleep(&moment, nullptr) != 0) ++interrupted;
    }
  });

  std::puts("| call | ended with EINTR | median, ms | slowest, ms |\n| --- | --- | --- | --- |");
  for (const auto& call : calls.All()) {
    std::vector<double> times;
    int ended = 0;
    for (int round = 0; round < rounds; ++round) {
      const Result result = Measure(call.block, nullptr);
      ended += result.interrupted;
      times.push_back(result.ms);
    }
    std::sort(times.begin(), times.end());
    std::printf("| %s | %d of %d | %.2f | %.2f |\n", call.name, ended, rounds,
                times[times.size() / 2], times.back());
  }

  std::mutex locked;
  locked.lock();
  const Result lock = Measure(
      [&] {
        const std::lock_guard<std::mutex> inside(locked);
        return 0L;
      },
      [&] { locked.unlock(); });
  std::mutex mutex;
  std::condition_variable condition;
  bool go = false;
  const Result wait = Measure(
      [&] {
        std::unique_lock<std::mutex> inside(mutex);
        condition.wait(inside, [&] { return go; });
        return 0L;
      },
      [&] {
        const std::lock_guard<std::mutex> inside(mutex);
        go = true;
        condition.notify_all();
      });
  const Result sleep = Measure(
      [] {
        std::this_thread::sleep_for(std::chrono::milliseconds(800));
        return 0L;
      },
      nullptr);
  for (const auto& [name, result] :
       {std::pair("pthread_mutex_lock()", lock), std::pair("pthread_cond_wait()", wait),
        std::pair("std::this_thread::sleep_for()", sleep)}) {
    std::printf("| %s | %s | | |\n", name, result.interrupted ? "1 of 1" : "no, in 500 ms");
  }

  end = true;
  if (write(pipe_ends[1], "x", 1) != 1) return 1;
  blocked.join();
  sleeps.join();
  std::printf("\nOther threads: %ld calls made meanwhile, %ld of them interrupted.\n", made.load(),
              interrupted.load());
  return interrupted == 0 ? 0 : 1;
}
