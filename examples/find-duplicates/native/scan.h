// Walks a directory and hashes files that may be duplicates, on C++ threads which
// stop when the coordinator says so. Knows nothing of Node.
#ifndef FIND_DUPLICATES_SCAN_H_
#define FIND_DUPLICATES_SCAN_H_

#include <cstdint>
#include <functional>
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

struct HashedFile {
  std::string path;
  std::uint64_t size;
  std::string hash;  // XXH3, 128 bits, in hexadecimal
};

// What is new since the report before.
struct Report {
  std::uint64_t files = 0;  // seen
  std::uint64_t bytes_to_hash = 0;
  std::uint64_t bytes_hashed = 0;
  std::vector<HashedFile> hashed;
  std::vector<std::string> unreadable;  // messages; empty if `strict`
  bool last = false;                    // all threads of the scan have ended
};

struct ScanOptions {
  std::string directory;
  unsigned hashers = 1;
  bool strict = false;  // what cannot be read is an error that stops all
};

// Starts the threads and returns. They call `report`, several at a time, and the
// last of them to end calls it once more with `last` set, however it ends. The
// threads are registered, so whoever joins the coordinator waits for them and
// gets what they throw.
void StartScan(const allstop::Coordinator& coord, ScanOptions options,
               std::function<void(Report)> report);

}  // namespace find_duplicates

#endif  // FIND_DUPLICATES_SCAN_H_
