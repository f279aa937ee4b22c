// Every allocation of each call fails once. A call that fails so must not be half done, or a
// thread would wait without a limit.
#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "abi/table.h"
#include "core/bounded_queue.h"
#include "core/coordinator.h"
#include "core/stop_timer.h"
#include "gate.h"
#include "requests.h"

namespace {

// How many further allocations of this thread succeed; negative: all.
thread_local int allocations_left = -1;
thread_local bool one_failure_only = false;
thread_local std::size_t bytes_allocated = 0;

void* Allocate(std::size_t size, std::size_t alignment) {
  if (allocations_left == 0) {
    if (one_failure_only) allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  bytes_allocated += size;
  const std::size_t whole_lines = (size + alignment - 1) / alignment * alignment;
  if (void* const memory = std::aligned_alloc(alignment, whole_lines)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size, alignof(std::max_align_t)); }
// Items of a queue are aligned to a cache line.
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
// The arrays, too: those of a sanitizer's runtime do not call the functions above.
void* operator new[](std::size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace allstop::core {
namespace {

using test::Failure;
using test::MakeCoordinator;
using test::Named;
using test::Plain;

// Runs `action` with its first, second ... allocation failing, until none fails. Before each run
// `make` sets up new objects; after it `check` inspects them.
void FailEachAllocation(const std::function<void()>& make, const std::function<void()>& action,
                        const std::function<void(bool threw)>& check) {
  for (int allowed = 0;; ++allowed) {
    ASSERT_LT(allowed, 1'000) << "it never succeeds";
    make();
    bool threw = false;
    allocations_left = allowed;
    try {
      action();
    } catch (const std::bad_alloc&) {
      threw = true;
    }
    allocations_left = -1;
    SCOPED_TRACE("allocations before the failure: " + std::to_string(allowed));
    check(threw);
    if (!threw) return;
  }
}

class Listener : public Observer {
 public:
  void OnStop() override { ++stops; }
  void OnJoinProgress() override { ++progress; }
  int stops = 0;
  int progress = 0;
};

// A coordinator with everything that a stop notifies: children, callbacks, observers, joins.
struct Audience {
  std::shared_ptr<Coordinator> coordinator = MakeCoordinator();
  std::shared_ptr<Coordinator> child = coordinator->CreateChild(Named());
  std::shared_ptr<Coordinator> grandchild = child->CreateChild(Named());
  std::shared_ptr<Listener> listener = std::make_shared<Listener>();
  std::shared_ptr<Listener> listener_of_child = std::make_shared<Listener>();
  std::uint64_t thread = coordinator->RegisterThread(test::Thread("worker"));
  std::uint64_t thread_of_child = child->RegisterThread(test::Thread("worker"));
  std::shared_ptr<Join> join = coordinator->BeginJoin({}, listener);
  std::shared_ptr<Join> join_of_child = child->BeginJoin({}, listener_of_child);
  int callbacks = 0;
  int callbacks_below = 0;  // calls for child and grandchild

  Audience() {
    coordinator->AddObserver(listener, nullptr);
    coordinator->SetInterested(*listener, true);
    child->AddObserver(listener_of_child, nullptr);
    child->SetInterested(*listener_of_child, true);
    const auto count = [](void* context) { ++*static_cast<int*>(context); };
    coordinator->OnStop(count, &callbacks);
    child->OnStop(count, &callbacks_below);
    grandchild->OnStop(count, &callbacks_below);
  }
  ~Audience() {
    coordinator->AbandonJoin(*join);
    child->AbandonJoin(*join_of_child);
  }

  // A child may have been stopped before memory ran out. If so, its stop is complete, and its
  // descendants are stopped, too.
  void ExpectNotStopped() const {
    EXPECT_FALSE(coordinator->ShouldStop());
    EXPECT_EQ(coordinator->View().record, nullptr);
    EXPECT_EQ(coordinator->generation(), 0u);
    EXPECT_EQ(coordinator->TakeUnseen(*listener), nullptr);
    EXPECT_EQ(callbacks, 0);
    const bool child_stopped = child->ShouldStop();
    const bool grandchild_stopped = grandchild->ShouldStop();
    EXPECT_TRUE(!child_stopped || grandchild_stopped);
    EXPECT_EQ(callbacks_below, (child_stopped ? 1 : 0) + (grandchild_stopped ? 1 : 0));
    EXPECT_EQ(child->JoinRemainingMs(*join_of_child, 0) == 0, child_stopped);
    if (child_stopped) {
      EXPECT_GT(listener_of_child->stops, 0);
      EXPECT_GT(listener_of_child->progress, 0);
    }
  }

  void ExpectStopped() const {
    for (const auto& each : {coordinator, child, grandchild}) {
      EXPECT_TRUE(each->ShouldStop());
      EXPECT_NE(each->View().record, nullptr);
      EXPECT_EQ(each->generation(), 1u);
    }
    EXPECT_EQ(callbacks, 1);
    EXPECT_EQ(callbacks_below, 2);
    for (const auto& each : {listener, listener_of_child}) {
      EXPECT_GT(each->stops, 0);
      EXPECT_GT(each->progress, 0);
    }
  }
};

TEST(OutOfMemoryTest, AStopIsDoneOrNotBegun) {
  std::unique_ptr<Audience> audience;
  const StopRequest request = Failure();
  FailEachAllocation([&] { audience = std::make_unique<Audience>(); },
                     [&] { audience->coordinator->RequestStop(request); },
                     [&](bool threw) {
                       if (!threw) return audience->ExpectStopped();
                       audience->ExpectNotStopped();
                       audience->coordinator->RequestStop(request);  // a second try works
                       audience->ExpectStopped();
                     });
}

TEST(OutOfMemoryTest, ASuppressedErrorIsKeptAndCountedOrNeither) {
  std::shared_ptr<Coordinator> coordinator;
  const StopRequest request = Failure();
  FailEachAllocation(
      [&] {
        coordinator = MakeCoordinator();
        coordinator->RequestStop(Plain());
      },
      [&] { coordinator->RequestStop(request); },
      [&](bool threw) {
        EXPECT_EQ(coordinator->View().suppressed_count, threw ? 0u : 1u);
        EXPECT_EQ(coordinator->View().suppressed.size(), threw ? 0u : 1u);
      });
}

TEST(OutOfMemoryTest, AnAnswerIsTakenOrNot) {
  std::unique_ptr<Audience> audience;
  const StopRequest own = Failure("TypeError");
  const StopRequest winner = Failure("RangeError");
  FailEachAllocation(
      [&] {
        audience = std::make_unique<Audience>();
        audience->coordinator->AwaitAnswer();
        audience->coordinator->RequestStop(own);
      },
      [&] { audience->coordinator->AnswerStop(winner); },
      [&](bool threw) {
        const StopView view = audience->coordinator->View();
        const double left = audience->coordinator->JoinRemainingMs(*audience->join, 0);
        EXPECT_TRUE(audience->coordinator->ShouldStop());
        EXPECT_EQ(view.record->error, threw ? own.error : winner.error);
        EXPECT_EQ(view.suppressed_count, threw ? 0u : 1u);
        EXPECT_EQ(left, threw ? std::numeric_limits<double>::infinity() : 0);
        EXPECT_EQ(audience->child->View().record->error, threw ? own.error : winner.error);
      });
}

// If the end of a thread could not be recorded, joins would wait for it without a limit.
TEST(OutOfMemoryTest, TheEndOfAThreadNeedsNoMemory) {
  std::unique_ptr<Audience> audience;
  FailEachAllocation([&] { audience = std::make_unique<Audience>(); },
                     [&] { audience->coordinator->EndThread(audience->thread); },
                     [&](bool threw) {
                       EXPECT_FALSE(threw);
                       EXPECT_TRUE(audience->coordinator->LiveThreads().empty());
                       EXPECT_EQ(audience->coordinator->JoinRemainingMs(*audience->join, 0), 0);
                       EXPECT_EQ(audience->listener->progress, 1);
                     });
}

// A worker that dies with threads that nobody watches any more: its stop may be lost, its threads
// and those that it watched are not waited for.
TEST(OutOfMemoryTest, TheEndOfAnEnvironmentEndsItsThreads) {
  for (const bool is_watched : {false, true}) {
    std::unique_ptr<Audience> audience;
    std::uint64_t worker = 0;
    std::shared_ptr<Join> join;
    Coordinator::Departure departure;
    departure.owner = 1;
    departure.thread_id = 7;
    departure.request = test::FailureOfThread();
    FailEachAllocation(
        [&] {
          audience = std::make_unique<Audience>();
          Coordinator& coordinator = *audience->coordinator;
          coordinator.EndThread(audience->thread);
          NewThread task = test::Thread("task");
          task.owner = 1;
          coordinator.RegisterThread(task);
          NewThread watched = test::Thread("worker", ThreadKind::kWorker);
          watched.has_thread_id = is_watched;
          watched.thread_id = 7;
          worker = coordinator.RegisterThread(watched);
          join = coordinator.BeginJoin({});
        },
        [&] {
          audience->coordinator->EndThreadsOwnedBy(departure);
          audience->coordinator->EndThread(worker);
          if (allocations_left == 0) throw std::bad_alloc();  // one may have failed: go on
        },
        [&](bool threw) {
          EXPECT_TRUE(audience->coordinator->LiveThreads().empty());
          EXPECT_EQ(audience->coordinator->JoinRemainingMs(*join, 1e9), 0);
          if (!threw) audience->ExpectStopped();
          audience->coordinator->AbandonJoin(*join);
        });
  }
}

TEST(OutOfMemoryTest, AHookIsRegisteredForTheStopThatIsThereOrNot) {
  std::shared_ptr<Coordinator> coordinator;
  FailEachAllocation(
      [&] {
        coordinator = MakeCoordinator();
        coordinator->RequestStop(Plain());
      },
      [&] {
        NewThread hook = test::UnstartedThread("a hook whose name needs memory of its own");
        hook.kind = ThreadKind::kHook;
        coordinator->RegisterThread(std::move(hook));
      },
      [&](bool threw) {
        EXPECT_EQ(coordinator->LiveThreads().size(), threw ? 0u : 1u);
        coordinator->ClearStop();
        coordinator->RequestStop(Plain());
        EXPECT_EQ(coordinator->LiveThreads().size(), threw ? 0u : 1u);
      });
}

TEST(OutOfMemoryTest, AClearIsDoneOrNotBegun) {
  std::unique_ptr<Audience> audience;
  FailEachAllocation(
      [&] {
        audience = std::make_unique<Audience>();
        audience->coordinator->RequestStop(Plain());
      },
      [&] { audience->coordinator->ClearStop(); },
      [&](bool threw) { EXPECT_EQ(audience->coordinator->ShouldStop(), threw); });
}

TEST(OutOfMemoryTest, AJoinThatDidNotBeginLeavesNoTrace) {
  std::unique_ptr<Audience> audience;
  std::shared_ptr<Join> join;
  FailEachAllocation(
      [&] {
        join.reset();
        audience = std::make_unique<Audience>();
        audience->coordinator->RegisterThread(test::Thread("another"));
      },
      [&] { join = audience->coordinator->BeginJoin({}); },
      [&](bool threw) {
        // These would use a join that has failed and is still listed.
        audience->coordinator->EndThread(audience->thread);
        audience->coordinator->RequestStop(Plain());
        if (threw) return;
        EXPECT_EQ(audience->coordinator->FinishJoin(*join).stragglers.size(), 1u);
      });
}

TEST(OutOfMemoryTest, AJoinIsFinishedOrStillInProgress) {
  std::unique_ptr<Audience> audience;
  JoinResult result;
  FailEachAllocation([&] { audience = std::make_unique<Audience>(); },
                     [&] { result = audience->coordinator->FinishJoin(*audience->join); },
                     [&](bool threw) {
                       EXPECT_EQ(audience->coordinator->joined(), !threw);
                       EXPECT_EQ(audience->coordinator->LiveThreads().size(), threw ? 1u : 0u);
                       EXPECT_EQ(result.stragglers.size(), threw ? 0u : 1u);
                     });
}

TEST(OutOfMemoryTest, ABlockingJoinThatFailsLeavesNoTrace) {
  std::unique_ptr<Audience> audience;
  FailEachAllocation(
      [&] {
        audience = std::make_unique<Audience>();
        audience->coordinator->RequestStop(Plain());
      },
      [&] { audience->coordinator->BlockingJoin(0, false); },
      [&](bool threw) {
        EXPECT_EQ(audience->coordinator->joined(), !threw);
        // Would use the failed join if it were still listed.
        audience->coordinator->EndThread(audience->thread);
        EXPECT_EQ(audience->coordinator->JoinRemainingMs(*audience->join, 1e9), 0);
      });
}

TEST(OutOfMemoryTest, AThreadEntersOrNot) {
  std::shared_ptr<Coordinator> coordinator;
  std::shared_ptr<Join> join;
  std::uint64_t id = 0;
  FailEachAllocation(
      [&] {
        coordinator = MakeCoordinator();
        id = coordinator->RegisterThread(test::UnstartedThread("worker"));
        // The end of the other thread has used up the memory that the join had reserved.
        const std::uint64_t other = coordinator->RegisterThread(test::Thread("other"));
        join = coordinator->BeginJoin({});
        coordinator->EndThread(other);
      },
      [&] { coordinator->EnterThread(id); },
      [&](bool threw) {
        EXPECT_EQ(coordinator->LiveThreads()[0].alive, !threw);
        EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0) == 0, threw);
        coordinator->EndThread(id);
        EXPECT_EQ(coordinator->JoinRemainingMs(*join, 0), 0);
        coordinator->FinishJoin(*join);
      });
}

TEST(OutOfMemoryTest, AThreadThatAJoinHasForgottenEntersOnce) {
  for (int allowed = 0;; ++allowed) {
    const auto coordinator = MakeCoordinator();
    const allstop_coordinator handle = {&abi::Table(), abi::ToState(coordinator.get()), nullptr};
    allstop_thread* token = nullptr;
    const allstop_string name = allstop_str("a name that is too long for no allocation");
    ASSERT_EQ(allstop_thread_register(&handle, name, ALLSTOP_THREAD_UNSTARTED, &token), ALLSTOP_OK);
    ASSERT_EQ(allstop_join(&handle, 0, 0), ALLSTOP_OK);
    allocations_left = allowed;
    const allstop_status status = allstop_thread_enter(&handle, token);
    allocations_left = -1;
    if (status != ALLSTOP_OK) {
      EXPECT_EQ(status, ALLSTOP_RESOURCE_EXHAUSTED);
      EXPECT_EQ(allstop_thread_enter(&handle, token), ALLSTOP_OK);
    }
    EXPECT_EQ(coordinator->LiveThreads().size(), 1u);
    EXPECT_EQ(allstop_join(&handle, 0, 0), ALLSTOP_SELF_JOIN);
    allstop_thread_done(&handle, token, nullptr);
    EXPECT_TRUE(coordinator->LiveThreads().empty());
    if (status == ALLSTOP_OK) break;
  }
}

TEST(OutOfMemoryTest, AnObserverIsAddedOrNot) {
  std::shared_ptr<Coordinator> coordinator;
  std::shared_ptr<Listener> listener;
  Mirror mirror{{0}, {0}};
  FailEachAllocation(
      [&] {
        coordinator = MakeCoordinator();
        listener = std::make_shared<Listener>();
        mirror.stopped = 0;
      },
      [&] { coordinator->AddObserver(listener, &mirror); },
      [&](bool threw) {
        coordinator->RequestStop(Plain());
        EXPECT_EQ(mirror.stopped, threw ? 0 : 1);
      });
}

TEST(OutOfMemoryTest, AWaitNeedsNone) {
  std::shared_ptr<Coordinator> coordinator;
  FailEachAllocation([&] { coordinator = MakeCoordinator(); },
                     [&] { EXPECT_FALSE(coordinator->WaitForStop(Deadline::After(0))); },
                     [&](bool threw) { EXPECT_FALSE(threw); });
}

std::shared_ptr<BoundedQueue> MakeQueue(std::uint64_t capacity) {
  return BoundedQueue::Create({"letters", capacity, BoundedQueue::Codec::kBytes, nullptr});
}

Status EnqueueLetter(BoundedQueue& queue, char letter) {
  QueueItem item(&letter, 1);
  std::size_t enqueued = 0;
  return queue.Enqueue(&item, 1, Deadline::Passed(), enqueued);
}

char DequeueLetter(BoundedQueue& queue) {
  QueueItem item;
  std::size_t dequeued = 0;
  if (queue.Dequeue(&item, 1, Deadline::Passed(), dequeued) != Status::kOk) return '\0';
  return static_cast<char>(*item.data());
}

TEST(OutOfMemoryTest, AnItemIsEnqueuedOrNot) {
  std::shared_ptr<BoundedQueue> queue;
  FailEachAllocation([&] { queue = MakeQueue(4); },
                     [&] { EXPECT_EQ(EnqueueLetter(*queue, 'a'), Status::kOk); },
                     [&](bool threw) {
                       EXPECT_EQ(queue->size(), threw ? 0u : 1u);
                       EXPECT_EQ(EnqueueLetter(*queue, 'b'), Status::kOk);
                       EXPECT_EQ(DequeueLetter(*queue), threw ? 'b' : 'a');
                     });
}

TEST(OutOfMemoryTest, AQueueThatCannotShrinkDeliversItsItemsAllTheSame) {
  constexpr int kItems = 10'000;  // more than the ring of an idle queue keeps
  const auto queue = MakeQueue(kItems);
  for (int i = 0; i < kItems; ++i) {
    ASSERT_EQ(EnqueueLetter(*queue, static_cast<char>('a' + i % 26)), Status::kOk);
  }
  std::string letters(kItems, '\0');
  allocations_left = 0;
  for (char& letter : letters) letter = DequeueLetter(*queue);
  allocations_left = -1;
  for (int i = 0; i < kItems; ++i) ASSERT_EQ(letters[i], static_cast<char>('a' + i % 26)) << i;
}

TEST(OutOfMemoryTest, AnItemGoesBackOrStaysWithItsOwner) {
  const auto queue = MakeQueue(16);
  for (char letter = 'a'; letter < 'a' + 16; ++letter) EnqueueLetter(*queue, letter);
  QueueItem held;
  std::size_t dequeued = 0;
  ASSERT_EQ(queue->Dequeue(&held, 1, Deadline::Passed(), dequeued), Status::kOk);
  ASSERT_EQ(EnqueueLetter(*queue, 'q'), Status::kOk);  // takes the place that `held` had
  allocations_left = 0;
  const bool is_back_without_memory = queue->Return(&held, 1);
  allocations_left = -1;
  EXPECT_FALSE(is_back_without_memory);
  EXPECT_EQ(queue->size(), 16u);
  EXPECT_TRUE(queue->Return(&held, 1));
  EXPECT_EQ(queue->size(), 17u);
  EXPECT_EQ(DequeueLetter(*queue), 'a');
}

TEST(OutOfMemoryTest, ATimerIsSetOrNot) {
  ScheduleStop(MakeCoordinator(), Deadline::After(0), Plain());  // starts the timer's thread
  std::shared_ptr<Coordinator> coordinator;
  std::uint64_t id = 0;
  const StopRequest request = Failure();
  FailEachAllocation(
      [&] { coordinator = MakeCoordinator(); },
      [&] { id = ScheduleStop(coordinator, Deadline::After(1e9), request, "a link"); },
      [&](bool threw) {
        EXPECT_EQ(coordinator.use_count(), threw ? 1 : 2);
        EXPECT_EQ(coordinator->Links().size(), threw ? 0u : 1u);
      });
  EXPECT_TRUE(CancelScheduledStop(id));
}

TEST(OutOfMemoryTest, AThreadIsRegisteredOrNot) {
  std::shared_ptr<Coordinator> coordinator;
  FailEachAllocation(
      [&] { coordinator = MakeCoordinator(); },
      [&] { coordinator->RegisterThread(test::UnstartedThread("worker")); },
      [&](bool threw) { EXPECT_EQ(coordinator->LiveThreads().size(), threw ? 0u : 1u); });
}

TEST(OutOfMemoryTest, AChildIsBornOrNot) {
  std::shared_ptr<Coordinator> parent;
  for (const bool stopped : {false, true}) {
    std::shared_ptr<Coordinator> child;
    FailEachAllocation(
        [&] {
          parent = MakeCoordinator();
          if (stopped) parent->RequestStop(Plain());
        },
        [&] { child = parent->CreateChild(Named()); },
        [&](bool threw) {
          // These would use a child that has died and is still listed.
          parent->ClearStop();
          parent->RequestStop(Plain());
          EXPECT_TRUE(threw || child->ShouldStop());
        });
  }
}

TEST(OutOfMemoryTest, TheTableSaysSoAndThrowsNothing) {
  std::shared_ptr<Coordinator> coordinator;
  allstop_error error = {};
  error.size = sizeof(error);
  error.message = allstop_str("a message that is too long to be held without an allocation");
  allstop_coordinator handle = {};
  for (int allowed = 0;; ++allowed) {
    coordinator = MakeCoordinator();
    handle = {&abi::Table(), abi::ToState(coordinator.get()), nullptr};
    allocations_left = allowed;
    const allstop_status status = allstop_request_stop(&handle, &error);
    allocations_left = -1;
    if (status == ALLSTOP_OK) break;
    EXPECT_EQ(status, ALLSTOP_RESOURCE_EXHAUSTED);
    EXPECT_FALSE(coordinator->ShouldStop());
  }
  EXPECT_TRUE(coordinator->ShouldStop());
}

// Ends a registered thread with an error while allocations fail. Returns the native type of the
// stop's error, or "" if the coordinator was not stopped.
std::string StopOfAThreadThatFails(int allocations_before_failure) {
  const auto coordinator = MakeCoordinator();
  const allstop_coordinator handle = {&abi::Table(), abi::ToState(coordinator.get()), nullptr};
  allstop_error error = {};
  error.size = sizeof(error);
  error.message = allstop_str("a message that is too long to be held without an allocation");
  error.native_type = allstop_str("a type of which the same is true, so that more can fail");
  allstop_thread* token = nullptr;
  EXPECT_EQ(allstop_thread_register(&handle, allstop_str("worker"), 0, &token), ALLSTOP_OK);
  allocations_left = allocations_before_failure;
  allstop_thread_done(&handle, token, &error);
  allocations_left = -1;
  EXPECT_TRUE(coordinator->LiveThreads().empty()) << "done it is, whatever failed";
  const auto record = coordinator->View().record;
  EXPECT_EQ(coordinator->ShouldStop(), record != nullptr);
  return record ? record->error->fields().native_type : "";
}

TEST(OutOfMemoryTest, AThreadThatFailsIsDoneEvenIfNothingCanBeRecorded) {
  one_failure_only = false;
  EXPECT_EQ(StopOfAThreadThatFails(0), "");
  for (int allowed = 1; allowed < 50; ++allowed) StopOfAThreadThatFails(allowed);
}

TEST(OutOfMemoryTest, AThreadWhoseErrorCannotBeDescribedStopsTheOthersAllTheSame) {
  one_failure_only = true;
  EXPECT_EQ(StopOfAThreadThatFails(0), "std::bad_alloc");
  for (int allowed = 1; allowed < 50; ++allowed) EXPECT_NE(StopOfAThreadThatFails(allowed), "");
  one_failure_only = false;
}

TEST(SizeTest, AChainOfCausesTakesMemoryForEachOfThemOnce) {
  constexpr std::size_t kLength = 1 << 16;
  const std::string message(kLength, 'x');
  std::vector<allstop_error> errors(1 + core::EncodedError::kMaxCauses);
  for (std::size_t i = 0; i < errors.size(); ++i) {
    errors[i] = {};
    errors[i].size = sizeof(allstop_error);
    errors[i].message = {message.data(), message.size()};
    if (i + 1 < errors.size()) errors[i].cause = &errors[i + 1];
  }
  const std::size_t messages = kLength * errors.size();
  const auto coordinator = MakeCoordinator();
  const allstop_coordinator handle = {&abi::Table(), abi::ToState(coordinator.get()), nullptr};

  bytes_allocated = 0;
  ASSERT_EQ(allstop_request_stop(&handle, errors.data()), ALLSTOP_OK);
  // Once in the fields, once in the bytes.
  EXPECT_LT(bytes_allocated, 3 * messages);

  std::string bytes = coordinator->View().record->error->bytes();
  EXPECT_GT(bytes.size(), messages);
  bytes_allocated = 0;
  const auto read = EncodedError::Decode(std::move(bytes));
  EXPECT_LT(bytes_allocated, 2 * messages);
  std::size_t causes = 0;
  for (auto cause = read->fields().cause; cause; cause = cause->fields().cause) {
    EXPECT_EQ(cause->fields().message, message);
    ++causes;
  }
  EXPECT_EQ(causes, errors.size() - 1);
}

TEST(SizeTest, ACoordinatorTakesLessThanAKilobyteOfMemory) {
  const auto first = MakeCoordinator();  // allocates what the process needs only once
  const std::size_t before = bytes_allocated;
  const auto coordinator = MakeCoordinator();
  const std::size_t bytes = bytes_allocated - before;
  std::printf("a coordinator takes %zu bytes\n", bytes);
  RecordProperty("bytes", static_cast<int>(bytes));
  EXPECT_LT(bytes, 1024u);
}

}  // namespace
}  // namespace allstop::core
