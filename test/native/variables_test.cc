#include "core/variables.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "core/registry.h"

namespace allstop::core {
namespace {

std::shared_ptr<Variable> NumberOf(Variables& variables, const std::string& name, double value) {
  return variables.Define(name, VariableType::kNumber, &value, sizeof value);
}

double ValueOf(const Variable& variable) {
  double value = 0;
  variable.Read(&value);
  return value;
}

TEST(VariablesTest, AVariableIsDefinedOnceAndKeepsItsValue) {
  const auto variables = Variables::Create();
  const auto made = NumberOf(*variables, "steps", 3);
  EXPECT_EQ(NumberOf(*variables, "steps", 7), made);
  EXPECT_EQ(ValueOf(*made), 3);
  EXPECT_EQ(variables->Find("steps"), made);
  EXPECT_EQ(variables->Find("other"), nullptr);
  EXPECT_EQ(Registry<Variables>::Get().Find(variables->id()), variables);
}

TEST(VariablesTest, AnotherTypeOrLengthIsRefusedAndChangesNothing) {
  const auto variables = Variables::Create();
  const double two[2] = {1, 2};
  const auto made = variables->Define("w", VariableType::kFloat64, two, sizeof two);
  EXPECT_EQ(NumberOf(*variables, "w", 9), nullptr);
  EXPECT_EQ(variables->Define("w", VariableType::kFloat64, two, sizeof(double)), nullptr);
  double read[2] = {};
  made->Read(read);
  EXPECT_EQ(read[1], 2);
}

TEST(VariablesTest, IntegersWrapAround) {
  const auto variables = Variables::Create();
  const std::int32_t most = std::numeric_limits<std::int32_t>::max();
  const auto made = variables->Define("i", VariableType::kInt32, &most, sizeof most);
  const std::int32_t one = 1;
  made->AssignAdd(&one, 0, 0);
  std::int32_t read = 0;
  made->Read(&read);
  EXPECT_EQ(read, std::numeric_limits<std::int32_t>::min());
}

TEST(VariablesTest, ADeltaCountsOncePerCallAndOrdinal) {
  const auto variables = Variables::Create();
  const auto made = NumberOf(*variables, "sum", 0);
  const double one = 1;
  EXPECT_TRUE(made->AssignAdd(&one, 5, 1));
  EXPECT_TRUE(made->AssignAdd(&one, 5, 2));
  EXPECT_FALSE(made->AssignAdd(&one, 5, 1));  // the call is run again
  EXPECT_FALSE(made->AssignAdd(&one, 5, 2));
  EXPECT_TRUE(made->AssignAdd(&one, 5, 3));
  EXPECT_TRUE(made->AssignAdd(&one, 6, 1));
  EXPECT_TRUE(made->AssignAdd(&one, 0, 0));  // outside calls each counts
  EXPECT_TRUE(made->AssignAdd(&one, 0, 0));
  EXPECT_EQ(ValueOf(*made), 6);
}

TEST(VariablesTest, AForgottenCallLeavesNothing) {
  const auto variables = Variables::Create();
  const auto made = NumberOf(*variables, "sum", 0);
  const double one = 1;
  made->AssignAdd(&one, 5, 1);
  variables->Forget(5);
  variables->Forget(77);
  EXPECT_TRUE(made->AssignAdd(&one, 5, 1));  // another call that got the same id
  EXPECT_EQ(ValueOf(*made), 2);
}

TEST(VariablesTest, EachReadIsBetweenTwoAddsAndNoAddIsLost) {
  constexpr int kThreads = 4;
  constexpr int kAdds = 500;
  constexpr std::size_t kCount = 512;
  const auto variables = Variables::Create();
  const std::vector<double> zeros(kCount);
  const std::size_t size = kCount * sizeof(double);
  const auto made = variables->Define("w", VariableType::kFloat64, zeros.data(), size);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      const std::vector<double> ones(kCount, 1);
      std::vector<double> read(kCount);
      for (int add = 0; add < kAdds; ++add) {
        made->AssignAdd(ones.data(), 0, 0);
        made->Read(read.data());
        for (const double element : read) ASSERT_EQ(element, read[0]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<double> read(kCount);
  made->Read(read.data());
  EXPECT_EQ(read[kCount - 1], kThreads * kAdds);
}

TEST(VariablesTest, SeveralAreReadAsTheyStandAtOneMoment) {
  const auto variables = Variables::Create();
  const auto first = NumberOf(*variables, "first", 0);
  const auto second = NumberOf(*variables, "second", 0);
  std::atomic<bool> is_over{false};
  std::thread writer([&] {  // `second` follows `first`, and is never ahead
    const double one = 1;
    while (!is_over) {
      first->AssignAdd(&one, 0, 0);
      second->AssignAdd(&one, 0, 0);
    }
  });
  for (int round = 0; round < 1000; ++round) {
    double values[2] = {};
    variables->ReadAll({second.get(), first.get()}, {&values[0], &values[1]});
    ASSERT_TRUE(values[1] == values[0] || values[1] == values[0] + 1);
  }
  is_over = true;
  writer.join();
  const double zero = 0;
  variables->AssignAll({first.get(), second.get()}, {&zero, &zero});
  EXPECT_EQ(ValueOf(*first), 0);
  EXPECT_EQ(ValueOf(*second), 0);
}

TEST(VariablesTest, AWriterIsNotKeptOutByReaders) {
  const auto variables = Variables::Create();
  const std::vector<double> zeros(64 * 1024);
  const std::size_t size = zeros.size() * sizeof(double);
  const auto made = variables->Define("w", VariableType::kFloat64, zeros.data(), size);
  std::atomic<bool> is_over{false};
  std::vector<std::thread> readers;
  for (int reader = 0; reader < 4; ++reader) {
    readers.emplace_back([&] {
      std::vector<double> read(zeros.size());
      while (!is_over) made->Read(read.data());
    });
  }
  for (int write = 0; write < 20; ++write) made->Assign(zeros.data());  // else it never ends
  is_over = true;
  for (std::thread& reader : readers) reader.join();
}

}  // namespace
}  // namespace allstop::core
