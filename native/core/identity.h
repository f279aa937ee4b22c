// Names that are never used twice, and the ids of the calling thread and of the process.
#ifndef ALLSTOP_CORE_IDENTITY_H_
#define ALLSTOP_CORE_IDENTITY_H_

#include <cstdint>
#include <string>

namespace allstop::core {

// The name of this copy of the library in this process: 128 random bits in hex, the same on
// every call. A handle that carries another world's name belongs to another process or copy. A
// process that is forked has a name of its own.
const std::string& World();

// A name that is fresh in all worlds: "WORLD.N". Any thread.
std::string NextIdentity();

// The operating system's id of the calling thread (gettid on Linux).
std::uint64_t OsThreadId();

// The id of this process. Mostly no system call: it is asked for each child of a coordinator.
std::int64_t ProcessId() noexcept;

// Milliseconds since 1970, to be shown to people. Waits use Clock (deadline.h), since the wall
// clock may be set.
std::int64_t WallClockMs();

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_IDENTITY_H_
