// A stop for code that knows std::stop_token or poll() instead of allstop.
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_bridges.hpp>

#if !defined(_WIN32)
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>
#endif

#include <atomic>
#include <thread>

namespace allstop {
namespace {

#if defined(__cpp_lib_jthread)
TEST(StopSourceTest, ItsTokenIsStoppedWithTheCoordinator) {
  const Coordinator coord = Coordinator::Create();
  const StopSource source(coord);
  const std::stop_token token = source.get_token();
  EXPECT_FALSE(token.stop_requested());
  bool called = false;
  const std::stop_callback callback(token, [&] { called = true; });
  coord.RequestStop();
  EXPECT_TRUE(token.stop_requested());
  EXPECT_TRUE(called);
}

TEST(StopSourceTest, IsStoppedFromTheBeginningOfAStoppedOne) {
  const Coordinator coord = Coordinator::Create();
  coord.RequestStop();
  EXPECT_TRUE(StopSource(coord).get_token().stop_requested());
}

TEST(StopSourceTest, TheTokenOutlivesItAndIsThenStoppedByNobody) {
  const Coordinator coord = Coordinator::Create();
  std::stop_token token;
  {
    const StopSource source(coord);
    token = source.get_token();
  }
  coord.RequestStop();
  EXPECT_FALSE(token.stop_requested());
}

TEST(StopSourceTest, TheOtherWayIsACallbackOfTheStandards) {
  const Coordinator coord = Coordinator::Create();
  std::stop_source source;
  const std::stop_callback callback(source.get_token(), [coord] { coord.RequestStop(); });
  source.request_stop();
  EXPECT_TRUE(coord.ShouldStop());
}
#endif

#if !defined(_WIN32)
bool IsReadable(int fd) {
  pollfd polled = {fd, POLLIN, 0};
  return poll(&polled, 1, 0) == 1 && (polled.revents & POLLIN) != 0;
}

TEST(StopFdTest, WakesAPollLoop) {
  const Coordinator coord = Coordinator::Create();
  std::atomic<bool> polling{false};
  std::thread loop([&] {
    const StopFd stop(coord);
    pollfd polled = {stop.get(), POLLIN, 0};
    polling = true;
    EXPECT_EQ(poll(&polled, 1, -1), 1);
    EXPECT_TRUE(coord.ShouldStop());
  });
  while (!polling) std::this_thread::yield();
  coord.RequestStop();
  loop.join();
}

TEST(StopFdTest, IsReadableFromTheStopOnAndForGood) {
  const Coordinator coord = Coordinator::Create();
  const StopFd stop(coord);
  EXPECT_FALSE(IsReadable(stop.get()));
  coord.RequestStop();
  EXPECT_TRUE(IsReadable(stop.get()));
  coord.ClearStop();
  EXPECT_TRUE(IsReadable(stop.get()));
  EXPECT_FALSE(IsReadable(StopFd(coord).get())) << "another life";
  coord.RequestStop();
  EXPECT_TRUE(IsReadable(StopFd(coord).get())) << "opened during the stop";
}

TEST(StopFdTest, LeavesNoDescriptorBehind) {
  const Coordinator coord = Coordinator::Create();
  const int before = StopFd(coord).get();
  for (int i = 0; i < 100; ++i) {
    const StopFd stop(coord);
    if (i == 50) coord.RequestStop();
  }
  EXPECT_EQ(StopFd(coord).get(), before) << "the lowest that is free";
}

TEST(StopFdTest, SaysSoWhenThereIsNoneLeft) {
  const Coordinator coord = Coordinator::Create();
  std::vector<int> taken;
  for (int fd = open("/dev/null", O_RDONLY); fd >= 0; fd = open("/dev/null", O_RDONLY)) {
    taken.push_back(fd);
    if (taken.size() == 100'000) break;
  }
  allstop_stop_fd stop;
  const allstop_status status = allstop_stop_fd_open(coord.handle(), &stop);
  for (const int fd : taken) close(fd);
  EXPECT_EQ(status, ALLSTOP_RESOURCE_EXHAUSTED);
}
#endif

}  // namespace
}  // namespace allstop
