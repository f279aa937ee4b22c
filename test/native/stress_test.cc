// All methods at once on several threads, for the sanitizers and to find deadlocks. The seed
// decides the steps of each thread, but not how the threads interleave.
#include <gtest/gtest.h>

#include <atomic>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/coordinator.h"
#include "core/registry.h"
#include "core/stop_timer.h"
#include "gate.h"
#include "requests.h"
#include "seed.h"

namespace allstop::core {
namespace {

using test::Failure;
using test::MakeCoordinator;
using test::Named;
using test::Plain;

class Watcher : public Observer {
 public:
  explicit Watcher(Coordinator& coordinator) : coordinator_(coordinator) {}
  void OnStop() override { coordinator_.TakeUnseen(*this); }
  void OnClear() override { coordinator_.generation(); }
  void OnJoinProgress() override { coordinator_.View(); }

  Mirror mirror{{0}, {0}};

 private:
  Coordinator& coordinator_;
};

// The part of one thread: random calls on a coordinator that it shares with the other threads.
class Actor {
 public:
  Actor(std::shared_ptr<Coordinator> shared, std::uint32_t seed)
      : shared_(std::move(shared)), random_(seed) {}

  void Act(int steps) {
    for (int i = 0; i < steps; ++i) Step();
    while (!callbacks_.empty()) RemoveCallback();
    while (!listeners_.empty()) RemoveListener();
    while (!threads_.empty()) shared_->EndThread(TakeOne(threads_));
    while (!timers_.empty()) CancelScheduledStop(TakeOne(timers_));
  }

 private:
  struct Callback {
    std::shared_ptr<StopCallback> registration;
    std::unique_ptr<std::atomic<int>> runs;
  };

  std::uint32_t Draw(std::uint32_t below) { return static_cast<std::uint32_t>(random_()) % below; }

  template <typename T>
  T TakeOne(std::vector<T>& from) {
    std::swap(from[Draw(static_cast<std::uint32_t>(from.size()))], from.back());
    T taken = std::move(from.back());
    from.pop_back();
    return taken;
  }

  void Step() {
    switch (Draw(16)) {
      case 0: shared_->RequestStop(Plain()); break;
      case 1: shared_->RequestStop(Failure()); break;
      case 2:
      case 3: shared_->ClearStop(); break;
      case 4: shared_->WaitForStop(Deadline::After(0.01 * Draw(5))); break;
      case 5: RegisterThread(); break;
      case 6:
        if (!threads_.empty()) shared_->EndThread(TakeOne(threads_));
        break;
      case 7: JoinInSteps(); break;
      case 8: shared_->BlockingJoin(0.01 * Draw(5), Draw(2) == 0); break;
      case 9: AddCallback(); break;
      case 10:
        if (!callbacks_.empty()) RemoveCallback();
        break;
      case 11: AddListener(); break;
      case 12:
        if (!listeners_.empty()) RemoveListener();
        break;
      case 13: UseAChild(); break;
      case 14:
        timers_.push_back(ScheduleStop(shared_, Deadline::After(0.1 * Draw(20)), Plain()));
        break;
      default: Look(); break;
    }
  }

  void RegisterThread() {
    threads_.push_back(shared_->RegisterThread(Draw(2) == 0 ? test::Thread("running")
                                                            : test::UnstartedThread("unstarted")));
    if (Draw(4) == 0) shared_->ReadmitThread(threads_.back());
  }

  void JoinInSteps() {
    const auto join = shared_->BeginJoin({}, listeners_.empty() ? nullptr : listeners_.back());
    ASSERT_NE(join, nullptr);
    if (!threads_.empty()) shared_->EndThread(TakeOne(threads_));
    shared_->JoinRemainingMs(*join, 1);
    if (Draw(2) == 0) {
      shared_->FinishJoin(*join);
    } else {
      shared_->AbandonJoin(*join);
    }
  }

  void AddCallback() {
    auto runs = std::make_unique<std::atomic<int>>(0);
    auto registration = shared_->OnStop(
        [](void* context) { ++*static_cast<std::atomic<int>*>(context); }, runs.get());
    if (registration) {
      callbacks_.push_back({std::move(registration), std::move(runs)});
    } else {
      EXPECT_EQ(*runs, 1);
    }
  }

  void RemoveCallback() {
    const Callback callback = TakeOne(callbacks_);
    shared_->RemoveStopCallback(*callback.registration);
    EXPECT_LE(*callback.runs, 1);
  }

  void AddListener() {
    const auto listener = std::make_shared<Watcher>(*shared_);
    shared_->AddObserver(listener, &listener->mirror);
    shared_->SetInterested(*listener, Draw(2) == 0);
    listeners_.push_back(listener);
  }

  void RemoveListener() { shared_->RemoveObserver(*TakeOne(listeners_)); }

  void UseAChild() {
    if (Draw(2) == 0 || children_.empty()) {
      const auto& parent = children_.empty() || Draw(2) == 0 ? shared_ : children_.back();
      if (auto child = parent->CreateChild(Named())) children_.push_back(std::move(child));
      if (children_.size() > 8) children_.clear();
      return;
    }
    Coordinator& child = *children_.back();
    child.ClearStop();
    child.BlockingJoin(0, true);
    if (Draw(2) == 0) child.RequestStop(Plain());
    if (Draw(2) == 0) children_.pop_back();
  }

  void Look() {
    const bool stopped = shared_->View().record != nullptr;
    EXPECT_GE(shared_->generation(), stopped ? 1u : 0u);
    shared_->ShouldStop();
    shared_->LiveThreads();
    shared_->EndedThreads();
    shared_->ThisThread(Via::kCall);
    shared_->RemoveLink(shared_->AddLink("a link"));
    EXPECT_EQ(Registry<Coordinator>::Get().Find(shared_->id()), shared_);
  }

  const std::shared_ptr<Coordinator> shared_;
  std::mt19937 random_;
  std::vector<std::uint64_t> threads_;
  std::vector<std::uint64_t> timers_;
  std::vector<Callback> callbacks_;
  std::vector<std::shared_ptr<Watcher>> listeners_;
  std::vector<std::shared_ptr<Coordinator>> children_;
};

TEST(StressTest, EverythingAtOnce) {
  constexpr std::uint32_t kActors = 6;
#ifdef ALLSTOP_FAULT_INJECTION
  constexpr int kSteps = 600;  // a seed may have most of them sleep under the mutex, one by one
#else
  constexpr int kSteps = 3'000;
#endif
  const std::uint32_t seed = test::Seed();
  const auto parent = MakeCoordinator();
  const auto shared = parent->CreateChild(Named("shared"));
  const auto witness = std::make_shared<Watcher>(*shared);
  shared->AddObserver(witness, &witness->mirror);

  test::Barrier start(kActors + 1);
  std::atomic<std::uint32_t> acting{kActors};
  std::vector<std::thread> threads;
  for (std::uint32_t i = 0; i < kActors; ++i) {
    threads.emplace_back([&, i] {
      Actor actor(shared, seed + i);
      start.Arrive();
      actor.Act(kSteps);
      --acting;
    });
  }
  start.Arrive();
  // The threads' joins wait for each other. They must be ended by these stops, although each stop
  // is cleared at once.
  while (acting > 0) {
    parent->RequestStop(Plain());
    EXPECT_TRUE(shared->ShouldStop());
    parent->ClearStop();
    shared->ClearStop();
    std::this_thread::yield();
  }
  for (auto& thread : threads) thread.join();

  EXPECT_TRUE(shared->LiveThreads().empty());
  // A stop that was due when its timer was cancelled may be requested as late as now.
  const auto between_stops = [&](const auto& look) {
    for (;;) {
      const std::uint64_t generation = shared->generation();
      const bool seen = look();
      if (shared->generation() == generation) return seen;
    }
  };
  EXPECT_TRUE(
      between_stops([&] { return witness->mirror.stopped == (shared->ShouldStop() ? 1 : 0); }));
  EXPECT_TRUE(between_stops([&] {
    return witness->mirror.generation == static_cast<std::int32_t>(shared->generation());
  }));
  EXPECT_TRUE(between_stops([&] {
    shared->ClearStop();
    return witness->mirror.stopped == 0;
  }));
  parent->RequestStop(Plain());
  EXPECT_EQ(witness->mirror.stopped, 1);
  shared->RemoveObserver(*witness);
}

}  // namespace
}  // namespace allstop::core
