// allstop::QueueRunner: the behaviour of TensorFlow's C++ sources, and the differences that
// allstop_queue_runner.hpp marks as ours.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_bounded_queue.hpp>
#include <allstop/allstop_queue_runner.hpp>
#include <allstop/allstop_tensorflow.hpp>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#if defined(__GLIBC__)
#include <pthread.h>
#endif

#include "../gate.h"
#include "record.h"

namespace allstop {
namespace {

using test::Gate;
using test::Record;
using test::RecordOf;
using Ops = std::vector<QueueRunner::Op>;
using Strings = std::vector<std::string>;
using Runners = std::unique_ptr<QueueRunner>;

constexpr Milliseconds kForever{std::numeric_limits<double>::infinity()};
constexpr Milliseconds kMoment{20};

// A queue whose own coordinator is never stopped: only a close ends a wait on it.
BoundedQueue Queue(std::uint64_t capacity = 100) {
  return BoundedQueue(Coordinator::Create(), capacity, "q");
}

BoundedQueue FullQueue() {
  BoundedQueue queue = Queue(1);
  EXPECT_EQ(queue.Enqueue("full"), ALLSTOP_OK);
  return queue;
}

Runners Make(const BoundedQueue& queue, Ops ops, QueueRunner::Options options = {}) {
  Runners runner;
  const Status status = QueueRunner::New(queue, std::move(ops), std::move(options), &runner);
  EXPECT_TRUE(status.ok()) << status.message();
  return runner;
}

Runners Make(const Coordinator& coord, const BoundedQueue& queue, Ops ops,
             QueueRunner::Options options = {}) {
  Runners runner;
  const Status status = QueueRunner::New(queue, std::move(ops), std::move(options), coord, &runner);
  EXPECT_TRUE(status.ok()) << status.message();
  return runner;
}

QueueRunner::Op Returning(allstop_status code, std::string message = {}) {
  return [status = Status(code, std::move(message))](const BoundedQueue&) { return status; };
}

QueueRunner::Op Ending() { return Returning(ALLSTOP_OUT_OF_RANGE, "the end"); }

// Enqueues "x" `times` times, then returns OUT_OF_RANGE.
QueueRunner::Op Enqueueing(int times) {
  return [times](const BoundedQueue& queue) mutable {
    if (times-- == 0) return Status(ALLSTOP_OUT_OF_RANGE, "the end");
    return Status(queue.Enqueue("x"), "enqueue");
  };
}

// Opens `reached`, then enqueues, which blocks while the queue is full.
QueueRunner::Op Blocking(Gate* reached = nullptr) {
  return [reached](const BoundedQueue& queue) {
    if (reached) reached->Open();
    return Status(queue.Enqueue("more"), "enqueue");
  };
}

[[noreturn]] Status Throw(const BoundedQueue&) { throw std::runtime_error("disk gone"); }
const char kThrown[] = "std::runtime_error: disk gone";

void ExpectDrained(const BoundedQueue& queue, std::size_t items) {
  Item item;
  for (std::size_t i = 0; i < items; ++i) EXPECT_EQ(queue.Dequeue(item, kMoment), ALLSTOP_OK);
  EXPECT_EQ(queue.Dequeue(item, kMoment), ALLSTOP_OUT_OF_RANGE);
}

TEST(QueueRunnerTest, CallsItsOpsAgainAndAgainAndClosesTheQueueAfterTheLast) {
  const BoundedQueue queue = Queue();
  const Runners runner = Make(queue, {Enqueueing(3), Enqueueing(4)});
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_TRUE(runner->Join().ok());
  ExpectDrained(queue, 7);
}

TEST(QueueRunnerTest, TheQueueStaysOpenWhileAnOpGoesOn) {
  Gate first_ended;
  Gate held;
  Gate closed;
  auto ended = std::shared_ptr<void>(nullptr, [&](void*) { first_ended.Open(); });
  QueueRunner::Options options;
  options.close_op = [&](const BoundedQueue&) {
    closed.Open();
    return Status();
  };
  QueueRunner::Op waiting = [&](const BoundedQueue& queue) {
    held.Wait();
    return Ending()(queue);
  };
  const Runners runner = Make(
      Queue(),
      {[owned = std::move(ended)](const BoundedQueue& queue) { return Ending()(queue); }, waiting},
      options);
  EXPECT_TRUE(runner->Start().ok());
  first_ended.Wait();
  EXPECT_FALSE(closed.OpensWrongly());
  held.Open();
  EXPECT_TRUE(runner->Join().ok());
  EXPECT_TRUE(closed.is_open());
}

TEST(QueueRunnerTest, WhatItCannotRunIsRefusedAndNothingIsCreated) {
  const Coordinator coord = Coordinator::Create();
  Runners runner;
  const auto code = [&](const BoundedQueue& queue, const Ops& ops) {
    EXPECT_EQ(QueueRunner::New(queue, ops, {}, coord, &runner).code(),
              QueueRunner::New(queue, ops, {}, &runner).code());
    return QueueRunner::New(queue, ops, {}, &runner).code();
  };
  EXPECT_EQ(code(Queue(), {}), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(code(Queue(), {Ending(), nullptr}), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(code(BoundedQueue(), {Ending()}), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(QueueRunner::New(Queue(), {Ending()}, {}, Coordinator(), &runner).code(),
            ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(runner, nullptr);
}

TEST(QueueRunnerTest, StartsOnce) {
  const Runners runner = Make(Queue(), {Ending()});
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_EQ(runner->Start().code(), ALLSTOP_FAILED_PRECONDITION);
  EXPECT_TRUE(runner->Join().ok());
  EXPECT_EQ(runner->Start().code(), ALLSTOP_FAILED_PRECONDITION);
}

TEST(QueueRunnerTest, RunsFromItsConstructionUntilAllHasEnded) {
  Gate held;
  QueueRunner::Options options;
  options.close_op = [&](const BoundedQueue&) {
    held.Wait();
    return Status();
  };
  const Runners runner = Make(Queue(), {Ending()}, options);
  EXPECT_TRUE(runner->Join().ok()) << "nothing was started";
  EXPECT_TRUE(runner->IsRunning());
  EXPECT_TRUE(runner->Start(kForever).code() == ALLSTOP_OUT_OF_RANGE);
  EXPECT_TRUE(runner->IsRunning()) << "the queue is not closed yet";
  held.Open();
  EXPECT_TRUE(runner->Join().ok());
  EXPECT_FALSE(runner->IsRunning());
}

TEST(QueueRunnerTest, AnErrorStopsEverybodyAndIsWhatJoinComesTo) {
  const Coordinator coord = Coordinator::Create();
  const BoundedQueue queue = FullQueue();
  QueueRunner::Options options;
  options.op_names = {"reader"};
  const Runners runner =
      Make(coord, queue, {Returning(ALLSTOP_UNAVAILABLE, "gone"), Blocking()}, options);
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_EQ(runner->Join(), Status(ALLSTOP_UNAVAILABLE, "gone"));
  const Record record = RecordOf(coord);
  EXPECT_EQ(record.kind, ALLSTOP_STOP_ERROR);
  EXPECT_EQ(record.name, "UnavailableError");
  EXPECT_EQ(record.message, "gone");
  EXPECT_EQ(record.thread, "QueueRunnerThread-q-reader");
  ExpectDrained(queue, 1);
}

// Otherwise consumers would take a stream that broke off for a stream that ended.
TEST(QueueRunnerTest, TheStopOfAnErrorComesBeforeTheQueueIsClosed) {
  for (const auto& op : Ops{Throw, Returning(ALLSTOP_UNAVAILABLE)}) {
    const Coordinator coord = Coordinator::Create();
    bool was_stopped = false;
    QueueRunner::Options options;
    options.close_op = [&](const BoundedQueue&) {
      was_stopped = coord.ShouldStop();
      return Status();
    };
    const Runners runner = Make(coord, Queue(), {op}, options);
    EXPECT_TRUE(runner->Start().ok());
    EXPECT_FALSE(runner->Join().ok());
    EXPECT_TRUE(was_stopped);
  }
}

TEST(QueueRunnerTest, AnExceptionIsReportedAsThatOfAThread) {
  const Coordinator coord = Coordinator::Create();
  const Runners runner = Make(coord, Queue(), {Throw});
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_EQ(runner->Join(), Status(ALLSTOP_STOPPED_BY_ERROR, kThrown));
  const Record record = RecordOf(coord);
  EXPECT_EQ(record.message, "disk gone");
  EXPECT_EQ(record.native_type, "std::runtime_error");
  EXPECT_EQ(record.thread, "QueueRunnerThread-q-op-1");
  EXPECT_THROW(RaiseRequestedException(coord), StopError);
}

TEST(QueueRunnerTest, AnErrorOfJavaScriptsIsJudgedByItsCodeOrName) {
  const auto result = [](const char* name, const char* code) {
    Error error;
    error.name = name;
    error.code = code;
    error.message = "thrown";
    std::vector<Status> results;
    for (const auto& op : Ops{[=](const BoundedQueue&) -> Status { throw StopError(error); },
                              [=](const BoundedQueue&) -> Status { throw error; }}) {
      const Runners runner = Make(Queue(), {op});
      EXPECT_TRUE(runner->Start().ok());
      results.push_back(runner->Join());
    }
    EXPECT_EQ(results[0], results[1]);
    return results[0];
  };
  EXPECT_EQ(result("OutOfRangeError", "ERR_ALLSTOP_OUT_OF_RANGE"), Status());
  EXPECT_EQ(result("Oops", "ERR_ALLSTOP_OUT_OF_RANGE"), Status());
  EXPECT_EQ(result("OutOfRangeError", ""), Status());
  EXPECT_EQ(result("OutOfRangeError", "E_LINE_5"), Status());
  EXPECT_EQ(result("UnavailableError", "ERR_ALLSTOP_UNAVAILABLE"),
            Status(ALLSTOP_UNAVAILABLE, "thrown"));
  EXPECT_EQ(result("UnavailableError", ""), Status(ALLSTOP_UNAVAILABLE, "thrown"));
  EXPECT_EQ(result("OutOfRangeError", "STATUS_13"),
            Status(static_cast<allstop_status>(13), "thrown"));
  EXPECT_EQ(result("Oops", "E_LINE_5"), Status(ALLSTOP_STOPPED_BY_ERROR, "thrown"));
}

TEST(QueueRunnerTest, AfterACompletedJoinAnErrorIsStillWhatItsOwnJoinComesTo) {
  for (const auto& op : Ops{Throw, Returning(ALLSTOP_STOPPED_BY_ERROR, kThrown)}) {
    const Coordinator coord = Coordinator::Create();
    EXPECT_EQ(coord.Join(), ALLSTOP_OK);
    const BoundedQueue queue = Queue();
    const Runners runner = Make(coord, queue, {op});
    EXPECT_TRUE(runner->Start().ok());
    EXPECT_EQ(runner->Join(), Status(ALLSTOP_STOPPED_BY_ERROR, kThrown));
    EXPECT_FALSE(coord.ShouldStop());
    ExpectDrained(queue, 0);
  }
}

TEST(QueueRunnerTest, WithoutACoordinatorTheFirstErrorIsKeptAndTheOthersGoOn) {
  const BoundedQueue queue = Queue();
  Gate failed;
  Gate* const to_open = &failed;
  QueueRunner::Op late = [to_open, rest = Enqueueing(5)](const BoundedQueue& own) {
    to_open->Wait();
    return rest(own);
  };
  const Runners runner = Make(queue, {Throw, late});
  runner->AddErrorCallback([&](const Status&) { failed.Open(); });
  EXPECT_TRUE(runner->GetStatus().ok());
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_EQ(runner->Join(), Status(ALLSTOP_STOPPED_BY_ERROR, kThrown));
  EXPECT_EQ(runner->GetStatus(), Status(ALLSTOP_STOPPED_BY_ERROR, kThrown));
  ExpectDrained(queue, 5);
}

TEST(QueueRunnerTest, WhatMeansTheEndCanBeChosen) {
  QueueRunner::Options options;
  options.queue_closed_statuses = {ALLSTOP_UNAVAILABLE};
  const Runners quiet = Make(Queue(), {Returning(ALLSTOP_UNAVAILABLE)}, options);
  EXPECT_TRUE(quiet->Start().ok());
  EXPECT_TRUE(quiet->Join().ok());
  const Runners failing = Make(Queue(), {Ending()}, options);
  EXPECT_TRUE(failing->Start().ok());
  EXPECT_EQ(failing->Join().code(), ALLSTOP_OUT_OF_RANGE);
}

TEST(QueueRunnerTest, CancelledWithoutAStopIsAnError) {
  const Coordinator coord = Coordinator::Create();
  const Runners runner = Make(coord, Queue(), {Returning(ALLSTOP_CANCELLED, "closed")});
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_EQ(runner->Join(), Status(ALLSTOP_CANCELLED, "closed"));
  EXPECT_EQ(coord.Join(kForever), ALLSTOP_STOPPED_BY_ERROR);
}

TEST(QueueRunnerTest, AStopReleasesAllThatAreHeldUpByAFullQueue) {
  constexpr int kThreads = 16;
  const Coordinator coord = Coordinator::Create();
  std::vector<Gate> reached(kThreads);
  Ops ops;
  for (Gate& gate : reached) ops.push_back(Blocking(&gate));
  const Runners runner = Make(coord, FullQueue(), std::move(ops));
  EXPECT_TRUE(runner->Start().ok());
  for (Gate& gate : reached) gate.Wait();
  coord.RequestStop();
  EXPECT_EQ(coord.Join(kForever), ALLSTOP_OK);
  EXPECT_TRUE(runner->Join().ok());
}

// Here the queue has the same coordinator as the runner, so the stop itself wakes the ops with
// CANCELLED. The runner must not take that for an error, even if ClearStop has run already when
// an op returns.
TEST(QueueRunnerTest, AStopThatIsClearedAtOnceReleasesThemToo) {
  for (int round = 0; round < 200; ++round) {
    const Coordinator coord = Coordinator::Create();
    const BoundedQueue queue(coord, 1);
    EXPECT_EQ(queue.Enqueue("full"), ALLSTOP_OK);
    Gate reached;
    const Runners runner = Make(coord, queue, {Blocking(&reached), Blocking()});
    EXPECT_TRUE(runner->Start().ok());
    reached.Wait();
    coord.RequestStop();
    coord.ClearStop();
    ASSERT_EQ(runner->Join(), Status());
    ASSERT_FALSE(coord.ShouldStop());
  }
}

TEST(QueueRunnerTest, AStopBeforeTheStartEndsItWithoutACall) {
  const Coordinator coord = Coordinator::Create();
  const BoundedQueue queue = Queue();
  std::atomic<int> cancelled{0};
  QueueRunner::Options options;
  options.cancel_op = [&](const BoundedQueue&) {
    ++cancelled;
    return Status();
  };
  const Runners runner = Make(coord, queue, {Enqueueing(1)}, options);
  coord.RequestStop();
  EXPECT_EQ(runner->Start(kForever).code(), ALLSTOP_CANCELLED) << "and is not waited for";
  EXPECT_TRUE(runner->Join().ok());
  EXPECT_EQ(cancelled, 1);
  ExpectDrained(queue, 0);
}

TEST(QueueRunnerTest, ItsThreadForTheStopEndsWithTheLastOp) {
  const Coordinator coord = Coordinator::Create();
  bool cancelled = false;
  QueueRunner::Options options;
  options.cancel_op = [&](const BoundedQueue&) {
    cancelled = true;
    return Status();
  };
  const Runners runner = Make(coord, Queue(), {Enqueueing(1)}, options);
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_EQ(coord.Join(kForever), ALLSTOP_OK) << "without a stop";
  EXPECT_TRUE(runner->Join().ok());
  EXPECT_FALSE(cancelled);
  EXPECT_FALSE(coord.ShouldStop());
}

TEST(QueueRunnerTest, AStopCancelsACloseOpThatBlocks) {
  const Coordinator coord = Coordinator::Create();
  Gate reached;
  QueueRunner::Options options;
  options.close_op = Blocking(&reached);
  const Runners runner = Make(coord, FullQueue(), {Ending()}, options);
  EXPECT_TRUE(runner->Start().ok());
  reached.Wait();
  coord.RequestStop();
  EXPECT_TRUE(runner->Join().ok());
}

TEST(QueueRunnerTest, AnErrorOfTheCloseOpIsReturnedByJoins) {
  const std::pair<QueueRunner::Op, Status> cases[] = {
      {Returning(ALLSTOP_UNAVAILABLE, "gone"), Status(ALLSTOP_UNAVAILABLE, "gone")},
      {Throw, Status(ALLSTOP_STOPPED_BY_ERROR, kThrown)},
      {Ending(), Status()},
  };
  for (const auto& [close_op, status] : cases) {
    const Coordinator coord = Coordinator::Create();
    QueueRunner::Options options;
    options.close_op = close_op;
    const BoundedQueue queue = Queue();
    const Runners runner = Make(coord, queue, {Ending()}, options);
    EXPECT_TRUE(runner->Start().ok());
    EXPECT_EQ(runner->Join(), status);
    EXPECT_TRUE(queue.closed()) << "consumers would hang";
    EXPECT_FALSE(coord.ShouldStop());
    EXPECT_EQ(tensorflow::Coordinator(coord).GetStatus(), status) << "it was reported";
  }
}

TEST(QueueRunnerTest, AnErrorOfTheCancelOpIsReturnedByJoins) {
  const Coordinator coord = Coordinator::Create();
  QueueRunner::Options options;
  options.cancel_op = [](const BoundedQueue& queue) -> Status {
    queue.Close(true);
    throw std::runtime_error("disk gone");
  };
  const Runners runner = Make(coord, FullQueue(), {Blocking()}, options);
  EXPECT_TRUE(runner->Start().ok());
  coord.RequestStop();
  EXPECT_EQ(runner->Join(), Status(ALLSTOP_STOPPED_BY_ERROR, kThrown));
  EXPECT_EQ(coord.Join(kForever), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_EQ(RecordOf(coord, allstop_first_error).message, kThrown);
}

TEST(QueueRunnerTest, AStartWithATimeWaitsForTheFirstAttemptOfEach) {
  const BoundedQueue queue = Queue();
  const Runners runner = Make(queue, {Enqueueing(1), Enqueueing(1)});
  EXPECT_TRUE(runner->Start(kForever).ok());
  EXPECT_EQ(queue.size(), 2u);
}

TEST(QueueRunnerTest, ItDoesNotWaitForLongerAndTheyGoOn) {
  const BoundedQueue queue = FullQueue();
  const Runners runner = Make(queue, {Enqueueing(0), Enqueueing(1)});
  EXPECT_EQ(runner->Start(kMoment).code(), ALLSTOP_DEADLINE_EXCEEDED);
  ExpectDrained(queue, 2);
  EXPECT_TRUE(runner->Join().ok());
}

TEST(QueueRunnerTest, AFirstAttemptThatFailsIsWhatTheStartComesTo) {
  const Runners failing = Make(Queue(), {Enqueueing(1), Throw});
  EXPECT_EQ(failing->Start(kForever), Status(ALLSTOP_STOPPED_BY_ERROR, kThrown));
  const Runners ending = Make(Queue(), {Ending()});
  EXPECT_EQ(ending->Start(kForever), Status(ALLSTOP_OUT_OF_RANGE, "the end"));
  EXPECT_TRUE(ending->Join().ok()) << "it is no error";
  const Runners later = Make(Queue(), {[calls = 0](const BoundedQueue&) mutable {
                               return ++calls == 1 ? Status() : Status(ALLSTOP_UNAVAILABLE, "2");
                             }});
  EXPECT_TRUE(later->Start(kForever).ok());
  EXPECT_EQ(later->Join(), Status(ALLSTOP_UNAVAILABLE, "2"));
}

TEST(QueueRunnerTest, ErrorCallbacksAreToldTheFirstErrorOnItsThread) {
  std::vector<Status> told;
  const Runners runner = Make(
      Queue(), {Returning(ALLSTOP_UNAVAILABLE, "gone"), Returning(ALLSTOP_UNAVAILABLE, "gone")});
  runner->AddErrorCallback([](const Status&) { ADD_FAILURE() << "it was cleared"; });
  runner->ClearErrorCallbacks();
  runner->AddErrorCallback([&, raw = runner.get()](const Status& status) {
    told.push_back(status);
    told.push_back(raw->Join());
    raw->AddErrorCallback([](const Status&) { ADD_FAILURE() << "too late"; });
    EXPECT_TRUE(raw->IsRunning());
  });
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_EQ(runner->Join(), Status(ALLSTOP_UNAVAILABLE, "gone"));
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0], Status(ALLSTOP_UNAVAILABLE, "gone"));
  EXPECT_EQ(told[1].code(), ALLSTOP_SELF_JOIN);
}

TEST(QueueRunnerTest, AnOpCannotJoinItsRunner) {
  Runners runner;
  Status joined;
  runner = Make(Queue(), {[&](const BoundedQueue& queue) {
                  joined = runner->Join();
                  return Ending()(queue);
                }});
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_TRUE(runner->Join().ok());
  EXPECT_EQ(joined.code(), ALLSTOP_SELF_JOIN);
}

TEST(QueueRunnerTest, ManyMayJoinIt) {
  const Coordinator coord = Coordinator::Create();
  const Runners runner = Make(coord, FullQueue(), {Blocking(), Blocking()});
  EXPECT_TRUE(runner->Start().ok());
  {
    std::vector<Thread> joining;
    for (int i = 0; i < 4; ++i) {
      joining.emplace_back(Coordinator::Create(), "joining",
                           [&] { EXPECT_TRUE(runner->Join().ok()); });
    }
    coord.RequestStop();
  }
}

TEST(QueueRunnerTest, ItsEndReleasesItsOpsAndStopsNobodyElse) {
  const Coordinator coord = Coordinator::Create();
  const BoundedQueue alone = FullQueue();
  const BoundedQueue queue = FullQueue();
  {
    Gate reached;
    const Runners runner = Make(alone, {Blocking(&reached)});
    EXPECT_TRUE(runner->Start().ok());
    Gate other;
    const Runners coordinated = Make(coord, queue, {Blocking(&other)});
    EXPECT_TRUE(coordinated->Start().ok());
    reached.Wait();
    other.Wait();
  }
  EXPECT_FALSE(coord.ShouldStop());
  EXPECT_EQ(coord.Join(kForever), ALLSTOP_OK);
  ExpectDrained(alone, 1);
  ExpectDrained(queue, 1);
}

TEST(QueueRunnerTest, ItsEndClosesTheQueueAndCallsTheCancelOpForWhatElseAnOpMayWaitFor) {
  const Coordinator coord = Coordinator::Create();
  for (const bool coordinated : {true, false}) {
    Gate reached;
    Gate wakes;
    Gate blocked;
    QueueRunner::Options options;
    options.cancel_op = [&](const BoundedQueue&) {
      wakes.Open();
      return Status();
    };
    const Ops ops = {[&](const BoundedQueue&) {
                       reached.Open();
                       wakes.Wait();
                       return Status();
                     },
                     Blocking(&blocked)};
    const BoundedQueue queue = FullQueue();
    const Runners runner =
        coordinated ? Make(coord, queue, ops, options) : Make(queue, ops, options);
    EXPECT_TRUE(runner->Start().ok());
    reached.Wait();
    blocked.Wait();
  }
}

TEST(QueueRunnerTest, ARunnerThatWasNeverStartedLeavesTheQueueAlone) {
  const Coordinator coord = Coordinator::Create();
  const BoundedQueue queue = Queue();
  Make(coord, queue, {Enqueueing(1)}).reset();
  Make(queue, {Enqueueing(1)}).reset();
  EXPECT_FALSE(queue.closed());
  EXPECT_EQ(coord.Join(kForever), ALLSTOP_OK);
}

TEST(QueueRunnerTest, ARunnerThatHasEndedLeavesTheQueueAlone) {
  QueueRunner::Options options;
  options.close_op = Returning(ALLSTOP_OK);
  const BoundedQueue queue = Queue();
  Runners runner = Make(queue, {Ending()}, options);
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_TRUE(runner->Join().ok());
  runner.reset();
  EXPECT_FALSE(queue.closed());
}

TEST(QueueRunnerTest, MayEndOnItsOwnThread) {
  const Coordinator coord = Coordinator::Create();
  const BoundedQueue queue = FullQueue();
  Gate started;
  Runners runner;
  runner = Make(coord, queue,
                {[&](const BoundedQueue&) {
                   started.Wait();
                   runner.reset();
                   return Status();
                 },
                 Blocking()});
  EXPECT_TRUE(runner->Start().ok());
  started.Open();
  EXPECT_EQ(coord.Join(kForever), ALLSTOP_OK);
  EXPECT_EQ(runner, nullptr);
  ExpectDrained(queue, 1);
}

TEST(QueueRunnerTest, MayBelongToItsOp) {
  const Coordinator coord = Coordinator::Create();
  const BoundedQueue queue = Queue();
  Gate started;
  auto own = std::make_shared<Runners>();
  *own = Make(coord, queue, {[&started, kept = own](const BoundedQueue& ending) {
                started.Wait();
                return Ending()(ending);
              }});
  QueueRunner* const raw = own->get();
  EXPECT_TRUE(raw->Start().ok());
  const std::weak_ptr<Runners> left = own;
  own.reset();
  started.Open();
  EXPECT_EQ(coord.Join(kForever), ALLSTOP_OK);
  EXPECT_TRUE(left.expired());
  ExpectDrained(queue, 0);
}

#if defined(__GLIBC__)
TEST(QueueRunnerTest, AnOpThatExitsItsThreadHasEnded) {
  const BoundedQueue queue = Queue();
  const Runners runner =
      Make(queue, {[](const BoundedQueue&) -> Status { pthread_exit(nullptr); }});
  EXPECT_EQ(runner->Start(kForever).code(), ALLSTOP_CANCELLED);
  EXPECT_TRUE(runner->Join().ok());
  ExpectDrained(queue, 0);
}

TEST(QueueRunnerTest, ACloseOpOrACancelOpThatExitsItsThreadHasEnded) {
  const auto exits = [](const BoundedQueue&) -> Status { pthread_exit(nullptr); };
  QueueRunner::Options options;
  options.close_op = exits;
  const BoundedQueue queue = Queue();
  const Runners closing = Make(queue, {Ending()}, options);
  EXPECT_TRUE(closing->Start().ok());
  EXPECT_TRUE(closing->Join().ok());
  ExpectDrained(queue, 0);

  options = {};
  options.cancel_op = exits;
  const Coordinator coord = Coordinator::Create();
  const BoundedQueue other = Queue();
  const Runners cancelling = Make(coord, other, {Returning(ALLSTOP_OK, "")}, options);
  EXPECT_TRUE(cancelling->Start().ok());
  coord.RequestStop();
  EXPECT_TRUE(cancelling->Join().ok());
  EXPECT_EQ(coord.Join(kForever), ALLSTOP_OK);
}
#endif

TEST(QueueRunnerTest, BelongsToACoordinatorOfTensorFlows) {
  tensorflow::Coordinator coord(Coordinator::Create());
  const BoundedQueue queue = FullQueue();
  Runners runner = Make(coord.shared(), queue, {Blocking(), Blocking()});
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_TRUE(coord.RegisterRunner(std::move(runner)).ok());
  EXPECT_FALSE(coord.AllRunnersStopped());
  EXPECT_TRUE(coord.RequestStop().ok());
  EXPECT_TRUE(coord.Join().ok());
  EXPECT_TRUE(coord.AllRunnersStopped());
}

TEST(QueueRunnerTest, TheJoinOfTensorFlowsCoordinatorReturnsItsError) {
  tensorflow::Coordinator coord(Coordinator::Create());
  Runners runner = Make(coord.shared(), Queue(), {Returning(ALLSTOP_UNAVAILABLE, "gone")});
  QueueRunner* const raw = runner.get();
  EXPECT_TRUE(coord.RegisterRunner(std::move(runner)).ok());
  EXPECT_TRUE(raw->Start().ok());
  coord.WaitForStop();
  EXPECT_EQ(coord.Join(), Status(ALLSTOP_UNAVAILABLE, "gone"));
}

TEST(QueueRunnerTest, TheJoinOfTensorFlowsCoordinatorReturnsTheErrorOfACloseOp) {
  tensorflow::Coordinator coord(Coordinator::Create());
  QueueRunner::Options options;
  options.close_op = Returning(ALLSTOP_UNAVAILABLE, "not closed");
  Runners runner = Make(coord.shared(), Queue(), {Ending()}, options);
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_TRUE(coord.RegisterRunner(std::move(runner)).ok());
  EXPECT_TRUE(coord.RequestStop().ok());
  EXPECT_EQ(coord.Join(), Status(ALLSTOP_UNAVAILABLE, "not closed"));
}

// A coordinator whose table notes the names of registered threads, and refuses the thread with
// the index `refused_`.
class RegistryTest : public testing::Test {
 protected:
  RegistryTest() : table_(*real_.handle()->table) {
    names_.clear();
    register_ = table_.thread_register;
    table_.thread_register = [](allstop_state* state, allstop_string name, std::uint32_t flags,
                                allstop_thread** thread) {
      if (names_.size() == refused_) return ALLSTOP_RESOURCE_EXHAUSTED;
      names_.push_back(view::ToString(name));
      return register_(state, name, flags, thread);
    };
    allstop_coordinator handle = *real_.handle();
    handle.table = &table_;
    allstop_retain(&handle);
    coord_ = Coordinator(handle);
  }

  static inline Strings names_;
  static inline std::size_t refused_;
  static inline decltype(allstop_table::thread_register) register_;
  const Coordinator real_ = Coordinator::Create();
  allstop_table table_;
  Coordinator coord_;
};

TEST_F(RegistryTest, ThreadsAreNamedAfterTheRunnerAndItsOps) {
  refused_ = 100;
  QueueRunner::Options options;
  options.name = "input";
  options.op_names = {"", "lines"};
  const Runners runner = Make(coord_, Queue(), {Ending(), Ending(), Ending()}, options);
  EXPECT_EQ(runner->name(), "input");
  EXPECT_TRUE(runner->Start().ok());
  EXPECT_EQ(names_,
            (Strings{"QueueRunnerThread-input-close_on_stop", "QueueRunnerThread-input-op-1",
                     "QueueRunnerThread-input-lines", "QueueRunnerThread-input-op-3"}));
  EXPECT_TRUE(runner->Join().ok());
}

TEST_F(RegistryTest, AStartThatFailsHalfWayEndsWhatItHasBegun) {
  for (refused_ = 0; refused_ < 4; ++refused_) {
    names_.clear();
    const BoundedQueue queue = FullQueue();
    const Runners runner = Make(coord_, queue, {Blocking(), Blocking(), Blocking()});
    EXPECT_EQ(runner->Start(kForever).code(), ALLSTOP_RESOURCE_EXHAUSTED);
    EXPECT_TRUE(runner->Join().ok());
    EXPECT_FALSE(runner->IsRunning());
    EXPECT_EQ(runner->Start().code(), ALLSTOP_FAILED_PRECONDITION);
    ExpectDrained(queue, 1);
    EXPECT_FALSE(coord_.ShouldStop());
    EXPECT_EQ(names_.size(), refused_);
  }
}

// The thread that cannot be created is that of the last op, which calls close_op.
TEST_F(RegistryTest, ACloseOpMayCallARunnerWhoseStartFails) {
  refused_ = 1;
  Runners runner;
  QueueRunner::Options options;
  allstop_status again = ALLSTOP_OK;
  options.close_op = [&](const BoundedQueue&) {
    again = runner->Start().code();
    return Status();
  };
  runner = Make(coord_, Queue(), {Ending()}, options);
  EXPECT_EQ(runner->Start().code(), ALLSTOP_RESOURCE_EXHAUSTED);
  EXPECT_EQ(again, ALLSTOP_FAILED_PRECONDITION);
}

}  // namespace
}  // namespace allstop
