// An error as bytes, which C++ and JavaScript can write and read.
//
// C++ exceptions do not cross addons (each may link its own runtime) and JavaScript's do not
// cross isolates, so errors travel in this encoding:
//
//   "ASE" version:u8 { tag:u8 length:u32le bytes[length] }*
//
// A reader skips unknown tags, so that it can read a newer writer's errors. Both languages
// understand the header, which is ErrorFields. The parts that only JavaScript can rebuild (own
// fields, the objects of the causes, aggregated errors) are one opaque field, kJavaScript, which
// lib/record/encoded-error.ts writes and reads. An error of JavaScript has the headers of its
// causes, too, for native code.
#ifndef ALLSTOP_CORE_ENCODED_ERROR_H_
#define ALLSTOP_CORE_ENCODED_ERROR_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace allstop::core {

class EncodedError;

// The fields at the beginning of an encoded error, which native code can read without
// JavaScript. Strings are UTF-8; an empty string means that the error has no such field.
struct ErrorFields {
  std::string id;       // from NextIdentity(): equal ids are the same error
  std::string name;     // JavaScript's `name`
  std::string message;  // JavaScript's `message`, what() in C++
  std::string code;     // JavaScript's `code`, as text
  std::string stack;
  std::string native_type;         // the demangled type of an error thrown in C++
  std::uint32_t error_number = 0;  // the errno of an error of native code; 0: it has none
  std::vector<std::string> chain;  // constructor names, the most derived first
  std::shared_ptr<const EncodedError> cause;
  // StopRequest::echo_ids and abort_echo_ids beside the error's own id: only in bytes that
  // JavaScript has encoded for an addon. Not written.
  std::vector<std::string> echo_ids;
  std::vector<std::string> abort_echo_ids;
};

// Immutable, so any thread may read it without a lock.
//
// The bytes of an error hold those of its causes. A cause keeps only its fields, since with bytes
// of its own a chain of errors would take memory that grows with the square of its length.
class EncodedError {
 public:
  enum Tag : std::uint8_t {
    kId = 1,
    kName = 2,
    kMessage = 3,
    kCode = 4,
    kStack = 5,
    kChain = 6,  // once for each constructor name
    kNativeType = 7,
    kJavaScript = 8,
    kCause = 9,       // a whole encoded error
    kEcho = 10,       // once for each id
    kAbortEcho = 11,  // once for each id, which is also a kEcho
    kErrno = 12,      // a u32le, only in an error of native code
  };
  static constexpr std::uint8_t kVersion = 1;
  static constexpr int kMaxCauses = 32;  // the depth of causes; deeper ones are left out

  // Null if the bytes are not an encoded error of version kVersion.
  static std::shared_ptr<const EncodedError> Decode(std::string bytes);
  // If `fields.id` is empty, the error gets a fresh id.
  static std::shared_ptr<const EncodedError> Encode(ErrorFields fields);
  // As Encode, for an error that is only ever the `cause` of another one.
  static std::shared_ptr<const EncodedError> MakeCause(ErrorFields fields);

  const ErrorFields& fields() const { return fields_; }
  // Empty for a cause that comes from Decode or MakeCause.
  const std::string& bytes() const { return bytes_; }

  // Completes the fields of a native error, whose name and type alone are known: adds the code
  // and the chain that JavaScript's constructors would have given it. JavaScript rebuilds an
  // error whose name is neither a built-in class nor one of the package as a NativeError.
  static void Complete(ErrorFields& fields);

  // Whether `type` is the error's name, its code, or one of its constructors.
  bool IsOfType(std::string_view type) const;

 private:
  static std::optional<ErrorFields> Read(std::string_view bytes, int max_causes);
  static void Assign(ErrorFields& fields, std::uint8_t tag, std::string_view value, int max_causes);
  static void Write(const ErrorFields& fields, std::string& bytes);

  EncodedError(ErrorFields fields, std::string bytes)
      : fields_(std::move(fields)), bytes_(std::move(bytes)) {}

  const ErrorFields fields_;
  const std::string bytes_;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_ENCODED_ERROR_H_
