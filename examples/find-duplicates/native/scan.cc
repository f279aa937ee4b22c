#include "scan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <system_error>
#include <unordered_map>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace find_duplicates {
namespace {

// Between two polls of the stop flag: about 50 microseconds of work.
constexpr std::size_t kChunk = std::size_t{128} * 1024;

// Paths that wait for a hasher. The walker need not run far ahead of them.
constexpr std::uint64_t kMostPaths = 4096;

class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  bool is_open() const { return descriptor_ >= 0; }
  ssize_t Read(std::vector<char>& buffer) const {
    for (;;) {
      const ssize_t size = ::read(descriptor_, buffer.data(), buffer.size());
      if (size >= 0 || errno != EINTR) return size;
    }
  }

 private:
  const int descriptor_;
};

// Shared by the threads of one scan; the last one destroys it.
class Scan {
 public:
  Scan(const allstop::Coordinator& coord, ScanOptions options)
      : coord_(coord), options_(std::move(options)), paths_(coord, kMostPaths, "paths") {}

  ~Scan() {
    for (const allstop::BoundedQueue& results : options_.results) results.Close();
  }

  const std::shared_ptr<Progress>& progress() const { return progress_; }

  // The walker thread. Only files of which another has the same size can be
  // duplicates, so the first of a size waits here for a second.
  void Walk() {
    std::vector<std::string> directories = {options_.directory};
    while (!directories.empty() && !coord_.ShouldStop()) {
      const std::string directory = std::move(directories.back());
      directories.pop_back();
      std::error_code error;
      std::filesystem::directory_iterator entry(directory, error);
      for (; entry != std::filesystem::directory_iterator() && !coord_.ShouldStop();
           entry.increment(error)) {
        const std::string path = entry->path().string();
        struct stat status;
        if (::lstat(path.c_str(), &status) != 0) {
          Unreadable("stat", path, errno);
        } else if (S_ISDIR(status.st_mode)) {
          directories.push_back(path);
        } else if (S_ISREG(status.st_mode)) {  // so symbolic links are not followed
          ++progress_->files;
          Consider(path, status);
        }
      }
      if (error) Unreadable("read the directory", directory, error.value());
    }
    paths_.Close();
  }

  // A hasher thread.
  void Hash() {
    std::vector<char> buffer(kChunk);
    const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                                &XXH3_freeState);
    if (!state) throw std::bad_alloc();
    allstop::Item path;
    while (!coord_.ShouldStop() && paths_.Dequeue(path) == ALLSTOP_OK) {
      HashFile(std::string(path.bytes()), *state, buffer);
    }
  }

 private:
  void Consider(const std::string& path, const struct stat& status) {
    if (status.st_size == 0) return;  // wastes nothing
    // Hard links share one copy on the disk.
    if (status.st_nlink > 1 && !linked_.emplace(status.st_dev, status.st_ino).second) return;
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const auto [other, is_first] = of_size_.emplace(size, path);
    if (is_first) return;
    if (!other->second.empty()) ToBeHashed(std::exchange(other->second, {}), size);
    ToBeHashed(path, size);
  }

  // Blocks while there are many. What it comes to does not matter: the hashers go on
  // until the end, or a stop.
  void ToBeHashed(const std::string& path, std::uint64_t size) {
    progress_->bytes_to_hash += size;
    paths_.Enqueue(path);
  }

  void HashFile(const std::string& path, XXH3_state_t& state, std::vector<char>& buffer) {
    const OpenFile file(path);
    if (!file.is_open()) return Unreadable("open", path, errno);
    XXH3_128bits_reset(&state);
    std::uint64_t size = 0;
    for (;;) {
      if (coord_.ShouldStop()) return;
      const ssize_t read = file.Read(buffer);
      if (read < 0) return Unreadable("read", path, errno);
      if (read == 0) break;
      XXH3_128bits_update(&state, buffer.data(), static_cast<std::size_t>(read));
      size += static_cast<std::uint64_t>(read);
      progress_->bytes_hashed += static_cast<std::uint64_t>(read);
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(&state);
    const std::size_t share = hash.low64 % options_.results.size();
    options_.results[share].Enqueue(ToHex(hash) + " " + std::to_string(size) + " " + path);
  }

  static std::string ToHex(XXH128_hash_t hash) {
    XXH128_canonical_t canonical;
    XXH128_canonicalFromHash(&canonical, hash);
    std::string hex;
    for (const unsigned char byte : canonical.digest) {
      hex += "0123456789abcdef"[byte >> 4];
      hex += "0123456789abcdef"[byte & 15];
    }
    return hex;
  }

  void Unreadable(const char* action, const std::string& path, int error) const {
    const std::string message = "cannot " + std::string(action) + " " + path + ": " +
                                std::generic_category().message(error);
    if (options_.strict) throw FileError(message);
    options_.results.front().Enqueue("- 0 " + message);
  }

  const allstop::Coordinator coord_;
  const ScanOptions options_;
  const std::shared_ptr<Progress> progress_ = std::make_shared<Progress>();
  const allstop::BoundedQueue paths_;

  // The walker's own.
  std::unordered_map<std::uint64_t, std::string> of_size_;  // "": queued already
  std::set<std::pair<dev_t, ino_t>> linked_;
};

}  // namespace

std::shared_ptr<const Progress> StartScan(const allstop::Coordinator& coord, ScanOptions options) {
  const unsigned hashers = options.hashers;
  const auto scan = std::make_shared<Scan>(coord, std::move(options));
  // Nobody waits for these threads here: this may be a JavaScript thread.
  allstop::Thread(coord, "walker", [scan] { scan->Walk(); }).Detach();
  for (unsigned i = 1; i <= hashers; ++i) {
    allstop::Thread(coord, "hasher " + std::to_string(i), [scan] { scan->Hash(); }).Detach();
  }
  return scan->progress();
}

}  // namespace find_duplicates
