// What a fork line carries (fork_line.h): frames of a length (u32le), a kind, and its fields.
#ifndef ALLSTOP_BINDING_FORK_FRAME_H_
#define ALLSTOP_BINDING_FORK_FRAME_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "../core/encoded_error.h"
#include "../core/requester.h"

namespace allstop::binding {

struct ForkFrame {
  // The order is that of FORK_FRAMES in lib/native/binding.ts.
  enum class Kind : std::uint8_t {
    kHello,     // the parent is not stopped
    kStop,      // a stop; from the parent, it is the answer
    kNone,      // no answer will come
    kLate,      // an error beside the child's stop
    kDying,     // the error that the child is dying of
    kCancel,    // to a worker process: the call of this id is cancelled, because of this error
    kReported,  // an error that the child has recorded and that requests no stop, such as a hook's
    kExiting,   // the child ends with this exit code, which allstop has set there
    kUnknown,   // of another version of the package: it has no other field, and is passed over
  };

  Kind kind = Kind::kHello;
  std::string id;                                   // of the record or the call, or the exit code
  std::shared_ptr<const core::EncodedError> error;  // may be null
  core::Requester requester;

  // Four bytes of length, then the frame.
  std::string Encode() const;
  // Of a frame without its length. Empty if the bytes are not a frame. A requester whose `via` or
  // language another version of the package has given has that of a plain call.
  static std::optional<ForkFrame> Decode(std::string_view bytes);
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_FORK_FRAME_H_
