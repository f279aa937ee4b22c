// A thread that is registered before it starts, as the C interface has it.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "abi/table.h"
#include "allstop/allstop.h"
#include "core/thread_registry.h"
#include "requests.h"

namespace allstop {
namespace {

using test::kForever;

class UnstartedThreadTest : public testing::Test {
 protected:
  UnstartedThreadTest()
      : coord_{&abi::Table(), abi::ToState(coordinator_.get()),
               abi::Table().stop_word(abi::ToState(coordinator_.get()))} {}

  allstop_thread* Register(const char* name, std::uint32_t flags) const {
    allstop_thread* token = nullptr;
    EXPECT_EQ(allstop_thread_register(&coord_, allstop_str(name), flags, &token), ALLSTOP_OK);
    return token;
  }

  std::vector<std::string> Live() const {
    std::vector<std::string> names;
    for (const auto& thread : coordinator_->LiveThreads()) names.push_back(thread.name);
    return names;
  }

  allstop_status JoinElsewhere() const {
    allstop_status status = ALLSTOP_INVALID_ARGUMENT;
    std::thread([&] { status = allstop_join(&coord_, 0, 0); }).join();
    return status;
  }

  const std::shared_ptr<core::Coordinator> coordinator_ = test::MakeCoordinator();
  const allstop_coordinator coord_;
};

TEST_F(UnstartedThreadTest, IsRegisteredAgainWhenItStartsAfterAJoin) {
  allstop_thread* const token = Register("late", ALLSTOP_THREAD_UNSTARTED);
  ASSERT_EQ(allstop_join(&coord_, kForever, 0), ALLSTOP_OK);
  ASSERT_EQ(Live(), std::vector<std::string>{}) << "the join has forgotten it";

  EXPECT_EQ(allstop_thread_enter(&coord_, token), ALLSTOP_OK);
  EXPECT_EQ(Live(), std::vector<std::string>{"late"});
  EXPECT_EQ(allstop_join(&coord_, kForever, 0), ALLSTOP_SELF_JOIN);
  EXPECT_EQ(allstop_thread_enter(&coord_, token), ALLSTOP_OK);
  EXPECT_EQ(Live(), std::vector<std::string>{"late"}) << "a second call changes nothing";

  EXPECT_EQ(allstop_request_stop(&coord_, nullptr), ALLSTOP_OK);
  EXPECT_EQ(coordinator_->View().record->requester().thread_name, "late");
  EXPECT_EQ(JoinElsewhere(), ALLSTOP_STRAGGLERS);
  allstop_thread_done(&coord_, token, nullptr);
  EXPECT_EQ(allstop_join(&coord_, kForever, 0), ALLSTOP_OK);
}

TEST_F(UnstartedThreadTest, IsALooperAgainIfItWasOne) {
  allstop_thread* const token = Register("", ALLSTOP_THREAD_UNSTARTED | ALLSTOP_THREAD_LOOPER);
  ASSERT_EQ(allstop_join(&coord_, kForever, 0), ALLSTOP_OK);
  EXPECT_EQ(allstop_thread_enter(&coord_, token), ALLSTOP_OK);
  const auto threads = coordinator_->LiveThreads();
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].name, "looper");
  EXPECT_EQ(threads[0].kind, core::ThreadKind::kLooper);
  allstop_thread_done(&coord_, token, nullptr);
}

TEST_F(UnstartedThreadTest, ThatHasStartedIsLeftBehindAndNotRegisteredAgain) {
  allstop_thread* const token = Register("hangs", ALLSTOP_THREAD_UNSTARTED);
  std::thread([&] { allstop_thread_enter(&coord_, token); }).join();
  allstop_request_stop(&coord_, nullptr);
  ASSERT_EQ(allstop_join(&coord_, 0, 0), ALLSTOP_STRAGGLERS);

  // So many that the coordinator no longer knows the first one.
  std::vector<allstop_thread*> others;
  for (std::size_t i = 0; i < core::ThreadRegistry::kMaxLeftBehind; ++i) {
    others.push_back(Register("other", 0));
  }
  ASSERT_EQ(allstop_join(&coord_, 0, 0), ALLSTOP_STRAGGLERS);
  EXPECT_EQ(allstop_thread_enter(&coord_, token), ALLSTOP_OK);
  EXPECT_EQ(Live(), std::vector<std::string>{});
  for (allstop_thread* const other : others) allstop_thread_done(&coord_, other, nullptr);
  allstop_thread_done(&coord_, token, nullptr);
}

}  // namespace
}  // namespace allstop
