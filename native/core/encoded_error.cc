#include "encoded_error.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

#include "identity.h"

namespace allstop::core {
namespace {

constexpr std::string_view kMagic = "ASE";
constexpr std::size_t kHeaderSize = 4;  // the magic and the version
constexpr std::size_t kLengthSize = 4;

void Append(std::string& out, EncodedError::Tag tag, std::string_view value) {
  const auto length = static_cast<std::uint32_t>(
      std::min<std::size_t>(value.size(), std::numeric_limits<std::uint32_t>::max()));
  out.push_back(static_cast<char>(tag));
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(length >> shift));
  out.append(value.substr(0, length));
}

std::uint32_t ReadLength(std::string_view bytes) {
  std::uint32_t length = 0;
  for (std::size_t i = 0; i < kLengthSize; ++i) {
    length |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return length;
}

}  // namespace

void EncodedError::Assign(ErrorFields& fields, std::uint8_t tag, std::string_view value,
                          int max_causes) {
  switch (tag) {
    case kId: fields.id = value; break;
    case kName: fields.name = value; break;
    case kMessage: fields.message = value; break;
    case kCode: fields.code = value; break;
    case kStack: fields.stack = value; break;
    case kChain: fields.chain.emplace_back(value); break;
    case kNativeType: fields.native_type = value; break;
    case kCause:
      if (max_causes > 0) fields.cause = Decode(std::string(value), max_causes - 1);
      break;
    default: break;  // kJavaScript, or a tag of a newer writer
  }
}

std::shared_ptr<const EncodedError> EncodedError::Decode(std::string bytes, int max_causes) {
  std::string_view rest = bytes;
  if (rest.size() < kHeaderSize || rest.substr(0, kMagic.size()) != kMagic ||
      static_cast<std::uint8_t>(rest[kMagic.size()]) != kVersion) {
    return nullptr;
  }
  rest.remove_prefix(kHeaderSize);
  ErrorFields fields;
  while (!rest.empty()) {
    if (rest.size() < 1 + kLengthSize) return nullptr;
    const auto tag = static_cast<std::uint8_t>(rest[0]);
    const std::uint32_t length = ReadLength(rest.substr(1));
    rest.remove_prefix(1 + kLengthSize);
    if (rest.size() < length) return nullptr;
    Assign(fields, tag, rest.substr(0, length), max_causes);
    rest.remove_prefix(length);
  }
  if (fields.id.empty()) return nullptr;
  return std::shared_ptr<const EncodedError>(new EncodedError(std::move(fields), std::move(bytes)));
}

std::shared_ptr<const EncodedError> EncodedError::Encode(ErrorFields fields) {
  if (fields.id.empty()) fields.id = NextIdentity();
  std::string bytes(kMagic);
  bytes.push_back(static_cast<char>(kVersion));
  Append(bytes, kId, fields.id);
  if (!fields.name.empty()) Append(bytes, kName, fields.name);
  Append(bytes, kMessage, fields.message);
  if (!fields.code.empty()) Append(bytes, kCode, fields.code);
  if (!fields.stack.empty()) Append(bytes, kStack, fields.stack);
  for (const std::string& type : fields.chain) Append(bytes, kChain, type);
  if (!fields.native_type.empty()) Append(bytes, kNativeType, fields.native_type);
  if (fields.cause) Append(bytes, kCause, fields.cause->bytes());
  return std::shared_ptr<const EncodedError>(new EncodedError(std::move(fields), std::move(bytes)));
}

void EncodedError::Complete(ErrorFields& fields) {
  // The same pairs as in lib/errors/errors.ts; a test compares the two.
  static constexpr std::pair<std::string_view, std::string_view> kOurs[] = {
      {"OutOfRangeError", "ERR_ALLSTOP_OUT_OF_RANGE"},
      {"CancelledError", "ERR_ALLSTOP_CANCELLED"},
      {"DeadlineExceededError", "ERR_ALLSTOP_DEADLINE_EXCEEDED"},
      {"FailedPreconditionError", "ERR_ALLSTOP_FAILED_PRECONDITION"},
      {"InvalidArgumentError", "ERR_ALLSTOP_INVALID_ARGUMENT"},
      {"UnavailableError", "ERR_ALLSTOP_UNAVAILABLE"},
      {"InvalidHandleError", "ERR_ALLSTOP_INVALID_HANDLE"},
      {"SelfJoinError", "ERR_ALLSTOP_SELF_JOIN"},
      {"StragglersError", "ERR_ALLSTOP_STRAGGLERS"},
      {"ClosureInputError", "ERR_ALLSTOP_CLOSURE_INPUT"},
      {"ClusterNotReadyError", "ERR_ALLSTOP_CLUSTER_NOT_READY"},
      {"NativeError", "ERR_ALLSTOP_NATIVE"},
  };
  static constexpr std::string_view kBuiltIn[] = {"TypeError",      "RangeError",   "SyntaxError",
                                                  "ReferenceError", "EvalError",    "URIError",
                                                  "AggregateError", "DOMException", "AbortError"};

  if (fields.name.empty()) fields.name = "NativeError";
  if (!fields.native_type.empty()) fields.chain.push_back(fields.native_type);
  if (fields.name != "Error") fields.chain.push_back(fields.name);
  const auto* const ours = std::find_if(std::begin(kOurs), std::end(kOurs), [&](const auto& pair) {
    return pair.first == fields.name;
  });
  if (ours != std::end(kOurs)) {
    if (fields.code.empty()) fields.code = ours->second;
    fields.chain.emplace_back("AllstopError");
  } else if (fields.name != "Error" && std::find(std::begin(kBuiltIn), std::end(kBuiltIn),
                                                 fields.name) == std::end(kBuiltIn)) {
    fields.chain.insert(fields.chain.end(), {"NativeError", "AllstopError"});
  }
  fields.chain.emplace_back("Error");
}

bool EncodedError::IsOfType(std::string_view type) const {
  return !type.empty() &&
         (fields_.name == type || fields_.code == type || fields_.native_type == type ||
          std::find(fields_.chain.begin(), fields_.chain.end(), type) != fields_.chain.end());
}

}  // namespace allstop::core
