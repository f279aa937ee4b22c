// The bytes of one item of a queue: short ones in place, longer ones elsewhere.
#ifndef ALLSTOP_CORE_QUEUE_ITEM_H_
#define ALLSTOP_CORE_QUEUE_ITEM_H_

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace allstop::core {

// Owns them; moves, and is empty when moved from. As long as a line of the cache, and at
// the beginning of one: that is how an item gets from one processor to another.
class alignas(64) QueueItem {
 public:
  // Frees bytes that were adopted. Any thread, and once; must not throw.
  using Release = void (*)(void* data, std::size_t size, void* context);

  static constexpr std::size_t kInPlace = 32;

  QueueItem() noexcept : size_(0), release_(nullptr) {}
  // `size` bytes to be written to data(). May throw std::bad_alloc.
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
  // Of short ones, all that there is room for.
  static QueueItem InPlace(const unsigned char (&bytes)[kInPlace], std::size_t size) noexcept {
    QueueItem item;
    item.size_ = size;
    std::memcpy(item.in_place_, bytes, kInPlace);  // a few instructions, without a call
    return item;
  }
  // Takes over what others have allocated; `free` is not null.
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
  // To fewer bytes than it has.
  void Truncate(std::size_t size) { size_ = size; }
  unsigned char* data() {
    return release_ == nullptr ? in_place_ : static_cast<unsigned char*>(data_);
  }
  const unsigned char* data() const { return const_cast<QueueItem*>(this)->data(); }

  // For abi/, whose item has the same parts. The owner is whoever gets them.
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
    std::memcpy(in_place_, other.in_place_, kInPlace);  // all: that is quicker than asking
    other.Disown();
  }
  void Reset() {
    if (release_ != nullptr) release_(data_, size_, context_);
    Disown();
  }

  std::size_t size_;
  Release release_;  // null: in place
  void* data_ = nullptr;
  void* context_ = nullptr;
  unsigned char in_place_[kInPlace] = {};
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_QUEUE_ITEM_H_
