// The bytes of one item of a queue: short ones in place, longer ones elsewhere.
#ifndef ALLSTOP_CORE_QUEUE_ITEM_H_
#define ALLSTOP_CORE_QUEUE_ITEM_H_

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>

namespace allstop::core {

// Owns them; moves, and is empty when moved from.
class QueueItem {
 public:
  // Frees bytes that were adopted. Any thread, and once; must not throw.
  using Release = void (*)(void* data, std::size_t size, void* context);

  static constexpr std::size_t kInPlace = 48;

  QueueItem() noexcept : size_(0), release_(nullptr) {}
  // `size` bytes to be written to data(). May throw std::bad_alloc.
  explicit QueueItem(std::size_t size) : size_(size), release_(nullptr) {
    if (size <= kInPlace) return;
    void* const memory = std::malloc(size);
    if (memory == nullptr) throw std::bad_alloc();
    place_.owned = {memory, nullptr};
    release_ = [](void* data, std::size_t, void*) { std::free(data); };
  }
  QueueItem(const void* bytes, std::size_t size) : QueueItem(size) {
    if (size > 0) std::memcpy(data(), bytes, size);
  }
  // Takes over what others have allocated; `release` is not null.
  QueueItem(void* data, std::size_t size, Release release, void* context) noexcept
      : size_(size), release_(release) {
    place_.owned = {data, context};
  }

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
  unsigned char* data() {
    return release_ == nullptr ? place_.bytes : static_cast<unsigned char*>(place_.owned.data);
  }
  const unsigned char* data() const { return const_cast<QueueItem*>(this)->data(); }

  // For abi/, whose item has the same parts. The owner is whoever gets them.
  Release release() const { return release_; }
  void* context() const { return release_ == nullptr ? nullptr : place_.owned.context; }
  void Disown() {
    size_ = 0;
    release_ = nullptr;
  }

 private:
  void Take(QueueItem& other) {
    size_ = other.size_;
    release_ = other.release_;
    place_ = other.place_;
    other.Disown();
  }
  void Reset() {
    if (release_ != nullptr) release_(place_.owned.data, size_, place_.owned.context);
    Disown();
  }

  std::size_t size_;
  Release release_;  // null: in place
  union {
    struct {
      void* data;
      void* context;
    } owned;
    unsigned char bytes[kInPlace];
  } place_;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_QUEUE_ITEM_H_
