// Bytes that one process writes and other processes of this machine read, without a message.
//
// Invariants, cited by number:
//
//  1. One process, the owner, writes. The others map the memory for reading only: nothing that one
//     of them does, nor its end at any moment (SIGKILL), changes the bytes or holds up another.
//  2. The version is odd while the owner writes; its writers come one after the other. A reader
//     copies between two looks at the version: if both saw the same even one, no write has
//     overlapped the copy, which is the value from between two updates. Else the reader tries
//     again, a few times, and then asks the owner: it waits for nobody here.
//  3. The version is even again before the owner tells anybody of an update. So a process
//     that was told of it, by whatever message, reads that update or a later one.
//  4. An owner that dies in the middle of a write leaves an odd version for ever. Its readers ask
//     it then, and hear that it is gone.
//  5. The length is sealed before anybody can open the memory. So a reader touches no page that is
//     not there (SIGBUS).
#ifndef ALLSTOP_CORE_PUBLISHED_BYTES_H_
#define ALLSTOP_CORE_PUBLISHED_BYTES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace allstop::core {

// What stands before the bytes.
struct PublishedHead {
  std::uint64_t magic;
  std::uint64_t size;
  std::uint64_t id;  // a part of the path: the owner's descriptor may be that of other bytes later
  std::atomic<std::uint64_t> version;
};

// The owner's end. It has a file descriptor until EndPublishing.
class PublishedBytes {
 public:
  // Zeros. Null where the platform has no such memory, or gives the process none.
  static std::unique_ptr<PublishedBytes> Create(std::size_t size);
  ~PublishedBytes();
  PublishedBytes(const PublishedBytes&) = delete;
  PublishedBytes& operator=(const PublishedBytes&) = delete;

  // Aligned for every type.
  unsigned char* bytes() const;
  // By which PublishedReader::Open finds these bytes and no others, in a process of the same user.
  std::string Path() const;
  // No process opens it any more. Any thread. Those that have opened it, and the owner, keep it.
  void EndPublishing();

  // Around each change of the bytes. One thread at a time.
  void BeginWrite();
  void EndWrite();

 private:
  PublishedBytes(int descriptor, void* memory, std::size_t size)
      : descriptor_(descriptor), memory_(memory), size_(size) {}
  PublishedHead& head() const { return *static_cast<PublishedHead*>(memory_); }

  std::atomic<int> descriptor_;
  void* const memory_;
  [[maybe_unused]] const std::size_t size_;  // unused where there is no such memory
};

// Any thread may call any method.
class PublishedReader {
 public:
  // Null if there are no published bytes of this path and size.
  static std::unique_ptr<PublishedReader> Open(const std::string& path, std::size_t size);
  ~PublishedReader();
  PublishedReader(const PublishedReader&) = delete;
  PublishedReader& operator=(const PublishedReader&) = delete;

  // Copies all bytes. False, and whatever in `to`, if writes were in the way: ask the owner.
  bool Read(void* to) const;

 private:
  PublishedReader(const void* memory, std::size_t size) : memory_(memory), size_(size) {}

  [[maybe_unused]] const void* const memory_;  // unused where there is no such memory
  [[maybe_unused]] const std::size_t size_;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_PUBLISHED_BYTES_H_
