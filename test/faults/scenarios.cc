// What threads may do to one another at the same time, for a build with ALLSTOP_FAULT_INJECTION:
// its fault points delay the threads as the seed says, and each scenario checks what must hold in
// every order.
//
//   ALLSTOP_FAULT_SEED=N allstop_fault_scenarios [SCENARIO...]
//
// Exit code 0: all held. A scenario whose invariant is broken, or that makes no progress for 20 s,
// prints its name and what was wrong; the exit code is then 1. Threads still run then, so the
// process ends without destructors.
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../native/gate.h"
#include "../native/requests.h"
#include "core/bounded_queue.h"
#include "core/coordinator.h"
#include "core/fault_point.h"
#include "core/stop_timer.h"

namespace allstop::core {
namespace {

using test::Barrier;
using test::Failure;
using test::Gate;
using test::MakeCoordinator;
using test::Named;
using test::Plain;
using test::Thread;
using test::UnstartedThread;

constexpr double kForever = std::numeric_limits<double>::infinity();
using Random = std::mt19937_64;
using Threads = std::vector<std::thread>;

// Ends the process if a scenario does not end: a lost wake-up is a thread that sleeps for ever.
class Watchdog {
 public:
  void Begin(const char* scenario) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      scenario_ = scenario;
      ++steps_;
    }
    changed_.notify_all();
  }

  void Run() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      const std::uint64_t before = steps_;
      const bool has_moved =
          changed_.wait_for(lock, std::chrono::seconds(20), [&] { return steps_ != before; });
      if (!has_moved) Fail("made no progress for 20 s: a thread sleeps that nobody wakes");
    }
  }

  [[noreturn]] void Fail(const char* what) const {
    std::printf("%s: %s\n", scenario_, what);
    std::fflush(stdout);
    _exit(1);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  const char* scenario_ = "none";
  std::uint64_t steps_ = 0;
};

Watchdog& Dog() {
  static auto* const dog = new Watchdog;
  return *dog;
}

void Check(bool holds, const char* what) {
  if (!holds) Dog().Fail(what);
}

void JoinAll(Threads& threads) {
  for (auto& thread : threads) thread.join();
  threads.clear();
}

// ---------------------------------------------------------------- joins

// A registered thread begins at the moment when the last one that a join waits for ends. It is
// waited for, or was forgotten before it began; a straggler it cannot be: there is no stop.
void ThreadsBeginWhileAJoinEnds(Random& /*random*/) {
  const auto coordinator = MakeCoordinator();
  const std::uint64_t first = coordinator->RegisterThread(Thread("first"));
  const std::uint64_t late = coordinator->RegisterThread(UnstartedThread("late"));
  Barrier begin(2);
  Status status = Status::kOk;
  std::thread joiner([&] {
    begin.Arrive();
    status = coordinator->BlockingJoin(kForever, false);
  });
  begin.Arrive();
  coordinator->EndThread(first);
  coordinator->EnterThread(late);
  coordinator->generation();  // a few points, during which `late` is alive
  coordinator->LiveThreads();
  coordinator->EndThread(late);
  joiner.join();
  Check(status == Status::kOk, "a thread without a grace period was a straggler");
  Check(coordinator->joined(), "the join has ended, but the coordinator is not joined");
}

// Threads end while a stop and several joins with a grace period are on their way. Every join
// returns, and with the error of the one stop.
void ThreadsEndWhileJoinsWait(Random& random) {
  const auto coordinator = MakeCoordinator();
  std::vector<std::uint64_t> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(coordinator->RegisterThread(Thread("thread")));
  Barrier begin(static_cast<int>(ids.size()) + 3);
  Threads threads;
  for (const std::uint64_t id : ids) {
    threads.emplace_back([&, id] {
      begin.Arrive();
      coordinator->WaitForStop(0, Deadline::Never());
      coordinator->EndThread(id);
    });
  }
  const double grace_ms = random() % 2 == 0 ? kForever : 60'000;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      begin.Arrive();
      const Status status = coordinator->BlockingJoin(grace_ms, false);
      Check(status == Status::kStoppedByError, "a join has not thrown the error of the stop");
    });
  }
  threads.emplace_back([&] {
    begin.Arrive();
    coordinator->RequestStop(Failure());
  });
  JoinAll(threads);
  Check(coordinator->LiveThreads().empty(), "an ended thread is still registered");
}

// The arbiter answers a provisional stop while a child is being joined.
void AnArbiterAnswersWhileAChildIsJoined(Random& random) {
  const auto parent = MakeCoordinator();
  const auto child = parent->CreateChild(Named("child"));
  parent->AwaitAnswer();
  const StopRequest winner = Failure("RangeError");
  const bool has_winner = random() % 2 == 0;
  const std::uint64_t thread = child->RegisterThread(Thread("thread"));
  Barrier begin(4);
  Threads threads;
  for (const auto& joined : {parent, child}) {
    threads.emplace_back([&, joined] {
      begin.Arrive();
      const Status status = joined->BlockingJoin(60'000, false);
      Check(status == Status::kStoppedByError || joined->View().record == nullptr,
            "a join has not thrown the error of the stop");
    });
  }
  parent->RequestStop(Failure("TypeError"));
  threads.emplace_back([&] {
    begin.Arrive();
    child->EndThread(thread);
  });
  begin.Arrive();
  if (has_winner) {
    parent->AnswerStop(winner);
  } else {
    parent->AnswerNone();
  }
  JoinAll(threads);
  for (const auto& each : {parent, child}) {
    const auto record = each->View().record;
    Check(record != nullptr && !record->IsProvisional(), "an answered record is still provisional");
    Check((record->error == winner.error) == has_winner, "the record is not the arbiter's");
  }
}

// ---------------------------------------------------------------- stops

// Several threads stop a coordinator with different errors. One of these is the record, of the
// children too; all others are suppressed.
void TheFirstErrorWins(Random& /*random*/) {
  constexpr int kThreads = 4;
  class Observed final : public Observer {
   public:
    void OnStop() override { ++stops; }
    std::atomic<int> stops{0};
    Mirror mirror{{0}, {0}};
  };
  const auto root = MakeCoordinator();
  const auto child = root->CreateChild(Named("child"));
  const auto grandchild = child->CreateChild(Named("grandchild"));
  std::vector<std::shared_ptr<Observed>> observers;
  for (const auto& each : {root, root, child, grandchild}) {
    observers.push_back(std::make_shared<Observed>());
    each->AddObserver(observers.back(), &observers.back()->mirror);
    each->SetInterested(*observers.back(), true);
  }
  std::vector<StopRequest> requests;
  for (int i = 0; i < kThreads; ++i) requests.push_back(Failure("Error" + std::to_string(i)));
  std::atomic<int> winner{-1};
  std::atomic<int> wins{0};
  Barrier begin(kThreads + 2);
  Threads threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      begin.Arrive();
      const auto outcome = root->RequestStop(requests[static_cast<std::size_t>(i)]);
      Check(root->ShouldStop(), "a request has returned, and the coordinator is not stopped");
      if (outcome != StopOutcome::kStopped) return;
      winner = i;
      ++wins;
    });
  }
  threads.emplace_back([&] {
    begin.Arrive();
    Check(grandchild->WaitForStop(0, Deadline::Never()), "a wait without a limit has given up");
    Check(root->View().record != nullptr, "a child was stopped, and its parent was not");
  });
  threads.emplace_back([&] {
    begin.Arrive();
    const auto late = root->CreateChild(Named("late"));
    late->WaitForStop(0, Deadline::Never());
  });
  JoinAll(threads);
  Check(wins == 1, "more than one request, or none, was the stop");
  const StopView view = root->View();
  const auto& error = requests[static_cast<std::size_t>(winner.load())].error;
  Check(view.record->error == error, "the record is not that of the first error");
  Check(view.suppressed_count == kThreads - 1, "a later error was lost or counted twice");
  for (const auto& each : {child, grandchild}) {
    const auto record = each->View().record;
    Check(record->error == error && record->id == view.record->id,
          "a child has another record than its parent");
  }
  Check(view.record->requester().language == Language::kNative, "the requester is missing");
  for (const auto& each : observers) {
    Check(each->stops == 1, "an observer was told of one stop more than once, or never");
    Check(each->mirror.stopped == 1 && each->mirror.generation == 1, "a mirror is out of date");
  }
  for (const auto& each : {observers[0], observers[1]}) root->RemoveObserver(*each);
  child->RemoveObserver(*observers[2]);
  grandchild->RemoveObserver(*observers[3]);
}

// A stop that is cleared at once is seen by every thread that was waiting for it.
void AStopThatIsClearedAtOnceIsSeen(Random& random) {
  constexpr int kWaiters = 3;
  const auto coordinator = MakeCoordinator();
  Mirror mirror{{0}, {0}};
  const auto observer = std::make_shared<Observer>();
  coordinator->AddObserver(observer, &mirror);
  const auto queue = BoundedQueue::Create({"", 1, {}, coordinator});
  Barrier begin(kWaiters + 2);
  Threads threads;
  for (int i = 0; i < kWaiters; ++i) {
    threads.emplace_back([&] {
      begin.Arrive();
      Check(coordinator->WaitForStop(0, Deadline::Never()), "a wait without a limit has given up");
    });
  }
  threads.emplace_back([&] {
    const auto wait = queue->BeginWait();
    begin.Arrive();
    QueueItem item;
    std::size_t dequeued = 0;
    const Status status = queue->ContinueDequeue(wait, &item, 1, Deadline::Never(), dequeued);
    Check(status == Status::kCancelled, "a dequeue that a stop ended was not cancelled");
  });
  begin.Arrive();
  const std::uint64_t generation = 1 + random() % 2;
  for (std::uint64_t i = 0; i < generation; ++i) {
    coordinator->RequestStop(Plain());
    Check(coordinator->ClearStop() == Status::kOk, "a root coordinator cannot be cleared");
    Check(mirror.stopped == 0, "a mirror is stopped after the clear");
    Check(!coordinator->ShouldStop(), "the stop word is set after the clear");
  }
  JoinAll(threads);
  Check(coordinator->generation() == generation, "a stop was not counted");
  coordinator->RemoveObserver(*observer);
}

// When RemoveStopCallback has returned, the callback does not run, and its context may be freed.
void ARemovedCallbackDoesNotRun(Random& /*random*/) {
  struct Context {
    std::atomic<int> runs{0};
    std::atomic<bool> is_removed{false};
    std::atomic<bool> was_late{false};
  };
  const auto coordinator = MakeCoordinator();
  std::vector<std::unique_ptr<Context>> contexts;
  for (int i = 0; i < 4; ++i) contexts.push_back(std::make_unique<Context>());
  Barrier begin(static_cast<int>(contexts.size()) + 1);
  Threads threads;
  for (const auto& context : contexts) {
    threads.emplace_back([&, each = context.get()] {
      begin.Arrive();
      const auto callback = coordinator->OnStop(
          [](void* given) {
            auto& own = *static_cast<Context*>(given);
            std::this_thread::yield();
            ++own.runs;
            if (own.is_removed) own.was_late = true;
          },
          each);
      std::this_thread::yield();
      if (callback) coordinator->RemoveStopCallback(*callback);
      each->is_removed = true;
    });
  }
  begin.Arrive();
  coordinator->RequestStop(Plain());
  JoinAll(threads);
  for (const auto& context : contexts) {
    Check(context->runs <= 1, "a stop callback has run twice");
    Check(!context->was_late, "a stop callback has run after RemoveStopCallback had returned");
  }
}

// A deadline either stops the coordinator, or was cancelled in time and does not.
void ADeadlineIsCancelledOrStops(Random& random) {
  const auto coordinator = MakeCoordinator();
  const auto own = ScheduleStop(coordinator, Deadline::After(0.2), Plain(), "the deadline");
  if (random() % 2 == 0) ScheduleStop(MakeCoordinator(), Deadline::After(0.1), Plain());
  std::this_thread::yield();
  if (CancelScheduledStop(own)) {
    Check(!coordinator->WaitForStop(Deadline::After(1)), "a cancelled deadline was a stop");
    Check(coordinator->Links().empty(), "a cancelled deadline is still a link");
  } else {
    coordinator->WaitForStop(0, Deadline::Never());
    Check(coordinator->Links().empty(), "a deadline that has stopped it is still a link");
  }
}

// ---------------------------------------------------------------- queues

// Producers and consumers of all kinds, consumers that give back what they took, stops that are
// cleared, and a close: each item comes out once.
void QueuesLoseAndDoubleNothing(Random& random) {
  constexpr std::uint64_t kProducers = 3;
  constexpr std::uint64_t kItems = 40;
  class Waiter final : public QueueWaiter {
   public:
    void OnProgress() override {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        ++told_;
      }
      changed_.notify_all();
    }
    void Wait() {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return told_ > 0; });
      told_ = 0;
    }

   private:
    std::mutex mutex_;
    std::condition_variable changed_;
    int told_ = 0;  // guarded by mutex_
  };
  const auto coordinator = random() % 2 == 0 ? MakeCoordinator() : nullptr;
  const std::size_t capacity = 2 + random() % 3;
  const auto queue = BoundedQueue::Create({"", capacity, {}, coordinator});
  std::vector<std::atomic<int>> seen(kProducers * kItems);
  std::atomic<std::uint64_t> producing{kProducers};
  Gate produced;
  Threads threads;
  for (std::uint64_t producer = 0; producer < kProducers; ++producer) {
    threads.emplace_back([&, producer, own = Random(random())]() mutable {
      for (std::uint64_t sent = 0; sent < kItems;) {
        QueueItem items[2];
        const std::uint64_t count = std::min<std::uint64_t>(1 + own() % 2, kItems - sent);
        for (std::uint64_t i = 0; i < count; ++i) {
          const std::uint64_t number = producer * kItems + sent + i;
          items[i] = QueueItem(&number, sizeof(number));
        }
        std::size_t enqueued = 0;
        if (own() % 3 > 0) {
          queue->Enqueue(items, count, Deadline::Never(), enqueued);
        } else {  // as JavaScript does, which cannot block
          const auto waiter = std::make_shared<Waiter>();
          auto wait = queue->BeginWait();
          if (!queue->BeginEnqueue(wait)) continue;
          while (queue->ContinueEnqueue(wait, items, count, Deadline::Passed(), enqueued) ==
                     Status::kDeadlineExceeded &&
                 enqueued == 0) {
            if (queue->Await(BoundedQueue::Side::kProducers, wait, waiter)) waiter->Wait();
          }
          queue->Forget(BoundedQueue::Side::kProducers, *waiter);
          queue->EndEnqueue();
        }
        sent += enqueued;
      }
      if (--producing == 0) produced.Open();
    });
  }
  for (int consumer = 0; consumer < 3; ++consumer) {
    threads.emplace_back([&, own = Random(random())]() mutable {
      QueueItem items[4];
      for (;;) {
        std::size_t dequeued = 0;
        Status status = Status::kOk;
        const std::size_t least = own() % 3 == 0 ? 2 : 1;
        if (own() % 3 > 0) {
          status = queue->Dequeue(items, 4, Deadline::Never(), dequeued, least);
        } else {
          const auto waiter = std::make_shared<Waiter>();
          const auto wait = queue->BeginWait();
          while ((status = queue->ContinueDequeue(wait, items, 2, Deadline::Passed(), dequeued)) ==
                 Status::kDeadlineExceeded) {
            if (queue->Await(BoundedQueue::Side::kConsumers, wait, waiter)) waiter->Wait();
          }
          queue->Forget(BoundedQueue::Side::kConsumers, *waiter);
        }
        if (dequeued > 0 && own() % 6 == 0) {
          Check(queue->Return(items, dequeued), "no memory");
          continue;
        }
        for (std::size_t i = 0; i < dequeued; ++i) {
          std::uint64_t number = 0;
          std::memcpy(&number, items[i].data(), sizeof(number));
          ++seen[number];
        }
        if (status == Status::kOutOfRange) return;
      }
    });
  }
  if (coordinator) {
    for (int i = 0; i < 3; ++i) {
      coordinator->RequestStop(Plain());
      coordinator->ClearStop();
    }
  }
  produced.Wait();
  queue->Close(false);
  JoinAll(threads);
  for (const auto& times : seen) Check(times == 1, "an item was lost or came twice");
}

// Producers and consumers that wait without a limit, and one stop or close: all of them return,
// and each item that went in comes out, or is still there.
void WaitsOfAQueueEnd(Random& random) {
  const auto coordinator = MakeCoordinator();
  const auto queue = BoundedQueue::Create({"", 1 + random() % 2, {}, coordinator});
  std::atomic<int> in{0};
  std::atomic<int> out{0};
  Threads threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, count = random() % 8] {
      for (std::uint64_t sent = 0; sent < count; ++sent) {
        QueueItem item(&sent, sizeof(sent));
        std::size_t enqueued = 0;
        if (queue->Enqueue(&item, 1, Deadline::Never(), enqueued) != Status::kOk) return;
        ++in;
      }
    });
    threads.emplace_back([&] {
      for (;;) {
        QueueItem item;
        std::size_t dequeued = 0;
        if (queue->Dequeue(&item, 1, Deadline::Never(), dequeued) != Status::kOk) return;
        ++out;
      }
    });
  }
  switch (random() % 3) {
    case 0: coordinator->RequestStop(Failure()); break;
    case 1: queue->Close(true); break;
    default: queue->Close(false); break;
  }
  JoinAll(threads);
  Check(static_cast<std::size_t>(in - out) == queue->size(), "an item was lost or came twice");
}

// ---------------------------------------------------------------- everything

// One tree of coordinators, on which threads of a program do everything at once.
void EverythingAtOnce(Random& random) {
  const auto root = MakeCoordinator();
  std::vector<std::shared_ptr<Coordinator>> tree{root, root->CreateChild(Named("child"))};
  tree.push_back(tree[1]->CreateChild(Named("grandchild")));
  const auto queue = BoundedQueue::Create({"", 2, {}, tree[1]});
  std::atomic<int> in{0};
  std::atomic<int> out{0};
  std::atomic<int> acting{3};
  Gate acted;
  Threads threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, own = Random(random())]() mutable {
      for (int step = 0; step < 30; ++step) {
        Coordinator& some = *tree[own() % tree.size()];
        switch (own() % 10) {
          case 0: some.RequestStop(Plain()); break;
          case 1: some.RequestStop(Failure()); break;
          case 2:
          case 3: some.ClearStop(); break;
          case 4: some.WaitForStop(Deadline::After(0.1)); break;
          case 5: some.BlockingJoin(0.1, true); break;
          case 6: {
            const std::uint64_t id = some.RegisterThread(UnstartedThread("thread"));
            some.EnterThread(id);
            some.EndThread(id);
            break;
          }
          case 7: {
            const auto short_lived = some.CreateChild(Named("short-lived"));
            const auto timer = ScheduleStop(short_lived, Deadline::After(0.1), Plain());
            if (own() % 2 == 0) CancelScheduledStop(timer);
            break;
          }
          case 8: {
            QueueItem item("item", 4);
            std::size_t enqueued = 0;
            queue->Enqueue(&item, 1, Deadline::After(0.1), enqueued);
            in += static_cast<int>(enqueued);
            break;
          }
          default: {
            QueueItem item;
            std::size_t dequeued = 0;
            queue->Dequeue(&item, 1, Deadline::After(0.1), dequeued);
            out += static_cast<int>(dequeued);
            break;
          }
        }
      }
      if (--acting == 0) acted.Open();
    });
  }
  for (const auto& each : tree) {  // a wait that only a stop ends, and a join
    threads.emplace_back([each] { each->WaitForStop(each->generation(), Deadline::Never()); });
    threads.emplace_back([each] { each->BlockingJoin(kForever, false); });
  }
  acted.Wait();
  // A waiting thread may begin only now: it reads the generation after these stops, if they were
  // cleared. So the last stop stays.
  tree[2]->ClearStop();
  root->RequestStop(Plain());
  JoinAll(threads);
  for (const auto& each : tree) Check(each->ShouldStop(), "a parent is stopped, its child is not");
  Check(static_cast<std::size_t>(in - out) == queue->size(), "an item was lost or came twice");
}

struct Scenario {
  const char* name;
  void (*run)(Random&);
  int rounds;
};

constexpr Scenario kScenarios[] = {
    {"threads begin while a join ends", ThreadsBeginWhileAJoinEnds, 20},
    {"threads end while joins wait", ThreadsEndWhileJoinsWait, 5},
    {"an arbiter answers while a child is joined", AnArbiterAnswersWhileAChildIsJoined, 20},
    {"the first error wins", TheFirstErrorWins, 5},
    {"a stop that is cleared at once is seen", AStopThatIsClearedAtOnceIsSeen, 10},
    {"a removed callback does not run", ARemovedCallbackDoesNotRun, 10},
    {"a deadline is cancelled or stops", ADeadlineIsCancelledOrStops, 10},
    {"queues lose and double nothing", QueuesLoseAndDoubleNothing, 2},
    {"waits of a queue end", WaitsOfAQueueEnd, 5},
    {"everything at once", EverythingAtOnce, 2},
};

int Run(int count, char** names) {
  std::thread([] { Dog().Run(); }).detach();
  const std::uint64_t seed = FaultSeed().load();
  for (const Scenario& scenario : kScenarios) {
    bool is_wanted = count == 0;
    for (int i = 0; i < count; ++i) is_wanted |= std::strcmp(names[i], scenario.name) == 0;
    if (!is_wanted) continue;
    Random random(seed);
    for (int round = 0; round < scenario.rounds; ++round) {
      Dog().Begin(scenario.name);
      scenario.run(random);
    }
  }
  return 0;
}

}  // namespace
}  // namespace allstop::core

int main(int count, char** arguments) {
  const int result = allstop::core::Run(count - 1, arguments + 1);
  std::fflush(stdout);
  _exit(result);  // the watchdog's thread still runs
}
