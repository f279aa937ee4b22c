// Three threads make calls of the C table on one coordinator, its child and a queue at the same
// time. Each thread has a third of the input as its program. Whatever the order, one call makes
// the stop, each callback runs once, and each item comes out once.
#include <allstop/allstop.h>

#include <atomic>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "errors.h"
#include "input.h"

namespace allstop::fuzz {
namespace {

constexpr int kThreads = 3;

struct World {
  allstop_coordinator coordinator = {};
  allstop_coordinator child = {};
  allstop_queue queue = {};
  std::size_t capacity = 1;
  std::atomic<int> made{0};
  std::atomic<int> ready{0};
};

struct Outcome {
  std::vector<std::uint32_t> enqueued;
  std::vector<std::uint32_t> dequeued;
};

void CountRun(void* context) { ++*static_cast<std::atomic<int>*>(context); }

void Call(World& world, std::uint32_t thread, Input& input, Outcome& outcome) {
  const allstop_coordinator& coordinator = input.Flag() ? world.coordinator : world.child;
  switch (input.Number(6)) {
    case 0: {
      const GivenError error(input);
      int made = 0;
      const auto status = allstop_request_stop_made(
          &coordinator, input.Flag() && error.is_valid() ? error.get() : nullptr, &made);
      MUST(status == ALLSTOP_OK);
      if (coordinator.state == world.coordinator.state) world.made += made;
      return;
    }
    case 1: {
      std::atomic<int> runs{0};
      allstop_callback* callback = nullptr;
      MUST(allstop_on_stop(&coordinator, CountRun, &runs, &callback) == ALLSTOP_OK);
      if (input.Flag()) std::this_thread::yield();
      allstop_callback_release(&coordinator, callback);
      // A stop may have released the callback before it ran, but not run it twice.
      MUST(runs.load() <= 1);
      return;
    }
    case 2: {
      const std::uint32_t item = thread << 16 | static_cast<std::uint32_t>(outcome.enqueued.size());
      const auto status = allstop_queue_enqueue(&world.queue, &item, sizeof(item), 0);
      MUST(status == ALLSTOP_OK || status == ALLSTOP_DEADLINE_EXCEEDED ||
           status == ALLSTOP_CANCELLED);
      if (status == ALLSTOP_OK) outcome.enqueued.push_back(item);
      return;
    }
    case 3: {
      allstop_item items[4] = {};
      std::size_t count = 0;
      const std::size_t least = std::min(1 + input.Number(3), world.capacity);
      const auto status = allstop_queue_dequeue_least(&world.queue, items, 4, least, 0, &count);
      MUST(status == ALLSTOP_OK || status == ALLSTOP_DEADLINE_EXCEEDED ||
           status == ALLSTOP_CANCELLED || status == ALLSTOP_OUT_OF_RANGE);
      MUST((status == ALLSTOP_OK) == (count > 0));
      for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t item = 0;
        MUST(items[i].size == sizeof(item));
        std::memcpy(&item, allstop_item_data(&items[i]), sizeof(item));
        outcome.dequeued.push_back(item);
        allstop_item_release(&items[i]);
      }
      return;
    }
    case 4: {
      allstop_thread* token = nullptr;
      MUST(allstop_thread_register(&coordinator, allstop_str("t"), 0, &token) == ALLSTOP_OK);
      MUST(allstop_thread_enter(&coordinator, token) == ALLSTOP_OK);
      MUST(allstop_join(&coordinator, 0, 0) == ALLSTOP_SELF_JOIN);
      allstop_thread_done(&coordinator, token, nullptr);
      return;
    }
    case 5: {
      allstop_coordinator child = {};
      MUST(allstop_child(&coordinator, nullptr, &child) == ALLSTOP_OK);
      if (allstop_should_stop(&coordinator)) MUST(allstop_should_stop(&child));
      allstop_release(&child);
      return;
    }
    default: {
      allstop_record* record = nullptr;
      MUST(allstop_stop_record(&coordinator, &record) == ALLSTOP_OK);
      if (record != nullptr) MUST(allstop_should_stop(&coordinator));
      allstop_record_release(&coordinator, record);
      if (input.Number(7) == 7) MUST(allstop_queue_close(&world.queue, 0) == ALLSTOP_OK);
      return;
    }
  }
}

void RunThread(World& world, std::uint32_t thread, std::string program, Outcome& outcome) {
  Input input(reinterpret_cast<const std::uint8_t*>(program.data()), program.size());
  ++world.ready;
  while (world.ready < kThreads) std::this_thread::yield();  // so that the programs overlap
  for (int calls = 0; calls < 60 && !input.IsEmpty(); ++calls) {
    Call(world, thread, input, outcome);
  }
}

}  // namespace
}  // namespace allstop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace allstop::fuzz;
  World world;
  const allstop_table* const table = allstop_library_table();
  MUST(allstop_create(table, nullptr, &world.coordinator) == ALLSTOP_OK);
  MUST(allstop_child(&world.coordinator, nullptr, &world.child) == ALLSTOP_OK);
  allstop_queue_options options = {};
  options.size = sizeof(options);
  options.coordinator = world.coordinator.state;
  options.capacity = world.capacity = size > 0 ? 1 + data[0] % 8 : 1;
  MUST(allstop_queue_create(table, &options, &world.queue) == ALLSTOP_OK);

  const std::string all(reinterpret_cast<const char*>(data), size);
  Outcome outcomes[kThreads];
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    const std::size_t third = size / kThreads;
    threads.emplace_back(RunThread, std::ref(world), i, all.substr(i * third, third),
                         std::ref(outcomes[i]));
  }
  for (std::thread& thread : threads) thread.join();

  const bool is_stopped = allstop_should_stop(&world.coordinator) != 0;
  MUST(world.made == (is_stopped ? 1 : 0));
  if (is_stopped) MUST(allstop_should_stop(&world.child));
  const auto joined = allstop_join(&world.coordinator, 0, 0);
  MUST(joined == ALLSTOP_OK || (is_stopped && joined == ALLSTOP_STOPPED_BY_ERROR));

  std::multiset<std::uint32_t> in;
  std::multiset<std::uint32_t> out;
  for (const Outcome& outcome : outcomes) {
    in.insert(outcome.enqueued.begin(), outcome.enqueued.end());
    out.insert(outcome.dequeued.begin(), outcome.dequeued.end());
  }
  allstop_item item = {};
  while (allstop_queue_dequeue(&world.queue, &item, 0) == ALLSTOP_OK) {
    std::uint32_t rest = 0;
    std::memcpy(&rest, allstop_item_data(&item), sizeof(rest));
    out.insert(rest);
    allstop_item_release(&item);
  }
  MUST(in == out);
  allstop_queue_release(&world.queue);
  allstop_release(&world.child);
  allstop_release(&world.coordinator);
  return 0;
}
