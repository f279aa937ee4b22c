// The encoded error, as native code reads it: any bytes are an error or are refused, as a second
// reader of the same format says. What was read is written and read again.
#include <cstdint>
#include <memory>
#include <string>

#include "core/encoded_error.h"
#include "input.h"

namespace allstop::fuzz {
namespace {

using core::EncodedError;
using core::ErrorFields;

// Whether the bytes are an encoded error, by the description in encoded_error.h. Reads by index
// and with 64-bit numbers, unlike the code under test.
bool IsEncodedError(const std::string& bytes) {
  const auto at = [&](std::uint64_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  if (bytes.size() < 4 || bytes.compare(0, 3, "ASE") != 0 || at(3) != 1) return false;
  std::uint64_t id_length = 0;
  for (std::uint64_t i = 4; i < bytes.size();) {
    if (i + 5 > bytes.size()) return false;
    const std::uint64_t length = at(i + 1) + (std::uint64_t{at(i + 2)} << 8) +
                                 (std::uint64_t{at(i + 3)} << 16) +
                                 (std::uint64_t{at(i + 4)} << 24);
    if (i + 5 + length > bytes.size()) return false;
    if (at(i) == EncodedError::kId) id_length = length;
    i += 5 + length;
  }
  return id_length > 0;
}

void MustEqual(const ErrorFields& one, const ErrorFields& other) {
  MUST(one.id == other.id && one.name == other.name && one.message == other.message);
  MUST(one.code == other.code && one.stack == other.stack && one.chain == other.chain);
  MUST(one.native_type == other.native_type);
  MUST((one.cause == nullptr) == (other.cause == nullptr));
}

}  // namespace
}  // namespace allstop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace allstop::fuzz;
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  const auto read = EncodedError::Decode(bytes);
  MUST((read != nullptr) == IsEncodedError(bytes));
  if (!read) return 0;
  MUST(read->bytes() == bytes);

  int causes = 0;
  for (const EncodedError* each = read.get(); each; each = each->fields().cause.get()) {
    const ErrorFields& fields = each->fields();
    MUST(!fields.id.empty());
    MUST(fields.name.empty() || each->IsOfType(fields.name));
    MUST(fields.chain.empty() || fields.chain[0].empty() || each->IsOfType(fields.chain[0]));
    MUST(!each->IsOfType(""));
    const auto written = EncodedError::Encode(fields);
    const auto again = EncodedError::Decode(written->bytes());
    MUST(again != nullptr && again->bytes() == written->bytes());
    MustEqual(again->fields(), fields);
    MUST(causes++ <= EncodedError::kMaxCauses);
  }
  ErrorFields completed = read->fields();
  EncodedError::Complete(completed);
  MUST(!completed.name.empty() && completed.chain.back() == "Error");
  return 0;
}
