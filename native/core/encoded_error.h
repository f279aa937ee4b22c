// The exception record: an error as data, which any side can write and read.
//
// C++ exceptions do not cross addons (each may link its own runtime) and
// JavaScript's do not cross isolates, so what travels is this encoding:
//
//   "ASE" version:u8 { tag:u8 length:u32le bytes[length] }*
//
// Unknown tags are skipped, so that a newer writer can be read. The header that
// every side understands is the fields below. What only JavaScript can rebuild
// (own fields, causes, aggregated errors) is one opaque field, kJavaScript,
// which lib/record/error-record.ts writes and reads.
#ifndef ALLSTOP_CORE_ENCODED_ERROR_H_
#define ALLSTOP_CORE_ENCODED_ERROR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace allstop::core {

class EncodedError;

// The header. Strings are UTF-8; empty means absent.
struct ErrorFields {
  std::string id;       // the error's identity, process-wide
  std::string name;     // JavaScript's `name`
  std::string message;  // JavaScript's `message`, what() in C++
  std::string code;     // JavaScript's `code`, as text
  std::string stack;
  std::string native_type;                    // demangled, for an error that was thrown in C++
  std::vector<std::string> chain;             // constructor names, the most derived first
  std::shared_ptr<const EncodedError> cause;  // a native error's; JavaScript has its own way
};

// Immutable, so any thread may read it without a lock.
class EncodedError {
 public:
  enum Tag : std::uint8_t {
    kId = 1,
    kName = 2,
    kMessage = 3,
    kCode = 4,
    kStack = 5,
    kChain = 6,  // repeated
    kNativeType = 7,
    kJavaScript = 8,
    kCause = 9,  // a whole record
  };
  static constexpr std::uint8_t kVersion = 1;
  static constexpr int kMaxCauses = 32;  // below one another; what is deeper is left out

  // Null if the bytes are not a record of a version that we know.
  static std::shared_ptr<const EncodedError> Decode(std::string bytes) {
    return Decode(std::move(bytes), kMaxCauses);
  }
  // Always succeeds. An empty id gets a fresh one.
  static std::shared_ptr<const EncodedError> Encode(ErrorFields fields);

  const ErrorFields& fields() const { return fields_; }
  const std::string& bytes() const { return bytes_; }

  // Of a native error, of which only name and type are known: what JavaScript's
  // constructors would have given it. Names that are no class of JavaScript's or
  // of ours become NativeError there.
  static void Complete(ErrorFields& fields);

  // Whether `type` is the error's name, its code, or one of its constructors.
  bool IsOfType(std::string_view type) const;

 private:
  static std::shared_ptr<const EncodedError> Decode(std::string bytes, int max_causes);
  static void Assign(ErrorFields& fields, std::uint8_t tag, std::string_view value, int max_causes);

  EncodedError(ErrorFields fields, std::string bytes)
      : fields_(std::move(fields)), bytes_(std::move(bytes)) {}

  const ErrorFields fields_;
  const std::string bytes_;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_ENCODED_ERROR_H_
