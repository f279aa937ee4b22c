#include "core/encoded_error.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "seed.h"

namespace allstop::core {
namespace {

using namespace std::string_literals;

std::string Field(std::uint8_t tag, const std::string& value) {
  std::string bytes(1, static_cast<char>(tag));
  for (int shift = 0; shift < 32; shift += 8) {
    bytes.push_back(static_cast<char>(static_cast<std::uint32_t>(value.size()) >> shift));
  }
  return bytes + value;
}

const std::string kHeader = "ASE\x01"s;

ErrorFields Full() {
  ErrorFields fields;
  fields.id = "world.7";
  fields.name = "TypeError";
  fields.message = "na\xc3\xafve \xf0\x9f\x9b\x91"s;
  fields.code = "ERR_X";
  fields.stack = "TypeError\n  at f\n  at g";
  fields.native_type = "std::invalid_argument";
  fields.error_number = 61;
  fields.chain = {"MyError", "TypeError", "Error"};
  return fields;
}

void ExpectSame(const ErrorFields& a, const ErrorFields& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.message, b.message);
  EXPECT_EQ(a.code, b.code);
  EXPECT_EQ(a.stack, b.stack);
  EXPECT_EQ(a.native_type, b.native_type);
  EXPECT_EQ(a.error_number, b.error_number);
  EXPECT_EQ(a.chain, b.chain);
}

TEST(EncodedErrorTest, WhatWasWrittenIsRead) {
  const auto written = EncodedError::Encode(Full());
  ExpectSame(written->fields(), Full());
  const auto read = EncodedError::Decode(written->bytes());
  ASSERT_NE(read, nullptr);
  ExpectSame(read->fields(), Full());
  EXPECT_EQ(read->bytes(), written->bytes());
}

TEST(EncodedErrorTest, StringsMayHoldAnything) {
  ErrorFields fields;
  fields.id = "world.1";
  fields.message = "\0 nul, \xff not UTF-8, ASE\x01"s;
  fields.stack = std::string(1 << 20, 'x');
  fields.chain = {"", "a\0b"s};
  const auto read = EncodedError::Decode(EncodedError::Encode(fields)->bytes());
  ASSERT_NE(read, nullptr);
  ExpectSame(read->fields(), fields);
}

TEST(EncodedErrorTest, AnErrorOfWhichNothingIsKnownIsStillOne) {
  const auto first = EncodedError::Encode({});
  const auto second = EncodedError::Encode({});
  EXPECT_FALSE(first->fields().id.empty());
  EXPECT_NE(first->fields().id, second->fields().id) << "each error has an identity";
  ASSERT_NE(EncodedError::Decode(first->bytes()), nullptr);
}

// lib/record/encoded-error.ts and other versions of the package read and write the same bytes.
TEST(EncodedErrorTest, TheEncodingIsFixed) {
  ErrorFields fields;
  fields.id = "w.1";
  fields.name = "E";
  fields.message = "m";
  fields.error_number = 61;
  fields.chain = {"E"};
  EXPECT_EQ(EncodedError::Encode(fields)->bytes(),
            "ASE\x01"
            "\x01\x03\x00\x00\x00w.1"
            "\x02\x01\x00\x00\x00"
            "E"
            "\x03\x01\x00\x00\x00m"
            "\x06\x01\x00\x00\x00"
            "E"
            "\x0c\x04\x00\x00\x00\x3d\x00\x00\x00"s);
}

TEST(EncodedErrorTest, CausesAreWrittenAndReadWhetherTheyHaveBytesOrNot) {
  const auto text = [](const char* id) {
    ErrorFields fields = Full();
    fields.id = id;
    return fields;
  };
  const auto encode = [&](auto make_cause) {
    ErrorFields second = text("w.2");
    second.cause = make_cause(text("w.3"));
    ErrorFields first = text("w.1");
    first.cause = make_cause(std::move(second));
    return EncodedError::Encode(std::move(first))->bytes();
  };
  const std::string bytes = encode(EncodedError::MakeCause);
  EXPECT_EQ(bytes, encode(EncodedError::Encode));
  const auto read = EncodedError::Decode(bytes);
  ASSERT_NE(read, nullptr);
  ASSERT_NE(read->fields().cause, nullptr);
  ExpectSame(read->fields().cause->fields(), text("w.2"));
  ASSERT_NE(read->fields().cause->fields().cause, nullptr);
  ExpectSame(read->fields().cause->fields().cause->fields(), text("w.3"));
  EXPECT_EQ(EncodedError::Encode(read->fields())->bytes(), bytes);
}

TEST(EncodedErrorTest, WhatANewerWriterAddsIsSkippedAndKept) {
  const std::string bytes = kHeader + Field(200, "unknown") + Field(EncodedError::kId, "w.1") +
                            Field(EncodedError::kJavaScript, "opaque") + Field(0, "") +
                            Field(EncodedError::kName, "TypeError");
  const auto read = EncodedError::Decode(bytes);
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->fields().id, "w.1");
  EXPECT_EQ(read->fields().name, "TypeError");
  EXPECT_EQ(read->bytes(), bytes) << "for those who understand them";
}

TEST(EncodedErrorTest, AnErrnoOfAnotherSizeIsSkipped) {
  for (const std::string& value : {""s, "\x02"s, "\x02\x00\x00\x00\x00"s}) {
    const auto read = EncodedError::Decode(kHeader + Field(EncodedError::kId, "w.1") +
                                           Field(EncodedError::kErrno, value));
    ASSERT_NE(read, nullptr);
    EXPECT_EQ(read->fields().error_number, 0u);
  }
}

TEST(EncodedErrorTest, WhatIsNoRecordIsRefused) {
  EXPECT_EQ(EncodedError::Decode(""), nullptr);
  EXPECT_EQ(EncodedError::Decode("ASE"), nullptr);
  EXPECT_EQ(EncodedError::Decode(kHeader), nullptr) << "no identity";
  EXPECT_EQ(EncodedError::Decode(kHeader + Field(EncodedError::kId, "")), nullptr);
  EXPECT_EQ(EncodedError::Decode("XSE\x01"s + Field(EncodedError::kId, "w.1")), nullptr);
  EXPECT_EQ(EncodedError::Decode("ASE\x02"s + Field(EncodedError::kId, "w.1")), nullptr);
  EXPECT_EQ(EncodedError::Decode("ASE\x00"s + Field(EncodedError::kId, "w.1")), nullptr);
}

TEST(EncodedErrorTest, ALengthThatLiesIsRefused) {
  const std::string id = Field(EncodedError::kId, "w.1");
  for (const char* length : {"\xff\xff\xff\xff", "\xff\xff\xff\x7f", "\x05\x00\x00\x00"}) {
    EXPECT_EQ(EncodedError::Decode(kHeader + id + "\x02"s + std::string(length, 4) + "four"),
              nullptr);
  }
}

TEST(EncodedErrorTest, ATruncatedErrorIsReadUpToAFieldsEndOrRefused) {
  const std::string bytes = EncodedError::Encode(Full())->bytes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    // A copy of exactly that size, so that AddressSanitizer catches a read past its end.
    const auto read = EncodedError::Decode(std::string(bytes.data(), size));
    if (read) {
      EXPECT_EQ(read->fields().id, "world.7");
    }
  }
}

TEST(EncodedErrorTest, AnyBytesAreReadOrRefusedButNeverCrash) {
  std::mt19937 random(test::Seed());
  const std::string good = EncodedError::Encode(Full())->bytes();
  for (int round = 0; round < 20'000; ++round) {
    std::string bytes = good;
    if (round % 2 == 0) {  // a few bytes are wrong
      for (int changes = static_cast<int>(random() % 8); changes >= 0; --changes) {
        bytes[random() % bytes.size()] = static_cast<char>(random());
      }
      bytes.resize(random() % (bytes.size() + 1));
    } else {  // all bytes are random, in half of the cases after a valid header
      bytes = round % 4 == 1 ? kHeader : "";
      for (std::size_t size = random() % 100; size > 0; --size) {
        bytes.push_back(static_cast<char>(random() % 16 == 0 ? random() : random() % 12));
      }
    }
    if (const auto read = EncodedError::Decode(bytes)) {
      ASSERT_FALSE(read->fields().id.empty());
      ASSERT_EQ(read->bytes(), bytes);
      ASSERT_NE(EncodedError::Encode(read->fields()), nullptr);
    }
  }
}

// Complete adds the code and the chain that JavaScript's constructors would have given the error.
TEST(EncodedErrorTest, ANativeErrorIsCompletedByItsName) {
  using Chain = std::vector<std::string>;
  const auto complete = [](std::string name, std::string code = {}, std::string type = {}) {
    ErrorFields fields;
    fields.name = std::move(name);
    fields.code = std::move(code);
    fields.native_type = std::move(type);
    EncodedError::Complete(fields);
    return fields;
  };
  const ErrorFields unnamed = complete("", "", "my::Error");
  EXPECT_EQ(unnamed.name, "NativeError");
  EXPECT_EQ(unnamed.code, "ERR_ALLSTOP_NATIVE");
  EXPECT_EQ(unnamed.chain, (Chain{"my::Error", "NativeError", "AllstopError", "Error"}));

  const ErrorFields ours = complete("OutOfRangeError");
  EXPECT_EQ(ours.code, "ERR_ALLSTOP_OUT_OF_RANGE");
  EXPECT_EQ(ours.chain, (Chain{"OutOfRangeError", "AllstopError", "Error"}));

  const ErrorFields built_in = complete("TypeError");
  EXPECT_EQ(built_in.code, "");
  EXPECT_EQ(built_in.chain, (Chain{"TypeError", "Error"}));
  EXPECT_EQ(complete("Error").chain, Chain{"Error"});

  const ErrorFields unknown = complete("LoaderError");
  EXPECT_EQ(unknown.chain, (Chain{"LoaderError", "NativeError", "AllstopError", "Error"}));
  EXPECT_EQ(complete("OutOfRangeError", "MY_CODE").code, "MY_CODE") << "it knows better";
}

TEST(EncodedErrorTest, IsOfTheTypesThatItsNamesSay) {
  const auto record = EncodedError::Encode(Full());
  for (const char* type : {"MyError", "TypeError", "Error", "ERR_X", "std::invalid_argument"}) {
    EXPECT_TRUE(record->IsOfType(type)) << type;
  }
  for (const char* type : {"", "RangeError", "My", "error", "std::exception"}) {
    EXPECT_FALSE(record->IsOfType(type)) << type;
  }
  EXPECT_FALSE(EncodedError::Encode({})->IsOfType("")) << "absent is not a type";
}

}  // namespace
}  // namespace allstop::core
