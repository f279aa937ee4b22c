// Who stopped a coordinator, when, and why.
#ifndef ALLSTOP_CORE_STOP_RECORD_H_
#define ALLSTOP_CORE_STOP_RECORD_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "deadline.h"
#include "error_record.h"

namespace allstop::core {

enum class Language : std::uint8_t { kJavaScript, kNative };

// How a request came about. The order is that of VIA in lib/native.ts.
enum class Via : std::uint8_t {
  kCall,
  kException,
  kSignal,
  kAbort,
  kClose,
  kTimeout,
  kParent,
  kWorkerExit,
};

struct Requester {
  Language language = Language::kNative;
  Via via = Via::kCall;
  std::string thread_name;
  std::uint64_t thread_id = 0;  // JavaScript's threadId, or the OS thread id
  std::int64_t pid = 0;
  std::string stack;   // the call site; empty if unknown
  std::string signal;  // "SIGINT"; empty unless via kSignal or a killed child
};

// A requester for the calling native thread, named by the OS.
Requester ThisNativeThread(Via via);

enum class StopKind : std::uint8_t { kPlain = 0, kClean = 1, kError = 2 };

// One stop. Immutable and shared, so that a wait which began before the stop was
// cleared can still say what it saw.
struct StopRecord {
  std::string id;                // the error's id if there is one, else fresh
  std::uint64_t generation = 0;  // which stop of its coordinator it is, from 1
  StopKind kind = StopKind::kPlain;
  std::shared_ptr<const ErrorRecord> error;  // null for kPlain
  Requester requester;
  std::int64_t requested_at_ms = 0;     // wall clock, for people
  Clock::time_point requested_at = {};  // monotonic, for the grace period
};

// An error that came when a stop was there already, or had nobody to go to.
struct SuppressedError {
  std::shared_ptr<const ErrorRecord> error;
  Requester requester;
  std::int64_t at_ms = 0;
};

// What a caller asks for.
struct StopRequest {
  std::shared_ptr<const ErrorRecord> error;  // null: no error
  Requester requester;
  // Ids of errors that are this one: its own and, if it is an AbortError, those
  // of its chain of causes. If the current record's id is among them, this
  // request is an echo of the stop.
  std::vector<std::string> echo_ids;
  // Those of them that came through an AbortError. They are echoes of earlier,
  // cleared stops, too: a task that unwinds late must not stop a new life.
  std::vector<std::string> abort_echo_ids;
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

struct StopView {
  std::shared_ptr<const StopRecord> record;  // null: no stop is requested
  std::vector<SuppressedError> suppressed;   // the first kMaxSuppressed
  std::uint32_t suppressed_count = 0;        // all of them
};

inline constexpr std::size_t kMaxSuppressed = 16;

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_STOP_RECORD_H_
