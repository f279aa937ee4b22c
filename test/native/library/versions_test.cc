// An older header on a newer table, and a newer header on an older table (docs/abi.md).
#include <gtest/gtest.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_interruptible.hpp>
#include <allstop/allstop_tensorflow.hpp>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

extern "C" {  // addon_1_0.c
size_t addon_1_0_error_size(void);
size_t addon_1_0_table_size(void);
const char* addon_1_0_run(const void* table, void* state);
}

namespace allstop {
namespace {

TEST(VersionsTest, AnAddonOfTheFirstVersionRunsOnTodaysTable) {
  const Coordinator coord = Coordinator::Create();
  EXPECT_LT(addon_1_0_error_size(), sizeof(allstop_error)) << "else this shows nothing";
  EXPECT_EQ(addon_1_0_table_size(), offsetof(allstop_table, create));
  EXPECT_STREQ(addon_1_0_run(coord.handle()->table, coord.handle()->state), "from an old addon");
}

// The table of a package of version 1.0: only the bytes before `create`, in memory of that size,
// so that today's header must not read the functions of later versions from it.
class OldPackageTest : public testing::Test {
 protected:
  OldPackageTest() : real_(Coordinator::Create()) {
    std::memcpy(table_, real_.handle()->table, sizeof(table_));
    const std::uint32_t size = sizeof(table_);
    std::memcpy(table_, &size, sizeof(size));
    allstop_coordinator old = *real_.handle();
    old.table = reinterpret_cast<const allstop_table*>(table_);
    allstop_retain(&old);
    coord_ = Coordinator(old);
  }

  Coordinator real_;
  alignas(void*) unsigned char table_[offsetof(allstop_table, create)] = {};
  Coordinator coord_;
};

TEST_F(OldPackageTest, WhatItLacksIsUnavailable) {
  EXPECT_FALSE(coord_.Child());
  EXPECT_EQ(coord_.ReportError({}), ALLSTOP_UNAVAILABLE);
  bool made = true;
  EXPECT_EQ(coord_.RequestStop(&made), ALLSTOP_UNAVAILABLE);
  EXPECT_FALSE(made);
  EXPECT_FALSE(coord_.ShouldStop());
  allstop_record* record = nullptr;
  EXPECT_EQ(allstop_first_error(coord_.handle(), &record), ALLSTOP_UNAVAILABLE);
  EXPECT_EQ(record, nullptr);
  coord_.RequestStop();
  coord_.RequestStop(Error{});
  EXPECT_TRUE(coord_.SuppressedErrors().empty());
  char id[64];
  EXPECT_EQ(allstop_new_id(coord_.handle(), id, sizeof(id)), 0u);
  EXPECT_FALSE(coord_.StopAfter(std::chrono::hours(1)));
  EXPECT_FALSE(Interruptible(coord_));
  allstop_coordinator created = {};
  EXPECT_EQ(allstop_create(coord_.handle()->table, nullptr, &created), ALLSTOP_UNAVAILABLE);
}

TEST_F(OldPackageTest, ATensorFlowCoordinatorStops) {
  tensorflow::Coordinator coord(coord_);
  EXPECT_TRUE(coord.RequestStop().ok());
  EXPECT_EQ(coord.RequestStop().code(), ALLSTOP_FAILED_PRECONDITION);
  EXPECT_TRUE(real_.ShouldStop());
}

TEST_F(OldPackageTest, AllElseWorks) {
  Thread(coord_, "new", [] { throw std::string("thrown"); }).Join();
  EXPECT_TRUE(real_.ShouldStop());
  EXPECT_EQ(coord_.Join(), ALLSTOP_STOPPED_BY_ERROR);
  EXPECT_THROW(RaiseRequestedException(coord_), StopError);
}

TEST(VersionsTest, OptionsAndErrorsOfAnUnknownSizeAreRefused) {
  const Coordinator coord = Coordinator::Create();
  allstop_options options = {};
  allstop_coordinator created = {};
  EXPECT_EQ(allstop_create(coord.handle()->table, &options, &created), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(allstop_child(coord.handle(), &options, &created), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(created.state, nullptr);
  const allstop_error error = {};
  EXPECT_EQ(allstop_report_error(coord.handle(), &error), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(allstop_report_error(coord.handle(), nullptr), ALLSTOP_INVALID_ARGUMENT);
}

// The table of a package of each version, in a block of exactly its size, so that the sanitizers
// see a header that reads the function of a later version from it.
class EveryVersionTest : public testing::TestWithParam<std::size_t> {
 protected:
  EveryVersionTest() : real_(Coordinator::Create()), table_(new unsigned char[GetParam()]) {
    std::memcpy(table_.get(), real_.handle()->table, GetParam());
    const auto size = static_cast<std::uint32_t>(GetParam());
    std::memcpy(table_.get(), &size, sizeof(size));
    allstop_coordinator old = *real_.handle();
    old.table = reinterpret_cast<const allstop_table*>(table_.get());
    allstop_retain(&old);
    coord_ = Coordinator(old);
  }

  // `field`: its place in the table.
  bool Has(std::size_t field) const { return field < GetParam(); }

  Coordinator real_;
  std::unique_ptr<unsigned char[]> table_;
  Coordinator coord_;
};

TEST_P(EveryVersionTest, AHeaderCallsOnlyWhatThePackageHas) {
  EXPECT_EQ(static_cast<bool>(coord_.Child()), Has(offsetof(allstop_table, child)));
  EXPECT_EQ(static_cast<bool>(coord_.StopAfter(std::chrono::hours(1))),
            Has(offsetof(allstop_table, stop_after)));
  EXPECT_EQ(static_cast<bool>(Interruptible(coord_)),
            Has(offsetof(allstop_table, interruptible_enter)));

  bool made = false;
  const bool says_made = Has(offsetof(allstop_table, request_stop2));
  EXPECT_EQ(coord_.RequestStop(Error{"Error", "first", ""}, &made),
            says_made ? ALLSTOP_OK : ALLSTOP_UNAVAILABLE);
  EXPECT_EQ(made, says_made);
  EXPECT_EQ(coord_.ShouldStop(), says_made);
  coord_.RequestStop(Error{"Error", "second", ""});
  EXPECT_TRUE(coord_.ShouldStop());
  EXPECT_TRUE(coord_.FirstError().has_value()) << "of version 1.0 it is the record of the stop";
  EXPECT_EQ(coord_.SuppressedErrors().size(), says_made ? 1u : 0u);
}

INSTANTIATE_TEST_SUITE_P(
    OneDot, EveryVersionTest,
    testing::Values(offsetof(allstop_table, create), offsetof(allstop_table, looper_create),
                    offsetof(allstop_table, request_stop2), offsetof(allstop_table, stop_after),
                    offsetof(allstop_table, interruptible_enter),
                    offsetof(allstop_table, interruptible_is_effective), sizeof(allstop_table)));

}  // namespace
}  // namespace allstop
