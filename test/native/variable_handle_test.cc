// Variables through the C interface and allstop::Variable, as an addon uses them.
#include <gtest/gtest.h>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#include <allstop/allstop.hpp>
#include <allstop/allstop_variable.hpp>
#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include "abi/table.h"
#include "core/variables.h"

namespace allstop {
namespace {

using core::VariableType;

class VariableHandleTest : public testing::Test {
 protected:
  template <typename Element>
  allstop::Variable Make(const std::string& name, VariableType type, std::vector<Element> values) {
    const auto made =
        variables_->Define(name, type, values.data(), values.size() * sizeof(Element));
    made->Retain();
    return allstop::Variable(allstop_variable{&abi::Table(), abi::ToState(made.get())});
  }
  allstop::Variable Number(double value) {
    return Make<double>("number", VariableType::kNumber, {value});
  }

  std::shared_ptr<core::Variables> variables_ = core::Variables::Create();
};

TEST_F(VariableHandleTest, ANumberIsReadAssignedAndAddedTo) {
  const auto number = Number(3);
  EXPECT_EQ(number.AssignAdd(0.5), ALLSTOP_OK);
  double read = 0;
  EXPECT_EQ(number.Read(read), ALLSTOP_OK);
  EXPECT_EQ(read, 3.5);
  EXPECT_EQ(number.Assign(-1), ALLSTOP_OK);
  std::array<double, 1> one = {};
  EXPECT_EQ(number.Read(one), ALLSTOP_OK) << "a number is one double";
  EXPECT_EQ(one[0], -1);
}

#ifndef _WIN32
TEST_F(VariableHandleTest, AForkedProcessHasNoPartInIt) {
  const double three = 3;
  const auto made =
      variables_->Define("shared", VariableType::kNumber, &three, sizeof(three), true);
  made->Retain();
  const allstop::Variable shared(allstop_variable{&abi::Table(), abi::ToState(made.get())});
  const pid_t child = fork();
  if (child == 0) {
    double read = 0;
    for (const allstop_status status : {shared.Read(read), shared.Assign(4), shared.AssignAdd(1)}) {
      if (status != ALLSTOP_FAILED_PRECONDITION) _exit(1);
    }
    _exit(0);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  double read = 0;
  EXPECT_EQ(shared.Read(read), ALLSTOP_OK);
  EXPECT_EQ(read, 3);
}
#endif

TEST_F(VariableHandleTest, ArraysTakeRangesOfTheirElements) {
  const auto doubles = Make<double>("doubles", VariableType::kFloat64, {1, 2});
  const auto floats = Make<float>("floats", VariableType::kFloat32, {1, 2});
  const auto ints =
      Make<std::int32_t>("ints", VariableType::kInt32, {std::numeric_limits<std::int32_t>::max()});
  EXPECT_EQ(doubles.AssignAdd(std::vector<double>{1, 1}), ALLSTOP_OK);
  const float quarters[] = {0.25F, 0.5F};
  EXPECT_EQ(floats.AssignAdd(quarters), ALLSTOP_OK);
  EXPECT_EQ(ints.AssignAdd(std::array<std::int32_t, 1>{1}), ALLSTOP_OK);

  std::vector<double> read_doubles(2);
  float read_floats[2] = {};
  std::array<std::int32_t, 1> read_ints = {};
  EXPECT_EQ(doubles.Read(read_doubles), ALLSTOP_OK);
  EXPECT_EQ(floats.Read(read_floats), ALLSTOP_OK);
  EXPECT_EQ(ints.Read(read_ints), ALLSTOP_OK);
  EXPECT_EQ(read_doubles, (std::vector<double>{2, 3}));
  EXPECT_EQ(read_floats[1], 2.5F);
  EXPECT_EQ(read_ints[0], std::numeric_limits<std::int32_t>::min()) << "wraps around";
}

TEST_F(VariableHandleTest, AnotherTypeOrLengthIsRefusedAndChangesNothing) {
  const auto floats = Make<float>("floats", VariableType::kFloat32, {1, 2});
  EXPECT_EQ(floats.AssignAdd(std::vector<double>{5, 5}), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(floats.Assign(std::vector<std::int32_t>{5, 5}), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(floats.Assign(std::vector<float>{5}), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(floats.AssignAdd(std::vector<float>{5, 5, 5}), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(floats.AssignAdd(5), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(Number(0).Assign(std::vector<double>{}), ALLSTOP_INVALID_ARGUMENT);
  const auto* const handle = floats.handle();
  EXPECT_EQ(allstop_variable_assign(handle, 77, nullptr, 2), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(allstop_variable_assign(handle, ALLSTOP_VARIABLE_FLOAT32, nullptr, 2),
            ALLSTOP_INVALID_ARGUMENT);
  std::vector<float> two(2);
  EXPECT_EQ(floats.Read(two), ALLSTOP_OK);
  EXPECT_EQ(two, (std::vector<float>{1, 2}));
  std::vector<float> three(3, 9);
  EXPECT_EQ(floats.Read(three), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(three[0], 9);
}

template <typename Values, typename = void>
constexpr bool kCanAdd = false;
template <typename Values>
constexpr bool
    kCanAdd<Values, std::void_t<decltype(std::declval<const allstop::Variable&>().AssignAdd(
                        std::declval<const Values&>()))>> = true;

static_assert(kCanAdd<std::vector<float>> && kCanAdd<std::int32_t[3]> && kCanAdd<double>);
static_assert(!kCanAdd<std::vector<std::int64_t>> && !kCanAdd<std::string>);
static_assert(!kCanAdd<const double*> && !kCanAdd<char[3]>);
template <typename Values, typename = void>
constexpr bool kCanRead = false;
template <typename Values>
constexpr bool kCanRead<Values, std::void_t<decltype(std::declval<const allstop::Variable&>().Read(
                                    std::declval<Values&>()))>> = true;
static_assert(kCanRead<std::vector<float>> && kCanRead<double>);
static_assert(!kCanRead<const std::vector<float>> && !kCanRead<const double> && !kCanRead<int>);

TEST_F(VariableHandleTest, AnArrayMayBeEmpty) {
  const auto none = Make<double>("none", VariableType::kFloat64, {});
  std::vector<double> values;
  EXPECT_EQ(none.length(), 0U);
  EXPECT_EQ(none.Read(values), ALLSTOP_OK);
  EXPECT_EQ(none.Assign(values), ALLSTOP_OK);
  EXPECT_EQ(none.AssignAdd(values), ALLSTOP_OK);
  EXPECT_EQ(none.AssignAdd(1), ALLSTOP_INVALID_ARGUMENT);
}

TEST_F(VariableHandleTest, SaysWhatItIs) {
  const auto floats = Make<float>(
      "gr\xC3\xB6\xC3\x9F"
      "e",
      VariableType::kFloat32, {1, 2});
  EXPECT_EQ(floats.type(), ALLSTOP_VARIABLE_FLOAT32);
  EXPECT_EQ(floats.length(), 2U);
  EXPECT_EQ(floats.name(),
            "gr\xC3\xB6\xC3\x9F"
            "e");
  EXPECT_EQ(Number(1).length(), 1U);
  allstop_variable_info unset = {};
  EXPECT_EQ(allstop_variable_describe(floats.handle(), &unset), ALLSTOP_INVALID_ARGUMENT);
  EXPECT_EQ(unset.length, 0U);
  allstop_variable_info short_one = {};
  short_one.size = 8;
  EXPECT_EQ(allstop_variable_describe(floats.handle(), &short_one), ALLSTOP_OK);
  EXPECT_EQ(short_one.type, ALLSTOP_VARIABLE_FLOAT32);
  EXPECT_EQ(short_one.length, 0U) << "an older header has no such field";
}

TEST_F(VariableHandleTest, AReferenceOutlivesTheCluster) {
  auto number = Number(1);
  const std::weak_ptr<core::Variable> weak = variables_->Find("number");
  variables_.reset();
  {
    const allstop::Variable copy = number;
    const allstop::Variable moved = std::move(number);
    EXPECT_FALSE(number);
    EXPECT_EQ(copy.AssignAdd(1), ALLSTOP_OK);
    double read = 0;
    EXPECT_EQ(moved.Read(read), ALLSTOP_OK);
    EXPECT_EQ(read, 2);
    EXPECT_FALSE(weak.expired());
  }
  EXPECT_TRUE(weak.expired()) << "the last reference has freed it";
}

TEST_F(VariableHandleTest, AnEmptyOneSaysSo) {
  const allstop::Variable empty;
  double number = 7;
  EXPECT_EQ(empty.Read(number), ALLSTOP_INVALID_HANDLE);
  EXPECT_EQ(empty.Assign(1), ALLSTOP_INVALID_HANDLE);
  EXPECT_EQ(empty.AssignAdd(std::vector<float>{1}), ALLSTOP_INVALID_HANDLE);
  EXPECT_EQ(empty.length(), 0U);
  EXPECT_EQ(empty.name(), "");
  EXPECT_EQ(number, 7);
}

TEST_F(VariableHandleTest, NoAddOfSeveralThreadsIsLostAndNoReadIsTorn) {
  constexpr int kThreads = 4;
  constexpr int kAdds = 2'000;
  const auto pair = Make<double>("pair", VariableType::kFloat64, {0, 0});
  const auto made = variables_->Find("pair");
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, mine = pair] {
      const double ones[] = {1, 1};
      for (int count = 0; count < kAdds; ++count) mine.AssignAdd(ones);
    });
  }
  threads.emplace_back([&] {  // as JavaScript adds, with the ids of a call
    const double ones[] = {1, 1};
    for (int count = 1; count <= kAdds; ++count) {
      made->AssignAdd(ones, 9, static_cast<std::uint64_t>(count));
      made->AssignAdd(ones, 9, static_cast<std::uint64_t>(count));
    }
  });
  std::array<double, 2> read = {};
  do {
    ASSERT_EQ(pair.Read(read), ALLSTOP_OK);
    ASSERT_EQ(read[0], read[1]);
  } while (read[0] < (kThreads + 1) * kAdds);
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(pair.Read(read), ALLSTOP_OK);
  EXPECT_EQ(read[0], (kThreads + 1) * kAdds);
}

}  // namespace
}  // namespace allstop
