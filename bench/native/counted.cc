// The operations of the core that bench/guard counts, each COUNT times. Under callgrind each is a
// part of its own of the output, with the operation's name as trigger.
//
//   counted COUNT
//
// prints {"<operation>": A, ...}: allocations of one operation.
#include <semaphore.h>
#include <valgrind/callgrind.h>

#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>

#include "handle.h"

namespace {

std::atomic<long> allocations{0};

}  // namespace

// Takes the place of glibc's malloc in this program, for operator new, too.
extern "C" void* __libc_malloc(std::size_t size);
extern "C" void* malloc(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}

namespace {

constexpr int kHooks = 10'000;
int count = 0;
const char* separator = "{";

// CALLGRIND_DUMP_STATS_AT writes the counts so far into a part and sets them to zero.
template <typename Body>
void Count(const char* name, Body body) {
  body();  // what is allocated once, and pages that are touched first, do not count
  CALLGRIND_ZERO_STATS;
  const long before = allocations;
  for (int i = 0; i < count; ++i) body();
  const double each = static_cast<double>(allocations - before) / count;
  CALLGRIND_DUMP_STATS_AT(name);
  std::printf("%s\"%s\": %.3f", separator, name, each);
  separator = ", ";
}

void Join(const allstop_coordinator& coord) {
  allstop_thread* thread = nullptr;
  allstop_thread_register(&coord, allstop_str("reader"), 0, &thread);
  allstop_thread_done(&coord, thread, nullptr);
  allstop_join(&coord, INFINITY, 0);
}

// From a request until a thread that waits for it has said that it is awake.
class Waiter {
 public:
  explicit Waiter(const allstop_coordinator& coord) : coord_(coord) {
    for (sem_t* const each : {&about_, &awake_, &next_}) sem_init(each, 0, 0);
    thread_ = std::thread([this] {
      while (!end_) {
        sem_post(&about_);
        allstop_wait_for_stop(&coord_, INFINITY);
        sem_post(&awake_);
        sem_wait(&next_);
      }
    });
  }
  ~Waiter() {
    sem_wait(&about_);  // the thread looks at end_ only after its next wait
    end_ = true;
    allstop_request_stop(&coord_, nullptr);
    sem_post(&next_);
    thread_.join();
    allstop_clear_stop(&coord_);
  }
  void WakeOnce() {
    sem_wait(&about_);
    allstop_request_stop(&coord_, nullptr);
    sem_wait(&awake_);
    allstop_clear_stop(&coord_);
    sem_post(&next_);
  }

 private:
  const allstop_coordinator& coord_;
  sem_t about_;  // posted before each wait
  sem_t awake_;  // posted after each wait
  sem_t next_;   // posted when the stop is cleared
  std::atomic<bool> end_{false};
  std::thread thread_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  count = std::atoi(argv[1]);
  const auto coordinator = allstop::bench::MakeCoordinator();
  const allstop_coordinator coord = allstop::bench::HandleOf(coordinator);

  Count("should-stop", [&] {
    if (allstop_should_stop(&coord)) std::abort();
    asm volatile("" ::: "memory");
  });
  Count("request-and-clear", [&] {
    allstop_request_stop(&coord, nullptr);
    allstop_clear_stop(&coord);
  });
  {
    Waiter waiter(coord);
    Count("request-to-wake", [&] { waiter.WakeOnce(); });
  }
  {
    const auto joined = allstop::bench::MakeCoordinator();
    const allstop_coordinator handle = allstop::bench::HandleOf(joined);
    Count("register-and-join", [&] { Join(handle); });
  }
  {
    // The oldest of many hooks is removed, and a new one takes the last place.
    const auto hooked = allstop::bench::MakeCoordinator();
    allstop::core::NewThread hook;
    hook.name = "hook";
    hook.kind = allstop::core::ThreadKind::kHook;
    std::uint64_t oldest = hooked->RegisterThread(hook);
    for (int i = 1; i < kHooks; ++i) hooked->RegisterThread(hook);
    Count("hook-of-many", [&] {
      hooked->EndThread(oldest++);
      hooked->RegisterThread(hook);
    });
  }
  Count("child", [&] { coordinator->CreateChild({"child", {}}); });
  Count("coordinator", [] { allstop::bench::MakeCoordinator(); });

  allstop_queue_options options = {};
  options.size = sizeof(options);
  options.capacity = 1024;
  allstop_queue queue = {};
  allstop_queue_create(&allstop::abi::Table(), &options, &queue);
  Count("queue-push-and-pop", [&] {
    const std::uint64_t value = 1;
    allstop_item item;
    allstop_queue_enqueue(&queue, &value, sizeof(value), INFINITY);
    allstop_queue_dequeue(&queue, &item, INFINITY);
    allstop_item_release(&item);
  });
  allstop_queue_release(&queue);
  std::printf("}\n");
}
