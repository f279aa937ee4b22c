// The stop record: who stopped a coordinator, when, and why; and the request of a stop.
#ifndef ALLSTOP_CORE_STOP_RECORD_H_
#define ALLSTOP_CORE_STOP_RECORD_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "deadline.h"
#include "encoded_error.h"
#include "requester.h"

namespace allstop::core {

enum class StopKind : std::uint8_t { kPlain = 0, kClean = 1, kError = 2 };

// One stop. Shared and immutable, except for its origin, which is completed later, and for
// awaits_answer: a wait or a join that saw the stop can report it after it was cleared.
struct StopRecord {
  std::string id;                // the error's id, else StopRequest::record_id, else fresh
  std::uint64_t generation = 0;  // counts the stops of the coordinator, from 1
  StopKind kind = StopKind::kPlain;
  std::shared_ptr<const EncodedError> error;         // null for kPlain
  Clock::time_point requested_at = {};               // the grace period counts from here
  std::shared_ptr<const StopRecord> inherited_from;  // the ancestor's record, or null
  Origin own_origin;                                 // used when inherited_from is null
  // True while the record is provisional: until an arbiter has answered. Written under the mutex_
  // of the coordinator that has the record; readers that must not miss the answer hold it, too.
  mutable std::atomic<bool> awaits_answer{false};

  bool IsProvisional() const { return awaits_answer.load(); }
  // The requester, with Via::kParent if the record is inherited. Waits as Origin::Get does.
  Requester requester() const { return RequesterWithin(1000); }
  // As requester(), but waits as Origin::GetWithin does.
  Requester RequesterWithin(double patience_ms) const;
  // Who requested the stop, also if it stopped a parent; the stack only if it is known now.
  Requester RequesterSoFar() const;
};

// An error beside the record: it came after the stop, or after a join, or without a stop (from
// Coordinator::Report).
struct SuppressedError {
  std::shared_ptr<const EncodedError> error;
  std::shared_ptr<const Origin> origin;
};

struct StopRequest {
  std::shared_ptr<const EncodedError> error;  // may be null
  Requester requester;
  // If set, `describe` and `locate` complete `requester`: on the thread that requests, with no
  // lock held, when the waiting threads have been woken, and only if the request or its error is
  // recorded. `describe` must be quick and runs before the stop callbacks; `locate` may call
  // JavaScript and runs last.
  Describe describe;
  Describe locate;
  // The ids of this error and, if it is an AbortError, of the errors in its chain of causes. If
  // the current record's id is among them, this request is an echo of the stop.
  std::vector<std::string> echo_ids;
  // Those echo_ids that came through an AbortError. They are compared with earlier, cleared
  // stops as well: a task that ends late must not stop the coordinator after a ClearStop.
  std::vector<std::string> abort_echo_ids;
  // Set for a stop that is relayed from another process: the id that its record has there. Such
  // a request stops this coordinator even after a join. Empty for a stop of this process.
  std::string record_id;
  // Whether the request's caller can throw the error. False for links and registered threads.
  bool has_caller = true;
  // Whether a thread or hook threw the error: then it is noted in UnseenErrors when it is recorded.
  bool is_thrown = false;
  // Of an error that a hook threw: UnseenErrors::given_so_far when the hook began. Of all others:
  // any number, so that an error that the program was given counts as known.
  std::uint64_t given_before = ~std::uint64_t{0};
};

enum class StopOutcome : std::uint8_t {
  kStopped,         // this request is the stop
  kAlreadyStopped,  // stopped before, and this request has no error to keep
  kSuppressed,      // the error was kept beside the record
  kCounted,         // the error was only counted, as kMaxSuppressed were kept before
  kEcho,            // the error is the stop's own, or one that was reported before
  kRefused,         // after a join: nothing was changed, the caller must throw the error
};

// The error that a stopped join throws: the error of the stop, else the reported one, or null.
inline std::shared_ptr<const EncodedError> FirstError(const StopRecord* record,
                                                      const SuppressedError& reported) {
  return record && record->kind == StopKind::kError ? record->error : reported.error;
}

// What a program reads of a coordinator in one look.
struct StopView {
  std::shared_ptr<const StopRecord> record;  // null: not stopped
  SuppressedError reported;                  // from Coordinator::Report; its error may be null
  std::vector<SuppressedError> suppressed;   // the first kMaxSuppressed
  std::uint32_t suppressed_count = 0;        // the number of all suppressed errors
  // The first of all suppressed errors that came after the stop and is not of a clean-stop type,
  // also if it was only counted; null if there is none.
  std::shared_ptr<const EncodedError> first_later;
};

inline constexpr std::size_t kMaxSuppressed = 16;

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_STOP_RECORD_H_
