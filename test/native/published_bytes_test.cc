#include "core/published_bytes.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "core/variables.h"

namespace allstop::core {
namespace {

constexpr std::size_t kSize = 80'000;

std::vector<double> Copy(const PublishedReader& reader) {
  std::vector<double> copy(kSize / sizeof(double), -1);
  EXPECT_TRUE(reader.Read(copy.data()));
  return copy;
}

// ThreadSanitizer sees no race on these bytes, which a writer and a reader have at two addresses,
// and makes each round a hundred times dearer: it has a part of the rounds.
#ifdef __SANITIZE_THREAD__
constexpr int kShare = 20;
#else
constexpr int kShare = 1;
#endif

// Skips the test off Linux: other platforms have no such memory.
#ifdef __linux__
#define ALLSTOP_REQUIRE_PUBLISHED(condition) ASSERT_TRUE(condition)
#else
#define ALLSTOP_REQUIRE_PUBLISHED(condition) \
  if (!(condition)) GTEST_SKIP()
#endif

#define ALLSTOP_PUBLISHED(name)                                               \
  const std::unique_ptr<PublishedBytes> name = PublishedBytes::Create(kSize); \
  ALLSTOP_REQUIRE_PUBLISHED(name)

TEST(PublishedBytesTest, AreReadByWhoOpensThem) {
  ALLSTOP_PUBLISHED(owner);
  const auto reader = PublishedReader::Open(owner->Path(), kSize);
  ASSERT_NE(reader, nullptr);
  EXPECT_EQ(Copy(*reader), std::vector<double>(kSize / sizeof(double), 0));
  const std::vector<double> value(kSize / sizeof(double), 2.5);
  owner->BeginWrite();
  std::memcpy(owner->bytes(), value.data(), kSize);
  owner->EndWrite();
  EXPECT_EQ(Copy(*reader), value);
}

TEST(PublishedBytesTest, AreNotReadInTheMiddleOfAWrite) {
  ALLSTOP_PUBLISHED(owner);
  const auto reader = PublishedReader::Open(owner->Path(), kSize);
  ASSERT_NE(reader, nullptr);
  owner->BeginWrite();
  owner->bytes()[0] = 1;
  std::vector<double> copy(kSize / sizeof(double));
  EXPECT_FALSE(reader->Read(copy.data()));
  owner->EndWrite();
  EXPECT_TRUE(reader->Read(copy.data()));
}

TEST(PublishedBytesTest, AreReadAfterTheirOwnerHasGone) {
  std::unique_ptr<PublishedBytes> owner = PublishedBytes::Create(kSize);
  ALLSTOP_REQUIRE_PUBLISHED(owner);
  const auto reader = PublishedReader::Open(owner->Path(), kSize);
  ASSERT_NE(reader, nullptr);
  const std::string path = owner->Path();
  owner.reset();
  EXPECT_EQ(Copy(*reader).front(), 0);
  EXPECT_EQ(PublishedReader::Open(path, kSize), nullptr);
}

TEST(PublishedBytesTest, AreOpenedNoMoreAfterTheEnd) {
  ALLSTOP_PUBLISHED(owner);
  const std::string path = owner->Path();
  const auto reader = PublishedReader::Open(path, kSize);
  owner->EndPublishing();
  EXPECT_EQ(PublishedReader::Open(path, kSize), nullptr);
  owner->BeginWrite();
  owner->bytes()[0] = 0;
  owner->EndWrite();
  EXPECT_EQ(Copy(*reader).front(), 0);
}

TEST(PublishedBytesTest, OfAnotherSizeOrKindAreRefused) {
  ALLSTOP_PUBLISHED(owner);
  EXPECT_EQ(PublishedReader::Open(owner->Path(), kSize + 1), nullptr);
  const std::string path = owner->Path();
  owner->EndPublishing();
  const auto other = PublishedBytes::Create(kSize);  // its descriptor has the same number
  ASSERT_EQ(other->Path().substr(0, other->Path().find('#')), path.substr(0, path.find('#')));
  EXPECT_EQ(PublishedReader::Open(path, kSize), nullptr);
  EXPECT_EQ(PublishedReader::Open("/dev/null", kSize), nullptr);
  EXPECT_EQ(PublishedReader::Open("/dev/null#1", kSize), nullptr);
  EXPECT_EQ(PublishedReader::Open("/proc/self/fd/100000", kSize), nullptr);
}

TEST(PublishedBytesTest, OfAVariableAreWholeWhileItIsUpdated) {
  const auto variables = Variables::Create();
  const std::vector<double> zeros(kSize / sizeof(double), 0);
  const std::vector<double> ones(kSize / sizeof(double), 1);
  const auto variable =
      variables->Define("w", VariableType::kFloat64, zeros.data(), kSize, /*is_published=*/true);
  ALLSTOP_REQUIRE_PUBLISHED(!variable->path().empty());
  const auto reader = PublishedReader::Open(variable->path(), kSize);
  ASSERT_NE(reader, nullptr);
  constexpr int kUpdates = 20'000 / kShare;
  std::atomic<bool> is_done{false};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < 2; ++writer) {
    writers.emplace_back([&] {
      for (int update = 0; update < kUpdates; ++update) variable->AssignAdd(ones.data(), 0, 0);
    });
  }
  std::thread joiner([&] {
    for (std::thread& writer : writers) writer.join();
    is_done = true;
  });
  double last = 0;
  while (!is_done) {
    std::vector<double> copy(kSize / sizeof(double));
    if (!reader->Read(copy.data())) continue;
    ASSERT_EQ(copy, std::vector<double>(copy.size(), copy.front()));
    ASSERT_GE(copy.front(), last);
    last = copy.front();
  }
  joiner.join();
  EXPECT_EQ(Copy(*reader).back(), 2 * kUpdates);
  variables->AssignAll({variable.get()}, {zeros.data()});
  EXPECT_EQ(Copy(*reader), zeros);
  variable->Assign(ones.data());
  EXPECT_EQ(Copy(*reader), ones);
}

TEST(PublishedBytesTest, AreWholeThoughAWriteMeetsTheCopy) {
  ALLSTOP_PUBLISHED(owner);
  const auto reader = PublishedReader::Open(owner->Path(), kSize);
  ASSERT_NE(reader, nullptr);
  std::atomic<bool> is_done{false};
  // From the end to the begin, against the direction of a copy.
  std::thread writer([&] {
    for (double value = 1; !is_done; ++value) {
      owner->BeginWrite();
      auto* const elements = reinterpret_cast<double*>(owner->bytes());
      for (std::size_t at = kSize / sizeof(double); at > 0; --at) elements[at - 1] = value;
      owner->EndWrite();
      for (int turn = 0; turn < 20; ++turn) std::this_thread::yield();
    }
  });
  int torn = 0;
  std::vector<double> copy(kSize / sizeof(double));
  for (int read = 0; read < 5'000 / kShare; ++read) {
    if (reader->Read(copy.data()) && copy.front() != copy.back()) ++torn;
  }
  is_done = true;
  writer.join();
  EXPECT_EQ(torn, 0);
}

TEST(PublishedBytesTest, AreOnlyThoseOfVariablesThatWereDefinedSo) {
  const auto variables = Variables::Create();
  const double value = 1;
  EXPECT_EQ(variables->Define("w", VariableType::kNumber, &value, sizeof value)->path(), "");
}

}  // namespace
}  // namespace allstop::core
