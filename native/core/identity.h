// Names that are never used twice.
#ifndef ALLSTOP_CORE_IDENTITY_H_
#define ALLSTOP_CORE_IDENTITY_H_

#include <cstdint>
#include <string>

namespace allstop::core {

// This copy of the library in this process: 128 random bits in hex, the same on
// every call. What carries another world's name is not ours.
const std::string& World();

// A fresh name within every world: "WORLD.N". Any thread.
std::string NextIdentity();

// The operating system's id of the calling thread (gettid on Linux).
std::uint64_t OsThreadId();

// The id of this process.
std::int64_t ProcessId();

// Milliseconds since 1970, for people; never used for waiting.
std::int64_t WallClockMs();

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_IDENTITY_H_
