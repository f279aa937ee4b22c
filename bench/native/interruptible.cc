// How long after the stop each blocking call ends under an Interruptible, and what other threads
// notice. Linux.
//
//   interruptible ROUNDS
//
// prints {"calls": {"<call>": {"ms": [...], "ended": N}, ...}, "others": {"made": N,
// "interrupted": N}}: milliseconds from the stop to the end of the call, how many of the calls
// ended with EINTR, and the calls of the other threads.
#include <algorithm>
#include <allstop/allstop.hpp>
#include <allstop/allstop_interruptible.hpp>
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

Result Measure(const std::function<long()>& block) {
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

  std::printf("{\"calls\": {");
  const char* separator = "";
  for (const auto& call : calls.All()) {
    std::printf("%s\"%s\": {\"ms\": [", separator, call.name);
    separator = ", ";
    int ended = 0;
    for (int round = 0; round < rounds; ++round) {
      const Result result = Measure(call.block);
      ended += result.interrupted;
      std::printf(round == 0 ? "%.4f" : ", %.4f", result.ms);
    }
    std::printf("], \"ended\": %d}", ended);
  }

  end = true;
  if (write(pipe_ends[1], "x", 1) != 1) return 1;
  blocked.join();
  sleeps.join();
  std::printf("}, \"others\": {\"made\": %ld, \"interrupted\": %ld}}\n", made.load(),
              interrupted.load());
}
