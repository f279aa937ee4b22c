#include "published_bytes.h"

#ifdef __linux__
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <new>
#include <utility>
#endif

#include "identity.h"

// GCC warns of fences, which ThreadSanitizer does not know. It sees no race here either: the owner
// and a reader have the memory at two addresses.
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wtsan"
#endif

namespace allstop::core {

#ifdef __linux__
namespace {

constexpr std::uint64_t kPublishedMagic = 0x32'73'65'74'79'62'73'61;  // "asbytes2"
// So that the bytes begin at a cache line of their own.
constexpr std::size_t kHeadBytes = 64;
static_assert(sizeof(PublishedHead) <= kHeadBytes);
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

// Constants of Linux that the C library of an older system does not declare. (-1: no such call.)
#if defined(SYS_memfd_create)
constexpr long kMemfdCreate = SYS_memfd_create;
#elif defined(__x86_64__)
constexpr long kMemfdCreate = 319;
#elif defined(__aarch64__)
constexpr long kMemfdCreate = 279;
#else
constexpr long kMemfdCreate = -1;
#endif
constexpr unsigned kCloseOnExec = 1;
constexpr unsigned kAllowSealing = 2;
constexpr int kAddSeals = 1033;
constexpr int kSealSealShrinkGrow = 1 | 2 | 4;

// How often a reader tries before it asks the owner.
constexpr int kTries = 4;

}  // namespace

std::unique_ptr<PublishedBytes> PublishedBytes::Create(std::size_t size) {
  const int descriptor =
      static_cast<int>(syscall(kMemfdCreate, "allstop variable", kCloseOnExec | kAllowSealing));
  if (descriptor < 0) return nullptr;
  const std::size_t length = kHeadBytes + size;
  void* memory = MAP_FAILED;
  // posix_fallocate: memory that the machine does not have is found missing here, not by a write.
  if (posix_fallocate(descriptor, 0, static_cast<off_t>(length)) == 0 &&
      fcntl(descriptor, kAddSeals, kSealSealShrinkGrow) == 0) {  // (5)
    memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  if (memory == MAP_FAILED) {
    close(descriptor);
    return nullptr;
  }
  const std::uint64_t id = std::hash<std::string>()(NextIdentity());
  new (memory) PublishedHead{kPublishedMagic, size, id, {0}};
  return std::unique_ptr<PublishedBytes>(new PublishedBytes(descriptor, memory, size));
}

PublishedBytes::~PublishedBytes() {
  munmap(memory_, kHeadBytes + size_);
  EndPublishing();
}

void PublishedBytes::EndPublishing() {
  const int descriptor = descriptor_.exchange(-1);
  if (descriptor >= 0) close(descriptor);
}

unsigned char* PublishedBytes::bytes() const {
  return static_cast<unsigned char*>(memory_) + kHeadBytes;
}

std::string PublishedBytes::Path() const {
  return "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(descriptor_.load()) + '#' +
         std::to_string(head().id);
}

void PublishedBytes::BeginWrite() {
  head().version.fetch_add(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);  // before each write of a byte (2)
}

void PublishedBytes::EndWrite() { head().version.fetch_add(1, std::memory_order_release); }

std::unique_ptr<PublishedReader> PublishedReader::Open(const std::string& path, std::size_t size) {
  const std::size_t file_size = path.find('#');
  if (file_size == std::string::npos) return nullptr;
  const int descriptor = open(path.substr(0, file_size).c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return nullptr;
  const std::size_t length = kHeadBytes + size;
  struct stat status = {};
  void* memory = MAP_FAILED;
  if (fstat(descriptor, &status) == 0 && static_cast<std::size_t>(status.st_size) == length) {
    memory = mmap(nullptr, length, PROT_READ, MAP_SHARED, descriptor, 0);
  }
  close(descriptor);
  if (memory == MAP_FAILED) return nullptr;
  std::unique_ptr<PublishedReader> reader(new PublishedReader(memory, size));
  const auto& head = *static_cast<const PublishedHead*>(memory);
  const bool is_it = head.magic == kPublishedMagic && head.size == size &&
                     std::to_string(head.id) == path.substr(file_size + 1);
  return is_it ? std::move(reader) : nullptr;
}

PublishedReader::~PublishedReader() { munmap(const_cast<void*>(memory_), kHeadBytes + size_); }

bool PublishedReader::Read(void* to) const {
  const auto& version = static_cast<const PublishedHead*>(memory_)->version;
  const void* const bytes = static_cast<const unsigned char*>(memory_) + kHeadBytes;
  for (int tries = 0; tries < kTries; ++tries) {
    const std::uint64_t before = version.load(std::memory_order_acquire);
    if (before % 2 != 0) continue;
    if (size_ > 0) std::memcpy(to, bytes, size_);
    std::atomic_thread_fence(std::memory_order_acquire);  // after each read of a byte (2)
    if (version.load(std::memory_order_relaxed) == before) return true;
  }
  return false;
}

#else

std::unique_ptr<PublishedBytes> PublishedBytes::Create(std::size_t) { return nullptr; }
PublishedBytes::~PublishedBytes() = default;
unsigned char* PublishedBytes::bytes() const { return nullptr; }
std::string PublishedBytes::Path() const { return {}; }
void PublishedBytes::EndPublishing() {}
void PublishedBytes::BeginWrite() {}
void PublishedBytes::EndWrite() {}

std::unique_ptr<PublishedReader> PublishedReader::Open(const std::string&, std::size_t) {
  return nullptr;
}
PublishedReader::~PublishedReader() = default;
bool PublishedReader::Read(void*) const { return false; }

#endif

}  // namespace allstop::core
