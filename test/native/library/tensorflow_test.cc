// TensorFlow's own tests of its C++ Coordinator (its coordinator_test.cc), and further promises
// of its header, run on allstop::tensorflow::Coordinator.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_runner.hpp>
#include <allstop/allstop_tensorflow.hpp>
#include <atomic>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace allstop {
namespace {

allstop::Coordinator Shared(std::vector<std::string> clean = {"OutOfRangeError"}) {
  Options options;
  options.clean_stop_types = std::move(clean);
  return allstop::Coordinator::Create(options);
}

// Runs until it is joined, and ends with the given status. Join appends `number` to `order`.
class MockRunner : public Runner {
 public:
  MockRunner(std::vector<int>* order, int number, Status status)
      : order_(order), number_(number), status_(std::move(status)) {}

  Status Join() override {
    if (order_) order_->push_back(number_);
    running_ = false;
    return status_;
  }
  bool IsRunning() const override { return running_; }

 private:
  std::vector<int>* const order_;
  const int number_;
  const Status status_;
  std::atomic<bool> running_{true};
};

std::unique_ptr<MockRunner> Ending(Status status, std::vector<int>* order = nullptr,
                                   int number = 0) {
  return std::make_unique<MockRunner>(order, number, std::move(status));
}

TEST(TensorFlowTest, StopAndWaitOnIt) {
  tensorflow::Coordinator coord(Shared());
  EXPECT_FALSE(coord.ShouldStop());
  std::thread waiter([&] { coord.WaitForStop(); });
  EXPECT_TRUE(coord.RequestStop().ok());
  waiter.join();
  EXPECT_TRUE(coord.ShouldStop());
}

TEST(TensorFlowTest, ASecondRequestIsRefused) {
  tensorflow::Coordinator coord(Shared());
  EXPECT_TRUE(coord.RequestStop().ok());
  EXPECT_EQ(coord.RequestStop().code(), ALLSTOP_FAILED_PRECONDITION);
}

TEST(TensorFlowTest, OfTwoRequestsAtOnceOneIsRefused) {
  for (int round = 0; round < 100; ++round) {
    tensorflow::Coordinator coord(Shared());
    std::atomic<int> accepted{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        if (coord.RequestStop().ok()) ++accepted;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(accepted, 1);
  }
}

TEST(TensorFlowTest, OfTwoCoordinatorsOnOneStopOnlyTheOneThatMadeItIsTold) {
  for (int round = 0; round < 200; ++round) {
    const allstop::Coordinator shared = Shared();
    tensorflow::Coordinator one(shared);
    tensorflow::Coordinator other(shared);
    std::atomic<int> ready{0};
    std::atomic<int> accepted{0};
    const auto request = [&](tensorflow::Coordinator& coord) {
      ++ready;
      while (ready < 2) {
      }
      const Status status = coord.RequestStop();
      if (status.ok()) ++accepted;
      if (!status.ok()) EXPECT_EQ(status.code(), ALLSTOP_FAILED_PRECONDITION);
    };
    std::thread first([&] { request(one); });
    std::thread second([&] { request(other); });
    first.join();
    second.join();
    ASSERT_EQ(accepted, 1);
  }
}

TEST(TensorFlowTest, AJoinBeforeTheStopIsRefused) {
  tensorflow::Coordinator coord(Shared());
  EXPECT_EQ(coord.Join().code(), ALLSTOP_FAILED_PRECONDITION);
}

TEST(TensorFlowTest, AJoinJoinsTheRunnersInTheirOrderAndLetsGoOfThem) {
  tensorflow::Coordinator coord(Shared());
  std::vector<int> order;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(coord.RegisterRunner(Ending(Status(), &order, i)).ok());
  }
  EXPECT_TRUE(coord.RequestStop().ok());
  EXPECT_TRUE(coord.Join().ok());
  EXPECT_TRUE(coord.Join().ok());
  EXPECT_EQ(order, (std::vector<int>{0, 1, 2}));
}

TEST(TensorFlowTest, ARunnerIsNotRegisteredAfterTheStop) {
  tensorflow::Coordinator coord(Shared());
  EXPECT_TRUE(coord.RequestStop().ok());
  EXPECT_EQ(coord.RegisterRunner(Ending(Status())).code(), ALLSTOP_FAILED_PRECONDITION);
}

TEST(TensorFlowTest, AllRunnersStopped) {
  tensorflow::Coordinator coord(Shared());
  EXPECT_TRUE(coord.AllRunnersStopped()) << "no runner is registered";
  EXPECT_TRUE(coord.RegisterRunner(Ending(Status())).ok());
  EXPECT_FALSE(coord.AllRunnersStopped());
  EXPECT_TRUE(coord.RequestStop().ok());
  EXPECT_TRUE(coord.Join().ok());
  EXPECT_TRUE(coord.AllRunnersStopped());
}

TEST(TensorFlowTest, AJoinComesToTheFirstFailureOfARunner) {
  tensorflow::Coordinator coord(Shared());
  EXPECT_TRUE(coord.RegisterRunner(Ending(Status())).ok());
  EXPECT_TRUE(coord.RegisterRunner(Ending(Status(ALLSTOP_CANCELLED, "cancelled"))).ok());
  EXPECT_TRUE(coord.RegisterRunner(Ending(Status(ALLSTOP_INVALID_ARGUMENT, "late"))).ok());
  EXPECT_TRUE(coord.RequestStop().ok());
  const Status status = coord.Join();
  EXPECT_EQ(status.code(), ALLSTOP_CANCELLED);
  EXPECT_EQ(status.message(), "cancelled");
}

TEST(TensorFlowTest, ReportsAreStickyAndStopNobody) {
  tensorflow::Coordinator coord(Shared());
  EXPECT_TRUE(coord.GetStatus().ok());
  coord.ReportStatus(Status());
  EXPECT_TRUE(coord.GetStatus().ok());
  coord.ReportStatus(Status(ALLSTOP_CANCELLED, "first"));
  coord.ReportStatus(Status(ALLSTOP_INVALID_ARGUMENT, "second"));
  EXPECT_EQ(coord.GetStatus(), Status(ALLSTOP_CANCELLED, "first"));
  EXPECT_FALSE(coord.ShouldStop());
}

TEST(TensorFlowTest, ACleanStatusIsNotKept) {
  tensorflow::Coordinator coord(Shared({"OutOfRangeError", "CancelledError"}));
  coord.ReportStatus(Status(ALLSTOP_OUT_OF_RANGE, "the end"));
  coord.ReportStatus(Status(ALLSTOP_CANCELLED, "cancelled"));
  EXPECT_TRUE(coord.GetStatus().ok());
  coord.ReportStatus(Status(ALLSTOP_INVALID_ARGUMENT, "wrong"));
  EXPECT_EQ(coord.GetStatus().code(), ALLSTOP_INVALID_ARGUMENT);
}

TEST(TensorFlowTest, WithoutAListOutOfRangeIsClean) {
  tensorflow::Coordinator coord(allstop::Coordinator::Create());
  coord.ReportStatus(Status(ALLSTOP_OUT_OF_RANGE, "the end"));
  EXPECT_TRUE(coord.GetStatus().ok());
}

TEST(TensorFlowTest, TheErrorOfAStopFromElsewhereIsItsStatus) {
  tensorflow::Coordinator coord(Shared());
  Error error;
  error.name = "UnavailableError";
  error.message = "gone";
  coord.shared().RequestStop(error);
  EXPECT_EQ(coord.RequestStop().code(), ALLSTOP_FAILED_PRECONDITION);
  EXPECT_EQ(coord.Join(), Status(ALLSTOP_UNAVAILABLE, "gone"));

  tensorflow::Coordinator with_code(Shared());
  error.code = "E_DATABASE";  // of its own: the class says the status
  with_code.shared().RequestStop(error);
  EXPECT_EQ(with_code.GetStatus(), Status(ALLSTOP_UNAVAILABLE, "gone"));

  tensorflow::Coordinator other(Shared());
  error.name = "TypeError";
  other.shared().RequestStop(error);
  EXPECT_EQ(other.GetStatus(), Status(ALLSTOP_STOPPED_BY_ERROR, "gone"));
}

// The `code` of each error class is written in three places: the core, lib/errors/errors.ts, and
// view::kStatuses. This test compares the core with view::kStatuses.
TEST(TensorFlowTest, EveryStatusWithAClassComesBackAsItself) {
  for (const auto& [code, name, js_code] : view::kStatuses) {
    tensorflow::Coordinator coord(Shared({}));
    coord.ReportStatus(Status(code, name));
    EXPECT_EQ(coord.GetStatus(), Status(code, name));
    EXPECT_EQ(coord.shared().FirstError()->name, name);
    EXPECT_EQ(coord.shared().FirstError()->code, js_code);
  }
}

TEST(TensorFlowTest, ARunnerMustNotBeNull) {
  tensorflow::Coordinator coord(Shared());
  EXPECT_EQ(coord.RegisterRunner(nullptr).code(), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_TRUE(coord.AllRunnersStopped());
}

TEST(TensorFlowTest, ARunnerMayAskTheCoordinatorWhetherItRuns) {
  class Asking : public Runner {
   public:
    explicit Asking(tensorflow::Coordinator& coord) : coord_(coord) {}
    Status Join() override { return Status(); }
    bool IsRunning() const override { return coord_.RegisterRunner(Ending(Status())).ok(); }

   private:
    tensorflow::Coordinator& coord_;
  };
  tensorflow::Coordinator coord(Shared());
  EXPECT_TRUE(coord.RegisterRunner(std::make_unique<Asking>(coord)).ok());
  EXPECT_FALSE(coord.AllRunnersStopped());
}

TEST(TensorFlowTest, AStatusWithoutAClassKeepsItsNumber) {
  for (const allstop_status internal : {13, 1'000, std::numeric_limits<allstop_status>::max()}) {
    tensorflow::Coordinator coord(Shared());
    coord.ReportStatus(Status(internal, "a bug"));
    EXPECT_EQ(coord.GetStatus(), Status(internal, "a bug"));
  }
}

TEST(TensorFlowTest, AnErrorWhoseCodeOnlyLooksLikeAStatusHasNone) {
  for (const char* const code :
       {"STATUS_PENDING", "STATUS_0", "STATUS_-3", "STATUS_2147483648", "STATUS_", "STATUS"}) {
    tensorflow::Coordinator coord(Shared());
    Error error;
    error.code = code;
    coord.shared().RequestStop(error);
    EXPECT_EQ(coord.GetStatus().code(), ALLSTOP_STOPPED_BY_ERROR) << code;
  }
}

TEST(TensorFlowTest, AStopCallbackMayRequestAStopItself) {
  tensorflow::Coordinator coord(Shared());
  Status second;
  const StopCallback callback(coord.shared(), [&] { second = coord.RequestStop(); });
  EXPECT_TRUE(coord.RequestStop().ok());
  EXPECT_EQ(second.code(), ALLSTOP_FAILED_PRECONDITION);
}

TEST(TensorFlowTest, ItsEndJoinsAlsoWhenTheStopIsClearedAtOnce) {
  const allstop::Coordinator shared = Shared();
  std::vector<int> order;
  const StopCallback clearing(shared, [&] { shared.ClearStop(); });
  {
    tensorflow::Coordinator coord(shared);
    EXPECT_TRUE(coord.RegisterRunner(Ending(Status(), &order, 7)).ok());
  }
  EXPECT_EQ(order, std::vector<int>{7});
}

TEST(TensorFlowTest, ItsEndStopsAndJoins) {
  const allstop::Coordinator shared = Shared();
  std::vector<int> order;
  {
    tensorflow::Coordinator coord(shared);
    EXPECT_TRUE(coord.RegisterRunner(Ending(Status(), &order, 7)).ok());
  }
  EXPECT_TRUE(shared.ShouldStop());
  EXPECT_EQ(order, std::vector<int>{7});
}

// A runner that runs on its own thread, as a QueueRunner does.
TEST(TensorFlowTest, ARunnerThatWaitsForTheStopIsJoined) {
  class Waiting : public Runner {
   public:
    explicit Waiting(const allstop::Coordinator& coord)
        : thread_(coord, "waiting", [this](const allstop::Coordinator& own) {
            own.WaitForStop();
            running_ = false;
          }) {}
    Status Join() override {
      thread_.Join();
      return Status(ALLSTOP_DEADLINE_EXCEEDED, "late");
    }
    bool IsRunning() const override { return running_; }

   private:
    std::atomic<bool> running_{true};
    Thread thread_;
  };
  tensorflow::Coordinator coord(Shared());
  EXPECT_TRUE(coord.RegisterRunner(std::make_unique<Waiting>(coord.shared())).ok());
  EXPECT_TRUE(coord.RequestStop().ok());
  EXPECT_EQ(coord.Join().code(), ALLSTOP_DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace allstop
