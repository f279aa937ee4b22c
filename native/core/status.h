// The results of the core's methods. The C codes (abi/table.cc) and TypeScript's error classes
// (lib/errors/errors.ts) follow this enum. Numbers up to 16 are gRPC's and TensorFlow's.
#ifndef ALLSTOP_CORE_STATUS_H_
#define ALLSTOP_CORE_STATUS_H_

#include <cstdint>

namespace allstop::core {

enum class Status : std::int32_t {
  kOk = 0,
  kCancelled = 1,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kOutOfRange = 11,
  kUnavailable = 14,
  kInvalidHandle = 100,
  kSelfJoin = 101,
  kStragglers = 102,
  kStoppedByError = 103,
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_STATUS_H_
