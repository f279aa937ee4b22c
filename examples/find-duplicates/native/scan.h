// Walks a directory and hashes files that may be duplicates, on C++ threads that end on a stop of
// the coordinator. Does not depend on Node.
#ifndef FIND_DUPLICATES_SCAN_H_
#define FIND_DUPLICATES_SCAN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "allstop/allstop.hpp"
#include "allstop/allstop_bounded_queue.hpp"

namespace find_duplicates {

// A file or directory could not be read. In JavaScript, after `join()`, it is a
// NativeError with this message and the nativeType "find_duplicates::FileError".
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the threads have done so far.
struct Progress {
  std::atomic<std::uint64_t> files{0};  // files that the walker has found
  std::atomic<std::uint64_t> bytes_to_hash{0};
  std::atomic<std::uint64_t> bytes_hashed{0};
};

struct ScanOptions {
  std::string directory;
  unsigned hashers = 1;
  bool strict = false;  // a file that cannot be read is an error that stops all threads
  // Each hashed file goes to one of these queues, as "HASH SIZE PATH", with 128 bits of XXH3 in
  // hexadecimal; files with the same hash go to the same queue. A file that cannot be read goes
  // to the first queue, as "- 0 MESSAGE". The queues are closed when the last thread has ended,
  // with or without an error.
  std::vector<allstop::BoundedQueue> results;
};

// Starts the threads and returns at once. The threads are registered: a join of the coordinator
// waits for them, and reports the errors that they throw.
std::shared_ptr<const Progress> StartScan(const allstop::Coordinator& coord, ScanOptions options);

}  // namespace find_duplicates

#endif  // FIND_DUPLICATES_SCAN_H_
