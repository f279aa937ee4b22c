// The bytes of one item of a queue: up to kInPlace bytes inside the object, more on the heap.
#ifndef ALLSTOP_CORE_QUEUE_ITEM_H_
#define ALLSTOP_CORE_QUEUE_ITEM_H_

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

#include "cancellation.h"

namespace allstop::core {

// Owns its bytes. Can be moved; a moved-from item is empty. An item is one cache line long and
// aligned to one, since processors pass memory to each other in whole cache lines.
class alignas(64) QueueItem {
 public:
  // Frees bytes that a caller has allocated. Called once, on any thread; must not throw.
  using Release = void (*)(void* data, std::size_t size, void* context);

  static constexpr std::size_t kInPlace = 32;

  QueueItem() noexcept : size_(0), release_(nullptr) {}
  // Allocates `size` bytes, which the caller writes through data(). May throw std::bad_alloc.
  explicit QueueItem(std::size_t size) : size_(size), release_(nullptr) {
    if (size <= kInPlace) return;
    void* const memory = std::malloc(size);
    if (memory == nullptr) throw std::bad_alloc();
    data_ = memory;
    release_ = [](void* data, std::size_t, void*) { std::free(data); };
  }
  QueueItem(const void* bytes, std::size_t size) : QueueItem(size) {
    if (size > 0) std::memcpy(data(), bytes, size);
  }
  // Copies all kInPlace bytes; the item is the first `size` of them.
  static QueueItem InPlace(const unsigned char (&bytes)[kInPlace], std::size_t size) noexcept {
    QueueItem item;
    item.size_ = size;
    std::memcpy(item.in_place_, bytes, kInPlace);  // a constant size, so the compiler inlines it
    return item;
  }
  // Makes an empty item one of these bytes, as InPlace does.
  void SetInPlace(const unsigned char (&bytes)[kInPlace], std::size_t size) noexcept {
    size_ = size;
    std::memcpy(in_place_, bytes, kInPlace);
  }
  // Takes over bytes that the caller has allocated; `free` is not null.
  QueueItem(void* data, std::size_t size, Release free, void* context) noexcept
      : size_(size), release_(free), data_(data), context_(context) {}

  QueueItem(QueueItem&& other) noexcept { Take(other); }
  QueueItem& operator=(QueueItem&& other) noexcept {
    if (this != &other) {
      Reset();
      Take(other);
    }
    return *this;
  }
  ~QueueItem() { Reset(); }

  std::size_t size() const { return size_; }
  // `size` is at most size().
  void Truncate(std::size_t size) { size_ = size; }
  unsigned char* data() {
    return release_ == nullptr ? in_place_ : static_cast<unsigned char*>(data_);
  }
  const unsigned char* data() const { return const_cast<QueueItem*>(this)->data(); }

  // For abi/, which moves data(), release() and context() into an allstop_item, then calls Disown.
  Release release() const { return release_; }
  void* context() const { return context_; }
  void Disown() {
    size_ = 0;
    release_ = nullptr;
  }

 private:
  void Take(QueueItem& other) {
    size_ = other.size_;
    release_ = other.release_;
    data_ = other.data_;
    context_ = other.context_;
    std::memcpy(in_place_, other.in_place_, kInPlace);  // even if unused: quicker than a branch
    other.Disown();
  }
  void Reset() {
    if (release_ != nullptr) {
      const CancellationDisabled disabled;  // it may close a file
      release_(data_, size_, context_);
    }
    Disown();
  }

  std::size_t size_;
  Release release_;  // null: the bytes are in in_place_
  void* data_ = nullptr;
  void* context_ = nullptr;
  unsigned char in_place_[kInPlace] = {};
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_QUEUE_ITEM_H_
