// An attack on the library from outside, for the sanitizers: threads make random calls of the C++
// headers on coordinators, children and queues that they share, and fork, while stops, callbacks
// and deadlines of others run.
//   allstop_attack SECONDS [SEED]
// scripts/test-attack.sh builds and runs it. Exit code 0: no thread has hung, and each forked
// process ended with 0. A thread that makes no step for a minute, or a forked process that does not
// end in a minute, ends the program with 1. The seed decides the calls of each thread, but not how
// they interleave.
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_bounded_queue.hpp>
#include <allstop/allstop_bridges.hpp>
#include <allstop/allstop_interruptible.hpp>
#include <allstop/allstop_looper.hpp>
#include <allstop/allstop_queue_runner.hpp>
#include <allstop/allstop_wait_until_stop.hpp>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace allstop {
namespace {

using std::chrono::milliseconds;
using Random = std::mt19937;
using Clock = std::chrono::steady_clock;

constexpr int kActors = 6;
constexpr std::size_t kSlots = 5;
constexpr std::chrono::seconds kHangs(60);

// What the sanitizers can follow. A fork takes AddressSanitizer's allocator as it is at that
// moment, with the locks of other threads, where the C library's is whole in the new process.
// ThreadSanitizer knows no thread that a forked process makes, and its own locks may hang there.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kForks = false;
#else
constexpr bool kForks = true;
#endif
#if defined(__SANITIZE_THREAD__)
constexpr bool kHasThreads = false;
#else
constexpr bool kHasThreads = true;
#endif

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "attack: %s\n", what.c_str());
  _exit(1);
}

// What the actors share. A slot's coordinator and queue are replaced now and then, while others
// still use the former ones.
struct World {
  std::mutex mutex;
  std::vector<Coordinator> coordinators;  // guarded by mutex
  std::vector<BoundedQueue> queues;       // guarded by mutex
  std::atomic<bool> is_over{false};
  std::atomic<long> steps[kActors] = {};
  std::atomic<int> last[kActors] = {};
  std::atomic<long> forks{0};
  // Under ThreadSanitizer: another thread held a lock of its allocator as the process was forked.
  std::atomic<long> stuck{0};
  std::atomic<long> threads{0};  // detached ones that are alive
};

void Throw(Random& random) {
  switch (random() % 6) {
    case 0: throw std::runtime_error("a runtime error");
    case 1: throw 42;
    case 2: throw std::system_error(ENOENT, std::generic_category(), "no file");
    case 3: throw Error{"TypeError", "an error of the addon"};
    case 4: try { throw std::logic_error("the cause");
      } catch (...) {
        std::throw_with_nested(std::runtime_error("the outer one"));
      }
    default: throw std::string("a text");
  }
}

class Actor {
 public:
  Actor(World& world, int index, unsigned seed) : world_(world), index_(index), random_(seed) {}

  void Run() {
    while (!world_.is_over) Step();
  }

  // In a forked process, which has no other threads: what the process has made itself works.
  // Of the parent's it only destroys what this actor had on its stack.
  int RunForked() {
    const Coordinator own = Coordinator::Create({"forked", {}});
    const Coordinator child = own.Child();
    const BoundedQueue queue(own, 2);
    {
      std::vector<Thread> threads;
      for (unsigned i = 0; kHasThreads && i < 1 + Draw(3); ++i) {
        threads.emplace_back(own, "forked", [i](const Coordinator& coord) {
          if (i == 1) {
            const Interruptible guard(coord);
            while (!coord.ShouldStop()) pause();
          }
          coord.WaitForStop();
          if (i == 2) throw std::runtime_error("of a forked process");
        });
      }
      const StopFd fd(child);
      std::atomic<int> runs{0};
      const StopCallback callback(child, [&runs] { ++runs; });
      if (queue.Enqueue("item") != ALLSTOP_OK) return 2;
      const Deadline deadline = kHasThreads ? own.StopAfter(milliseconds(Draw(20))) : Deadline();
      if (!kHasThreads && own.RequestStop({"TypeError", "asked"}) != ALLSTOP_OK) return 3;
      if (kHasThreads && Draw(2) == 0) {
        const Interruptible guard(child);
        if (!guard) return 4;
        while (!child.ShouldStop()) pause();
      }
      if (!child.WaitForStop()) return 5;
      pollfd polled = {fd.get(), POLLIN, 0};
      if (poll(&polled, 1, -1) != 1 && errno != EINTR) return 6;
    }
    if (own.Join(std::chrono::minutes(1)) != ALLSTOP_STOPPED_BY_ERROR) return 7;
    if (own.ClearStop() != ALLSTOP_OK || child.ClearStop() != ALLSTOP_OK) return 8;
    return own.FirstError() ? 9 : 0;
  }

 private:
  unsigned Draw(unsigned below) { return static_cast<unsigned>(random_()) % below; }

  Coordinator Any() {
    const std::lock_guard<std::mutex> lock(world_.mutex);
    return world_.coordinators[Draw(kSlots)];
  }
  BoundedQueue AnyQueue() {
    const std::lock_guard<std::mutex> lock(world_.mutex);
    return world_.queues[Draw(kSlots)];
  }
  // The former ones are released with no lock held.
  void Replace(Coordinator made) {
    BoundedQueue queue(made, 1 + Draw(4));
    const std::lock_guard<std::mutex> lock(world_.mutex);
    const unsigned slot = Draw(kSlots);
    std::swap(world_.coordinators[slot], made);
    std::swap(world_.queues[slot], queue);
  }
  Milliseconds Short() { return Milliseconds(Draw(30) / 10.0); }

  void Detached(const Coordinator& coord, const char* name, unsigned seed) {
    if (world_.threads > 40) return;
    ++world_.threads;
    World& world = world_;
    struct Alive {
      explicit Alive(World& counted) : world(counted) {}
      Alive(const Alive&) = delete;
      ~Alive() { --world.threads; }
      World& world;
    };
    const auto alive = std::make_shared<Alive>(world);
    Start(coord, name, [alive, seed](const Coordinator& own) {
      Random random(seed);
      own.WaitForStop(Milliseconds(random() % 20));
      if (random() % 4 == 0) Throw(random);
      if (random() % 4 == 0) own.RequestStop();
    });
  }

  void Fork() {
    if (!kForks) return;
    ++world_.forks;
    const Coordinator coord = Any();
    const Interruptible inherited(coord);
    const pid_t child = fork();
    if (child < 0) return;
    if (child == 0) {
      alarm(kHasThreads ? 60 : 5);  // SIGALRM ends it
      _exit(RunForked());
    }
    int status = 0;
    while (waitpid(child, &status, 0) != child) {
    }
    if (!kHasThreads && WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
      ++world_.stuck;
    } else if (status != 0) {
      Fail("a forked process ended with the status " + std::to_string(status) + " (" +
           (WIFSIGNALED(status) ? "signal" : "exit code") + ")");
    }
  }

  void Step() {
    const int what = Draw(64) == 0 ? 24 : static_cast<int>(Draw(24));
    world_.last[index_] = what;
    Do(what);
    ++world_.steps[index_];
  }

  void Do(int what) {
    const Coordinator coord = Any();
    switch (what) {
      case 0: coord.RequestStop(); break;
      case 1: static_cast<void>(coord.RequestStop({"TypeError", "asked"})); break;
      case 2:
      case 3:
      case 4:
      case 5: coord.ClearStop(); break;
      case 6: Replace(Coordinator::Create()); break;
      case 7: {
        Coordinator child = coord.Child();
        if (child && Draw(3) == 0)
          Replace(std::move(child));
        else if (child)
          child.RequestStop();
        break;
      }
      case 8: {
        Coordinator shallow = Coordinator::Create().Child().Child();
        Replace(std::move(shallow));
        break;
      }
      case 9: coord.WaitForStop(Short()); break;
      case 10:
        if (coord.Join(Short(), Draw(2) == 0) == ALLSTOP_SELF_JOIN) Fail("an actor is no thread");
        break;
      case 11: Detached(coord, "detached", random_()); break;
      case 12: {
        Random& random = random_;
        Thread thread(coord, "joined", [&random] {
          if (random() % 2 == 0) Throw(random);
        });
        break;
      }
      case 13: {
        const Coordinator other = Any();
        std::atomic<int> runs{0};
        {
          const unsigned act = Draw(4);
          const StopCallback callback(coord, [&runs, act, other, coord] {
            ++runs;
            if (act == 0) other.RequestStop();
            if (act == 1) coord.ClearStop();
            if (act == 2) other.Child().RequestStop();
          });
          if (Draw(2) == 0) coord.RequestStop();
        }
        if (runs > 1) Fail("a stop callback ran " + std::to_string(runs) + " times");
        break;
      }
      case 14: {
        Deadline deadline = coord.StopAfter(Short());
        if (Draw(2) == 0) coord.WaitForStop(Short());
        break;
      }
      case 15: {
        const Deadline deadline = coord.StopAfter(Short());
        const Interruptible guard(coord);
        const timespec time = {0, 2'000'000};
        if (!coord.ShouldStop()) nanosleep(&time, nullptr);
        break;
      }
      case 16: {
        Registration registration(coord, "registration");
        registration.Enter();
        if (Draw(2) == 0) {
          try {
            Throw(random_);
          } catch (...) {
            registration.Fail();
          }
        }
        break;
      }
      case 17: {
        const BoundedQueue queue = AnyQueue();
        queue.Enqueue("text", Short());
        Item item;
        queue.Dequeue(item, Short());
        break;
      }
      case 18: {
        std::vector<Item> items;
        AnyQueue().DequeueMany(items, 1 + Draw(3), Short());
        if (Draw(8) == 0) AnyQueue().Close(Draw(2) == 0);
        break;
      }
      case 19: {
        const StopFd fd(coord);
        pollfd polled = {fd.get(), POLLIN, 0};
        poll(&polled, 1, static_cast<int>(Draw(2)));
        break;
      }
      case 20: {
        LooperThread looper(coord, Short(), [this_many = 3]() mutable {
          if (--this_many == 0) throw std::out_of_range("the looper's end");
        });
        looper.Start();
        if (Draw(2) == 0) coord.RequestStop();
        break;
      }
      case 21: {
        std::unique_ptr<QueueRunner> runner;
        const BoundedQueue queue(coord, 1);
        int left = 3;
        const auto op = [&left](const BoundedQueue& own) {
          return --left < 0 ? Status(ALLSTOP_OUT_OF_RANGE, "no more")
                            : Status(own.Enqueue("op", milliseconds(1)), "full");
        };
        if (QueueRunner::New(queue, {op}, {}, coord, &runner).ok()) runner->Start().IgnoreError();
        break;
      }
      case 22: {
        std::mutex mutex;
        std::condition_variable condition;
        std::unique_lock<std::mutex> lock(mutex);
        const auto end = Clock::now() + milliseconds(Draw(20));  // another actor may clear the stop
        WaitUntilStop(coord, lock, condition, [end] { return Clock::now() > end; });
        break;
      }
      case 23: {
        for (const Error& each : coord.SuppressedErrors()) coord.ReportError(each);
        const std::optional<Error> first = coord.FirstError();
        if (first && Draw(2) == 0) static_cast<void>(coord.RequestStop(*first));
        break;
      }
      default: Fork(); break;
    }
  }

  World& world_;
  const int index_;
  Random random_;
};

int Attack(std::chrono::seconds duration, unsigned seed) {
  World world;
  for (std::size_t i = 0; i < kSlots; ++i) {
    world.coordinators.push_back(Coordinator::Create());
    world.queues.emplace_back(world.coordinators.back(), 2);
  }
  std::vector<std::thread> actors;
  for (int i = 0; i < kActors; ++i) {
    actors.emplace_back([&world, i, seed] { Actor(world, i, seed * 1000 + i).Run(); });
  }
  const auto end = Clock::now() + duration;
  long before[kActors];
  Clock::time_point moved[kActors];
  for (int i = 0; i < kActors; ++i) {
    before[i] = -1;
    moved[i] = Clock::now();
  }
  const auto watch = [&] {
    for (int i = 0; i < kActors; ++i) {
      const long now = world.steps[i];
      if (now != before[i]) moved[i] = Clock::now();
      before[i] = now;
      if (Clock::now() - moved[i] > 2 * kHangs) {
        Fail("actor " + std::to_string(i) + " hangs in call " + std::to_string(world.last[i]));
      }
    }
  };
  while (Clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    watch();
  }
  world.is_over = true;
  for (std::thread& each : actors) each.join();
  while (world.threads > 0) std::this_thread::yield();
  if (world.stuck * 20 > world.forks) Fail("one forked process of 20, or more, hangs");
  long steps = 0;
  for (const auto& each : world.steps) steps += each;
  std::printf("attack: seed %u: %ld calls, %ld forks, %ld stuck in the sanitizer\n", seed, steps,
              world.forks.load(), world.stuck.load());
  return 0;
}

}  // namespace
}  // namespace allstop

int main(int argc, char** argv) {
  const int seconds = argc > 1 ? std::atoi(argv[1]) : 10;
  const unsigned seed = argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 1;
  return allstop::Attack(std::chrono::seconds(seconds), seed);
}
