// Walks a directory and hashes files that may be duplicates, on C++ threads which
// stop when the coordinator says so. Knows nothing of Node.
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

// A file or directory could not be read. In JavaScript, after `join()`, it is a
// NativeError with this message and the nativeType "find_duplicates::FileError".
class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// What the threads have done so far.
struct Progress {
  std::atomic<std::uint64_t> files{0};  // seen
  std::atomic<std::uint64_t> bytes_to_hash{0};
  std::atomic<std::uint64_t> bytes_hashed{0};
};

struct ScanOptions {
  std::string directory;
  unsigned hashers = 1;
  bool strict = false;  // what cannot be read is an error that stops all
  // Where the files go, as "HASH SIZE PATH", with 128 bits of XXH3 in hexadecimal: those
  // of one hash to the same queue. And what cannot be read, as "- 0 MESSAGE". Closed when
  // the last thread has ended, however it did.
  std::vector<allstop::BoundedQueue> results;
};

// Starts the threads and returns. They are registered, so whoever joins the
// coordinator waits for them and gets what they throw.
std::shared_ptr<const Progress> StartScan(const allstop::Coordinator& coord, ScanOptions options);

}  // namespace find_duplicates

#endif  // FIND_DUPLICATES_SCAN_H_
