// Walks a directory and hashes files that may be duplicates, on C++ threads that stop when the
// coordinator is stopped. Does not depend on Node.
#ifndef FIND_DUPLICATES_SCAN_H_
#define FIND_DUPLICATES_SCAN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "allstop/allstop.hpp"

namespace find_duplicates {

// Thrown if a file or directory cannot be read. In JavaScript `join()` throws it as a NativeError
// with this message and the nativeType "find_duplicates::FileError".
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The progress of the threads.
struct Progress {
  std::atomic<std::uint64_t> files{0};  // found by the walker
  std::atomic<std::uint64_t> bytes_to_hash{0};
  std::atomic<std::uint64_t> bytes_hashed{0};
};

struct ScanOptions {
  std::string directory;
  unsigned hashers = 1;
  bool strict = false;  // a file that cannot be read is an error, which stops all threads
  // The queues for the results. A file is enqueued as "HASH SIZE PATH", with the 128 bits of XXH3
  // in hexadecimal; files with the same hash go to the same queue. A file that cannot be read is
  // enqueued as "- 0 MESSAGE". The queues are closed when the last thread has ended, for whatever
  // reason.
  std::vector<allstop::BoundedQueue> results;
};

// Starts the threads and returns. The threads are registered, so join() of the coordinator waits
// for them and throws their exceptions.
std::shared_ptr<const Progress> StartScan(const allstop::Coordinator& coord, ScanOptions options);

}  // namespace find_duplicates

#endif  // FIND_DUPLICATES_SCAN_H_
