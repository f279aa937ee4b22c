// The C interface, used as another addon uses it: through the table alone.
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "abi/table.h"
#include "allstop/allstop.h"
#include "gate.h"
#include "requests.h"

// From abi_c_test.c. Returns null, or the text of the expectation that failed.
extern "C" const char* allstop_c_story(const allstop_coordinator* coord);

namespace allstop {
namespace {

using test::kForever;

const double kNan = std::numeric_limits<double>::quiet_NaN();

std::string ToString(allstop_string string) {
  return string.data == nullptr ? "(none)" : std::string(string.data, string.size);
}

allstop_error MakeError(const char* name, const char* message) {
  allstop_error error = {};
  error.size = sizeof(error);
  error.name = allstop_str(name);
  error.message = allstop_str(message);
  return error;
}

class AbiTest : public testing::Test {
 protected:
  // Fills coord_ as allstop_node.h does from the capsule of a Coordinator object.
  AbiTest() {
    const auto made = test::MakeCoordinator();
    weak_ = made;
    const allstop_table& table = abi::Table();
    coord_ = {&table, abi::ToState(made.get()), table.stop_word(abi::ToState(made.get()))};
    allstop_retain(&coord_);
  }
  ~AbiTest() override {
    if (!released_) Release();
    EXPECT_TRUE(weak_.expired()) << "every reference was given back";
  }

  void Release() {
    allstop_release(&coord_);
    released_ = true;
  }

  std::shared_ptr<core::Coordinator> Core() const { return weak_.lock(); }

  // Reads the record, and keeps it until the end of the test.
  allstop_record_info Info() {
    allstop_record* record = nullptr;
    EXPECT_EQ(allstop_stop_record(&coord_, &record), ALLSTOP_OK);
    allstop_record_info info = {};
    info.size = sizeof(info);
    if (record == nullptr) return info;
    EXPECT_EQ(allstop_record_read(&coord_, record, &info), ALLSTOP_OK);
    records_.emplace_back(record,
                          [this](allstop_record* r) { allstop_record_release(&coord_, r); });
    return info;
  }

  std::vector<std::string> SuppressedErrors() const {
    std::vector<std::string> names;
    for (const auto& each : weak_.lock()->View().suppressed) {
      names.push_back(each.error->fields().name);
    }
    return names;
  }

  allstop_coordinator coord_ = {};

 private:
  std::weak_ptr<core::Coordinator> weak_;
  bool released_ = false;
  std::vector<std::shared_ptr<allstop_record>> records_;
};

TEST_F(AbiTest, TheTableSaysItsVersionFirst) {
  EXPECT_EQ(coord_.table->size, sizeof(allstop_table));
  EXPECT_EQ(coord_.table->major, ALLSTOP_ABI_MAJOR);
  EXPECT_EQ(coord_.table->minor, ALLSTOP_ABI_MINOR);
  EXPECT_TRUE(ALLSTOP_HAS(coord_.table, retain));
  EXPECT_TRUE(ALLSTOP_HAS(coord_.table, callback_release));

  allstop_table older = *coord_.table;
  older.size = offsetof(allstop_table, on_stop);
  EXPECT_TRUE(ALLSTOP_HAS(&older, join));
  EXPECT_FALSE(ALLSTOP_HAS(&older, on_stop));
}

TEST_F(AbiTest, EveryFunctionOfTheTableIsThere) {
  const auto* const slots = reinterpret_cast<void* const*>(&coord_.table->retain);
  const auto* const end = reinterpret_cast<void* const*>(coord_.table + 1);
  for (const auto* slot = slots; slot != end; ++slot) EXPECT_NE(*slot, nullptr);
}

TEST_F(AbiTest, PlainCUsesItAll) { EXPECT_STREQ(allstop_c_story(&coord_), nullptr); }

TEST_F(AbiTest, AStopWithoutAnErrorIsPlain) {
  EXPECT_FALSE(allstop_should_stop(&coord_));
  EXPECT_EQ(allstop_request_stop(&coord_, nullptr), ALLSTOP_OK);
  EXPECT_TRUE(allstop_should_stop(&coord_));
  EXPECT_EQ(*coord_.stop_word, 1u);
  const allstop_record_info info = Info();
  EXPECT_EQ(info.kind, ALLSTOP_STOP_PLAIN);
  EXPECT_EQ(info.language, ALLSTOP_LANGUAGE_NATIVE);
  EXPECT_GT(info.requested_at_ms, 0);
  EXPECT_GT(info.thread_id, 0u);
  EXPECT_GT(info.id.size, 0u);
  EXPECT_GT(info.thread_name.size, 0u);
  for (const allstop_string& string :
       {info.name, info.message, info.code, info.stack, info.native_type}) {
    EXPECT_EQ(string.data, nullptr);
    EXPECT_EQ(string.size, 0u);
  }
}

TEST_F(AbiTest, AnErrorIsReadAsItWasWritten) {
  allstop_error error = MakeError("RangeError", "too far");
  error.code = allstop_str("ERR_FAR");
  error.stack = allstop_str("f\ng");
  error.native_type = allstop_str("std::out_of_range");
  EXPECT_EQ(allstop_request_stop(&coord_, &error), ALLSTOP_OK);
  const allstop_record_info info = Info();
  EXPECT_EQ(info.kind, ALLSTOP_STOP_ERROR);
  EXPECT_EQ(ToString(info.name), "RangeError");
  EXPECT_EQ(ToString(info.message), "too far");
  EXPECT_EQ(ToString(info.code), "ERR_FAR");
  EXPECT_EQ(ToString(info.stack), "f\ng");
  EXPECT_EQ(ToString(info.native_type), "std::out_of_range");
}

TEST_F(AbiTest, StringsAreCopiedAndNeedNoNul) {
  std::string message = "half of this";
  allstop_error error = MakeError(nullptr, nullptr);
  error.message = {message.data(), 4};
  EXPECT_EQ(allstop_request_stop(&coord_, &error), ALLSTOP_OK);
  message.assign(message.size(), '!');
  EXPECT_EQ(ToString(Info().message), "half");
}

TEST_F(AbiTest, AnErrorWithoutANameIsANativeError) {
  allstop_error error = MakeError(nullptr, "boom");
  error.native_type = allstop_str("my::Error");
  allstop_request_stop(&coord_, &error);
  const allstop_record_info info = Info();
  EXPECT_EQ(ToString(info.name), "NativeError");
  EXPECT_EQ(ToString(info.code), "ERR_ALLSTOP_NATIVE");
}

TEST_F(AbiTest, CleanTypesHoldForNativeErrors) {
  const allstop_error error = MakeError("OutOfRangeError", "end");
  EXPECT_EQ(allstop_request_stop(&coord_, &error), ALLSTOP_OK);
  EXPECT_EQ(Info().kind, ALLSTOP_STOP_CLEAN);
  EXPECT_EQ(ToString(Info().message), "end");
  EXPECT_EQ(allstop_join(&coord_, 0, 0), ALLSTOP_OK);
}

TEST_F(AbiTest, AnErrorOfAnOlderHeaderIsShorter) {
  allstop_error error = MakeError("TypeError", "not of that header");
  error.size = offsetof(allstop_error, message);
  EXPECT_EQ(allstop_request_stop(&coord_, &error), ALLSTOP_OK);
  EXPECT_EQ(ToString(Info().name), "TypeError");
  EXPECT_EQ(ToString(Info().message), "(none)");
}

TEST_F(AbiTest, AnErrorOfANewerHeaderIsLonger) {
  struct {
    allstop_error known;
    allstop_string newer;
  } error = {MakeError("TypeError", "m"), allstop_str("unknown to us")};
  error.known.size = sizeof(error);
  EXPECT_EQ(allstop_request_stop(&coord_, &error.known), ALLSTOP_OK);
  EXPECT_EQ(ToString(Info().message), "m");
}

TEST_F(AbiTest, AnErrorThatForgotItsSizeIsRefused) {
  allstop_error error = MakeError("TypeError", "m");
  for (const std::uint32_t size : {0u, 7u}) {
    error.size = size;
    EXPECT_EQ(allstop_request_stop(&coord_, &error), ALLSTOP_INVALID_ARGUMENT);
  }
  EXPECT_FALSE(allstop_should_stop(&coord_));
}

TEST_F(AbiTest, AnInfoOfAnOtherHeaderIsFilledAsFarAsItGoes) {
  allstop_request_stop(&coord_, nullptr);
  allstop_record* record = nullptr;
  ASSERT_EQ(allstop_stop_record(&coord_, &record), ALLSTOP_OK);

  allstop_record_info older;
  std::memset(&older, 0x55, sizeof(older));
  const allstop_record_info untouched = older;
  older.size = offsetof(allstop_record_info, id);
  EXPECT_EQ(allstop_record_read(&coord_, record, &older), ALLSTOP_OK);
  EXPECT_GT(older.thread_id, 0u);
  EXPECT_EQ(std::memcmp(&older.id, &untouched.id, sizeof(older) - older.size), 0);

  struct {
    allstop_record_info known;
    std::uint64_t newer;
  } longer = {};
  longer.known.size = sizeof(longer);
  longer.newer = 7;
  EXPECT_EQ(allstop_record_read(&coord_, record, &longer.known), ALLSTOP_OK);
  EXPECT_EQ(longer.known.size, sizeof(longer));
  EXPECT_EQ(longer.newer, 7u);

  older.size = 4;
  EXPECT_EQ(allstop_record_read(&coord_, record, &older), ALLSTOP_INVALID_ARGUMENT);
  allstop_record_release(&coord_, record);
  allstop_record_release(&coord_, nullptr);
}

TEST_F(AbiTest, ARecordOutlivesTheClearOfItsStop) {
  const allstop_error error = MakeError("TypeError", "kept");
  allstop_request_stop(&coord_, &error);
  const allstop_record_info info = Info();
  EXPECT_EQ(allstop_clear_stop(&coord_), ALLSTOP_OK);
  EXPECT_FALSE(allstop_should_stop(&coord_));
  EXPECT_EQ(ToString(info.message), "kept");
  allstop_record* record = nullptr;
  EXPECT_EQ(allstop_stop_record(&coord_, &record), ALLSTOP_OK);
  EXPECT_EQ(record, nullptr);
}

TEST_F(AbiTest, WaitingEndsWithTheStopOrTheTime) {
  EXPECT_EQ(allstop_wait_for_stop(&coord_, 0), ALLSTOP_DEADLINE_EXCEEDED);
  EXPECT_EQ(allstop_wait_for_stop(&coord_, 1), ALLSTOP_DEADLINE_EXCEEDED);
  std::thread requester([this] { allstop_request_stop(&coord_, nullptr); });
  EXPECT_EQ(allstop_wait_for_stop(&coord_, kForever), ALLSTOP_OK);
  requester.join();
}

TEST_F(AbiTest, DurationsThatAreNoneAreRefused) {
  for (const double none : {-1.0, -kForever, kNan}) {
    EXPECT_EQ(allstop_wait_for_stop(&coord_, none), ALLSTOP_INVALID_ARGUMENT);
    EXPECT_EQ(allstop_join(&coord_, none, 0), ALLSTOP_INVALID_ARGUMENT);
  }
}

TEST_F(AbiTest, UnknownFlagsAreRefused) {
  allstop_thread* thread = nullptr;
  EXPECT_EQ(allstop_thread_register(&coord_, allstop_str("t"), 4, &thread),
            ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(allstop_join(&coord_, 0, 2), ALLSTOP_INVALID_ARGUMENT);
  allstop_callback* callback = nullptr;
  EXPECT_EQ(allstop_on_stop(&coord_, nullptr, nullptr, &callback), ALLSTOP_INVALID_ARGUMENT);
}

TEST_F(AbiTest, AfterAJoinTheErrorIsTheCallersOwn) {
  EXPECT_EQ(allstop_join(&coord_, kForever, 0), ALLSTOP_OK);
  const allstop_error error = MakeError("TypeError", "late");
  EXPECT_EQ(allstop_request_stop(&coord_, &error), ALLSTOP_FAILED_PRECONDITION);
  EXPECT_FALSE(allstop_should_stop(&coord_));
  EXPECT_EQ(allstop_request_stop(&coord_, nullptr), ALLSTOP_OK);
  EXPECT_TRUE(allstop_should_stop(&coord_));
}

TEST_F(AbiTest, ARegisteredThreadIsJoinedAndItsErrorIsTheStop) {
  allstop_thread* token = nullptr;
  ASSERT_EQ(allstop_thread_register(&coord_, allstop_str("loader"), 0, &token), ALLSTOP_OK);
  std::thread thread([this, token] {
    EXPECT_EQ(allstop_thread_enter(&coord_, token), ALLSTOP_OK);
    const allstop_error error = MakeError("TypeError", "thrown in the thread");
    allstop_thread_done(&coord_, token, &error);
  });
  EXPECT_EQ(allstop_join(&coord_, kForever, 0), ALLSTOP_STOPPED_BY_ERROR);
  thread.join();
  EXPECT_EQ(ToString(Info().message), "thrown in the thread");
  EXPECT_EQ(ToString(Info().thread_name), "loader");
}

TEST_F(AbiTest, AThreadThatIsLateAfterTheJoinThrowsAtNobody) {
  allstop_thread* token = nullptr;
  ASSERT_EQ(allstop_thread_register(&coord_, {}, 0, &token), ALLSTOP_OK);
  allstop_request_stop(&coord_, nullptr);
  EXPECT_EQ(allstop_join(&coord_, 0, 0), ALLSTOP_STRAGGLERS);
  EXPECT_EQ(allstop_clear_stop(&coord_), ALLSTOP_OK);
  EXPECT_EQ(allstop_join(&coord_, 0, 0), ALLSTOP_OK);
  const allstop_error error = MakeError("TypeError", "late");
  allstop_thread_done(&coord_, token, &error);
  EXPECT_FALSE(allstop_should_stop(&coord_));
  // The table has no function for suppressed errors; JavaScript can read them.
  EXPECT_EQ(SuppressedErrors(), std::vector<std::string>{"TypeError"});
}

TEST_F(AbiTest, AThreadThatForgotTheSizeOfItsErrorHasFailedAllTheSame) {
  allstop_thread* token = nullptr;
  ASSERT_EQ(allstop_thread_register(&coord_, allstop_str("worker"), 0, &token), ALLSTOP_OK);
  allstop_error error = MakeError("TypeError", "m");
  error.size = 0;
  allstop_thread_done(&coord_, token, &error);
  EXPECT_EQ(allstop_join(&coord_, kForever, 0), ALLSTOP_STOPPED_BY_ERROR);
}

TEST_F(AbiTest, StragglersMayBeIgnored) {
  allstop_thread* token = nullptr;
  ASSERT_EQ(allstop_thread_register(&coord_, allstop_str("slow"), 0, &token), ALLSTOP_OK);
  allstop_request_stop(&coord_, nullptr);
  EXPECT_EQ(allstop_join(&coord_, 0, ALLSTOP_JOIN_IGNORE_LIVE_THREADS), ALLSTOP_OK);
  allstop_thread_done(&coord_, token, nullptr);
}

TEST_F(AbiTest, AnUnstartedThreadDoesNotHoldUpAJoin) {
  allstop_thread* token = nullptr;
  ASSERT_EQ(
      allstop_thread_register(&coord_, allstop_str("later"), ALLSTOP_THREAD_UNSTARTED, &token),
      ALLSTOP_OK);
  EXPECT_EQ(allstop_join(&coord_, kForever, 0), ALLSTOP_OK);
  EXPECT_EQ(allstop_thread_enter(&coord_, token), ALLSTOP_OK) << "registered again";
  allstop_thread_done(&coord_, token, nullptr);
}

TEST_F(AbiTest, ALooperIsListedAsOneAndMayNotJoinItselfEither) {
  allstop_thread* token = nullptr;
  ASSERT_EQ(allstop_thread_register(&coord_, allstop_str(""), ALLSTOP_THREAD_LOOPER, &token),
            ALLSTOP_OK);
  const auto threads = Core()->LiveThreads();
  ASSERT_EQ(threads.size(), 1u);
  EXPECT_EQ(threads[0].kind, core::ThreadKind::kLooper);
  EXPECT_EQ(threads[0].name, "looper");
  allstop_thread_enter(&coord_, token);
  EXPECT_EQ(allstop_join(&coord_, kForever, 0), ALLSTOP_SELF_JOIN);
  EXPECT_EQ(allstop_request_stop(&coord_, nullptr), ALLSTOP_OK);
  EXPECT_EQ(ToString(Info().thread_name), "looper") << "it is known by its OS thread";
  allstop_thread_done(&coord_, token, nullptr);
}

TEST_F(AbiTest, AThreadMayNotJoinItself) {
  allstop_thread* token = nullptr;
  ASSERT_EQ(allstop_thread_register(&coord_, allstop_str("self"), 0, &token), ALLSTOP_OK);
  EXPECT_EQ(allstop_thread_enter(&coord_, token), ALLSTOP_OK);
  EXPECT_EQ(allstop_join(&coord_, kForever, 0), ALLSTOP_SELF_JOIN);
  allstop_thread_done(&coord_, token, nullptr);
}

TEST_F(AbiTest, TheTokenOfAThreadHoldsTheState) {
  allstop_thread* token = nullptr;
  ASSERT_EQ(allstop_thread_register(&coord_, allstop_str("worker"), 0, &token), ALLSTOP_OK);
  allstop_callback* callback = nullptr;
  ASSERT_EQ(allstop_on_stop(
                &coord_, [](void*) {}, nullptr, &callback),
            ALLSTOP_OK);
  Release();
  EXPECT_FALSE(allstop_should_stop(&coord_)) << "two others hold it";
  allstop_callback_release(&coord_, callback);
  EXPECT_FALSE(allstop_should_stop(&coord_));
  const allstop_error error = MakeError("TypeError", "m");
  allstop_thread_done(&coord_, token, &error);
}

TEST_F(AbiTest, ACallbackRunsOnceOnTheRequestersThread) {
  struct Seen {
    int runs = 0;
    std::thread::id runner;
  } seen;
  const auto see = [](void* context) {
    auto* const s = static_cast<Seen*>(context);
    ++s->runs;
    s->runner = std::this_thread::get_id();
  };
  allstop_callback* before = nullptr;
  allstop_callback* after = nullptr;
  ASSERT_EQ(allstop_on_stop(&coord_, see, &seen, &before), ALLSTOP_OK);
  allstop_request_stop(&coord_, nullptr);
  EXPECT_EQ(seen.runs, 1);
  EXPECT_EQ(seen.runner, std::this_thread::get_id());
  ASSERT_EQ(allstop_on_stop(&coord_, see, &seen, &after), ALLSTOP_OK);
  EXPECT_EQ(seen.runs, 2) << "registered late, it ran at once";
  EXPECT_NE(after, nullptr);
  allstop_callback_release(&coord_, before);
  allstop_callback_release(&coord_, after);
  allstop_callback_release(&coord_, nullptr);
}

TEST_F(AbiTest, AReleasedCallbackNeverRuns) {
  bool ran = false;
  allstop_callback* callback = nullptr;
  ASSERT_EQ(
      allstop_on_stop(
          &coord_, [](void* context) { *static_cast<bool*>(context) = true; }, &ran, &callback),
      ALLSTOP_OK);
  allstop_callback_release(&coord_, callback);
  allstop_request_stop(&coord_, nullptr);
  EXPECT_FALSE(ran);
}

TEST_F(AbiTest, ACallbackMayReleaseItself) {
  struct Story {
    const allstop_coordinator* coord;
    allstop_callback* callback = nullptr;
    bool returned = false;
  } story{&coord_};
  ASSERT_EQ(allstop_on_stop(
                &coord_,
                [](void* context) {
                  auto* const s = static_cast<Story*>(context);
                  allstop_callback_release(s->coord, s->callback);
                  s->returned = true;
                },
                &story, &story.callback),
            ALLSTOP_OK);
  allstop_request_stop(&coord_, nullptr);
  EXPECT_TRUE(story.returned);
}

TEST_F(AbiTest, ReleaseWaitsForACallbackThatRuns) {
  struct Story {
    test::Gate running;
    test::Gate released;
    bool finished = false;
  } story;
  allstop_callback* callback = nullptr;
  ASSERT_EQ(allstop_on_stop(
                &coord_,
                [](void* context) {
                  auto* const s = static_cast<Story*>(context);
                  s->running.Open();
                  EXPECT_FALSE(s->released.OpensWrongly());
                  s->finished = true;
                },
                &story, &callback),
            ALLSTOP_OK);
  std::thread requester([this] { allstop_request_stop(&coord_, nullptr); });
  story.running.Wait();
  allstop_callback_release(&coord_, callback);
  EXPECT_TRUE(story.finished);
  story.released.Open();
  requester.join();
}

TEST_F(AbiTest, AStoppedParentRefusesTheClearOfItsChild) {
  const auto parent = test::MakeCoordinator();
  const auto child = parent->CreateChild(test::Named());
  const allstop_coordinator handle = {&abi::Table(), abi::ToState(child.get()), nullptr};
  parent->RequestStop(test::Plain());
  EXPECT_EQ(allstop_clear_stop(&handle), ALLSTOP_FAILED_PRECONDITION);
}

TEST_F(AbiTest, TheWordStaysWhereItIs) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(coord_.table->stop_word(coord_.state), coord_.stop_word);
    allstop_request_stop(&coord_, nullptr);
    EXPECT_EQ(*coord_.stop_word, 1u);
    allstop_clear_stop(&coord_);
    EXPECT_EQ(*coord_.stop_word, 0u);
  }
}

// The README's example: threads poll the stop word, and one of them fails.
TEST_F(AbiTest, ThreadsThatPollAreStoppedByTheOneThatFails) {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    allstop_thread* token = nullptr;
    ASSERT_EQ(allstop_thread_register(&coord_, allstop_str("poller"), 0, &token), ALLSTOP_OK);
    threads.emplace_back([this, token, i] {
      allstop_thread_enter(&coord_, token);
      if (i == 0) {
        const allstop_error error = MakeError(nullptr, "the first");
        allstop_thread_done(&coord_, token, &error);
        return;
      }
      while (!allstop_should_stop(&coord_)) std::this_thread::yield();
      allstop_thread_done(&coord_, token, nullptr);
    });
  }
  EXPECT_EQ(allstop_join(&coord_, kForever, 0), ALLSTOP_STOPPED_BY_ERROR);
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(ToString(Info().message), "the first");
}

}  // namespace
}  // namespace allstop
