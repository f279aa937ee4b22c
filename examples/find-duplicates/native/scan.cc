#include "scan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
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

// Not bounded: the walker remembers as many paths anyway.
class FileQueue {
 public:
  explicit FileQueue(const allstop::Coordinator& coord) : coord_(coord) {}

  void Push(std::string path) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      paths_.push_back(std::move(path));
    }
    changed_.notify_one();
  }

  void Close() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_ = true;
    }
    changed_.notify_all();
  }

  // Blocks. Nothing: it is closed and empty, or a stop was requested.
  std::optional<std::string> Pop() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return coord_.ShouldStop() || closed_ || !paths_.empty(); });
    if (coord_.ShouldStop() || paths_.empty()) return std::nullopt;
    std::string path = std::move(paths_.front());
    paths_.pop_front();
    return path;
  }

 private:
  // A stop must end Pop() as well. The lock is what makes it certain: without it
  // the flag could be set between a waiter's look at it and its going to sleep.
  void Wake() {
    { const std::lock_guard<std::mutex> lock(mutex_); }
    changed_.notify_all();
  }

  const allstop::Coordinator coord_;
  std::mutex mutex_;  // guards paths_ and closed_
  std::condition_variable changed_;
  std::deque<std::string> paths_;
  bool closed_ = false;
  // Last, as it may call Wake() while it is made, and until it is destroyed.
  const allstop::StopCallback<std::function<void()>> on_stop_{coord_, [this] { Wake(); }};
};

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
  Scan(const allstop::Coordinator& coord, ScanOptions options, std::function<void(Report)> report)
      : coord_(coord), options_(std::move(options)), report_(std::move(report)), queue_(coord) {}

  ~Scan() {
    Report last;
    last.last = true;
    report_(std::move(last));
  }

  // The walker thread. Only files of which another has the same size can be
  // duplicates, so the first of a size waits here for a second.
  void Walk() {
    std::vector<std::string> directories = {options_.directory};
    while (!directories.empty() && !coord_.ShouldStop()) {
      const std::string directory = std::move(directories.back());
      directories.pop_back();
      Report report;
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
          ++report.files;
          report.bytes_to_hash += Consider(path, status);
        }
      }
      if (error) Unreadable("read the directory", directory, error.value());
      report_(std::move(report));
    }
    queue_.Close();
  }

  // A hasher thread.
  void Hash() {
    std::vector<char> buffer(kChunk);
    const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(XXH3_createState(),
                                                                                &XXH3_freeState);
    if (!state) throw std::bad_alloc();
    while (std::optional<std::string> path = queue_.Pop()) {
      HashFile(std::move(*path), *state, buffer);
    }
  }

 private:
  // Returns how many bytes it has added to the queue.
  std::uint64_t Consider(const std::string& path, const struct stat& status) {
    if (status.st_size == 0) return 0;  // wastes nothing
    // Hard links share one copy on the disk.
    if (status.st_nlink > 1 && !linked_.emplace(status.st_dev, status.st_ino).second) return 0;
    const auto size = static_cast<std::uint64_t>(status.st_size);
    const auto [other, is_first] = of_size_.emplace(size, path);
    if (is_first) return 0;
    std::uint64_t added = size;
    if (!other->second.empty()) {
      queue_.Push(std::exchange(other->second, {}));
      added += size;
    }
    queue_.Push(path);
    return added;
  }

  void HashFile(std::string path, XXH3_state_t& state, std::vector<char>& buffer) {
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
      Report progress;
      progress.bytes_hashed = static_cast<std::uint64_t>(read);
      report_(std::move(progress));
    }
    Report done;
    done.hashed.push_back({std::move(path), size, ToHex(XXH3_128bits_digest(&state))});
    report_(std::move(done));
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
    Report report;
    report.unreadable.push_back(message);
    report_(std::move(report));
  }

  const allstop::Coordinator coord_;
  const ScanOptions options_;
  const std::function<void(Report)> report_;
  FileQueue queue_;

  // The walker's own.
  std::unordered_map<std::uint64_t, std::string> of_size_;  // "": queued already
  std::set<std::pair<dev_t, ino_t>> linked_;
};

}  // namespace

void StartScan(const allstop::Coordinator& coord, ScanOptions options,
               std::function<void(Report)> report) {
  const unsigned hashers = options.hashers;
  const auto scan = std::make_shared<Scan>(coord, std::move(options), std::move(report));
  // Nobody waits for these threads here: this may be a JavaScript thread.
  allstop::Thread(coord, "walker", [scan] { scan->Walk(); }).Detach();
  for (unsigned i = 1; i <= hashers; ++i) {
    allstop::Thread(coord, "hasher " + std::to_string(i), [scan] { scan->Hash(); }).Detach();
  }
}

}  // namespace find_duplicates
