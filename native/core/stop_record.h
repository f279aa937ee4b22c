// Who stopped a coordinator, when, and why.
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

// One stop. Immutable (but for the origin, which completes itself, and for whether it is
// provisional) and shared, so that a wait which began before the stop was cleared can still
// say what it saw.
struct StopRecord {
  std::string id;                // the error's id if there is one, else the request's, or fresh
  std::uint64_t generation = 0;  // which stop of its coordinator it is, from 1
  StopKind kind = StopKind::kPlain;
  std::shared_ptr<const EncodedError> error;         // null for kPlain
  Clock::time_point requested_at = {};               // for the grace period
  std::shared_ptr<const StopRecord> inherited_from;  // the ancestor's record, or null
  Origin own_origin;                                 // if it is null
  // Until an arbiter has answered. Written under the mutex of the coordinator that it was
  // requested of, read under those of its descendants as well.
  mutable std::atomic<bool> awaits_answer{false};

  bool IsProvisional() const {
    return (inherited_from ? *inherited_from : *this).awaits_answer.load();
  }
  // Who made it, as this coordinator sees it. Waits as Origin::Get does.
  Requester requester() const;
};

// An error that came when a stop was there already, or had nobody to go to.
struct SuppressedError {
  std::shared_ptr<const EncodedError> error;
  std::shared_ptr<const Origin> origin;
};

// What a caller asks for.
struct StopRequest {
  std::shared_ptr<const EncodedError> error;  // null: no error
  Requester requester;
  // They complete it, if set: on the thread that requests, with no lock held, when the
  // waiters have been woken, and only if the request is recorded. `describe` is quick
  // and comes before the stop callbacks, `locate` may call JavaScript and comes last.
  Describe describe;
  Describe locate;
  // Ids of errors that are this one: its own and, if it is an AbortError, those
  // of its chain of causes. If the current record's id is among them, this
  // request is an echo of the stop.
  std::vector<std::string> echo_ids;
  // Those of them that came through an AbortError. They are echoes of earlier,
  // cleared stops, too: a task that unwinds late must not stop a new life.
  std::vector<std::string> abort_echo_ids;
  // The id that the record has in another process, which is stopped; so this one is to be,
  // whatever has been joined here. Empty: it is made here.
  std::string record_id;
  // Whether somebody can be thrown at. False for links and registered threads.
  bool has_caller = true;
};

enum class StopOutcome : std::uint8_t {
  kStopped,         // this request is the stop
  kAlreadyStopped,  // nothing to add
  kSuppressed,      // the error was kept beside the record
  kCounted,         // the error was counted only, as too many were there
  kEcho,            // the error was the stop itself, come back
  kRefused,         // after a join: throw it at the caller, nothing was changed
};

// What a stopped join comes to: the error of the stop, else the reported one, or null.
inline std::shared_ptr<const EncodedError> FirstError(const StopRecord* record,
                                                      const SuppressedError& reported) {
  return record && record->kind == StopKind::kError ? record->error : reported.error;
}

struct StopView {
  std::shared_ptr<const StopRecord> record;  // null: no stop is requested
  SuppressedError reported;                  // without a stop; its error may be null
  std::vector<SuppressedError> suppressed;   // the first kMaxSuppressed
  std::uint32_t suppressed_count = 0;        // all of them
};

inline constexpr std::size_t kMaxSuppressed = 16;

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_STOP_RECORD_H_
