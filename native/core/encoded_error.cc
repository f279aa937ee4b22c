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

constexpr std::size_t kMaxLength = std::numeric_limits<std::uint32_t>::max();

std::string Uint32(std::size_t value) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

std::uint32_t ReadUint32(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < kLengthSize; ++i) {
    value |= static_cast<std::uint32_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
  }
  return value;
}

// Calls `visit(tag, value)` for each field that is written, apart from the cause.
template <typename Visit>
void EachField(const ErrorFields& fields, Visit visit) {
  visit(EncodedError::kId, fields.id);
  if (!fields.name.empty()) visit(EncodedError::kName, fields.name);
  visit(EncodedError::kMessage, fields.message);
  if (!fields.code.empty()) visit(EncodedError::kCode, fields.code);
  if (!fields.stack.empty()) visit(EncodedError::kStack, fields.stack);
  for (const std::string& type : fields.chain) visit(EncodedError::kChain, type);
  if (!fields.native_type.empty()) visit(EncodedError::kNativeType, fields.native_type);
  if (fields.error_number != 0) visit(EncodedError::kErrno, Uint32(fields.error_number));
}

// The number of bytes that EncodedError::Write appends, at most.
std::size_t SizeOf(const ErrorFields& fields) {
  std::size_t size = kHeaderSize;
  EachField(fields, [&](EncodedError::Tag, const std::string& value) {
    size += 1 + kLengthSize + value.size();
  });
  if (fields.cause) {
    const std::string& bytes = fields.cause->bytes();
    size += 1 + kLengthSize + (bytes.empty() ? SizeOf(fields.cause->fields()) : bytes.size());
  }
  return size;
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
    case kEcho: fields.echo_ids.emplace_back(value); break;
    case kAbortEcho: fields.abort_echo_ids.emplace_back(value); break;
    case kErrno:
      if (value.size() == kLengthSize) fields.error_number = ReadUint32(value);
      break;
    case kCause:
      if (max_causes > 0) {
        auto cause = Read(value, max_causes - 1);
        fields.cause = cause ? MakeCause(std::move(*cause)) : nullptr;
      }
      break;
    default: break;  // kJavaScript, or a tag of a newer writer
  }
}

std::optional<ErrorFields> EncodedError::Read(std::string_view bytes, int max_causes) {
  if (bytes.size() < kHeaderSize || bytes.substr(0, kMagic.size()) != kMagic ||
      static_cast<std::uint8_t>(bytes[kMagic.size()]) != kVersion) {
    return std::nullopt;
  }
  bytes.remove_prefix(kHeaderSize);
  ErrorFields fields;
  while (!bytes.empty()) {
    if (bytes.size() < 1 + kLengthSize) return std::nullopt;
    const auto tag = static_cast<std::uint8_t>(bytes[0]);
    const std::uint32_t length = ReadUint32(bytes.substr(1));
    bytes.remove_prefix(1 + kLengthSize);
    if (bytes.size() < length) return std::nullopt;
    Assign(fields, tag, bytes.substr(0, length), max_causes);
    bytes.remove_prefix(length);
  }
  if (fields.id.empty()) return std::nullopt;
  return fields;
}

std::shared_ptr<const EncodedError> EncodedError::Decode(std::string bytes) {
  auto fields = Read(bytes, kMaxCauses);
  if (!fields) return nullptr;
  return std::shared_ptr<const EncodedError>(
      new EncodedError(std::move(*fields), std::move(bytes)));
}

std::shared_ptr<const EncodedError> EncodedError::Encode(ErrorFields fields) {
  if (fields.id.empty()) fields.id = NextIdentity();
  std::string bytes;
  bytes.reserve(SizeOf(fields));
  Write(fields, bytes);
  return std::shared_ptr<const EncodedError>(new EncodedError(std::move(fields), std::move(bytes)));
}

std::shared_ptr<const EncodedError> EncodedError::MakeCause(ErrorFields fields) {
  if (fields.id.empty()) fields.id = NextIdentity();
  return std::shared_ptr<const EncodedError>(new EncodedError(std::move(fields), {}));
}

void EncodedError::Write(const ErrorFields& fields, std::string& bytes) {
  bytes.append(kMagic);
  bytes.push_back(static_cast<char>(kVersion));
  EachField(fields, [&](Tag tag, const std::string& value) {
    const std::size_t length = std::min(value.size(), kMaxLength);
    bytes.push_back(static_cast<char>(tag));
    bytes.append(Uint32(length)).append(value, 0, length);
  });
  if (!fields.cause) return;
  const std::size_t at = bytes.size();
  bytes.push_back(static_cast<char>(kCause));
  bytes.append(Uint32(0));
  const std::size_t from = bytes.size();
  if (fields.cause->bytes().empty()) {
    Write(fields.cause->fields(), bytes);
  } else {
    bytes.append(fields.cause->bytes());
  }
  const std::size_t length = bytes.size() - from;
  if (length > kMaxLength) {  // without its end it could not be read
    bytes.resize(at);
  } else {
    bytes.replace(at + 1, kLengthSize, Uint32(length));
  }
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
