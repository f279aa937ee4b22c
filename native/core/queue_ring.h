// The items of a queue in order, in a ring buffer that grows and is reused.
#ifndef ALLSTOP_CORE_QUEUE_RING_H_
#define ALLSTOP_CORE_QUEUE_RING_H_

#include <cstddef>
#include <memory>
#include <new>
#include <utility>

#include "queue_item.h"

namespace allstop::core {

// Guarded by BoundedQueue::mutex_ of the queue that owns it.
class QueueRing {
 public:
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::size_t capacity() const { return capacity_; }
  // The place behind the last item, if capacity() is above size(); then Added.
  QueueItem& Next() { return items_[(head_ + size_) & (capacity_ - 1)]; }
  void Added() { ++size_; }
  // The first item, if there is one; then Removed, which expects it to be empty.
  QueueItem& First() { return items_[head_]; }
  void Removed() {
    head_ = (head_ + 1) & (capacity_ - 1);
    --size_;
    if (capacity_ > kMaxIdleCapacity && size_ <= capacity_ / 4) Shrink();
  }

  // Makes room for `more` items. If it throws std::bad_alloc, nothing has changed.
  void Reserve(std::size_t more) {
    if (size_ + more > capacity_) Resize(size_ + more);
  }
  // Push adds at the back, PushFront at the front. Reserve must have made room.
  void Push(QueueItem&& item) { items_[(head_ + size_++) & (capacity_ - 1)] = std::move(item); }
  void PushFront(QueueItem&& item) {
    head_ = (head_ - 1) & (capacity_ - 1);
    items_[head_] = std::move(item);
    ++size_;
  }
  void Pop(QueueItem& item) {
    item = std::move(items_[head_]);
    head_ = (head_ + 1) & (capacity_ - 1);
    --size_;
    if (capacity_ > kMaxIdleCapacity && size_ <= capacity_ / 4) Shrink();
  }

 private:
  static constexpr std::size_t kMinCapacity = 16;
  static constexpr std::size_t kMaxIdleCapacity = 4096;

  void Resize(std::size_t needed) {
    std::size_t capacity = capacity_ == 0 ? kMinCapacity : capacity_;
    while (capacity < needed) capacity *= 2;
    MoveTo(capacity);
  }

  // Halves the capacity, when at most a quarter of it is used. Since the capacity last changed,
  // at least as many items have left as are moved now, so an item costs constant time on average.
  void Shrink() noexcept {
    try {
      MoveTo(capacity_ / 2);
    } catch (const std::bad_alloc&) {  // the ring stays as large as it was
    }
  }

  void MoveTo(std::size_t capacity) {
    auto items = std::make_unique<QueueItem[]>(capacity);
    for (std::size_t i = 0; i < size_; ++i) {
      items[i] = std::move(items_[(head_ + i) & (capacity_ - 1)]);
    }
    items_ = std::move(items);
    capacity_ = capacity;
    head_ = 0;
  }

  std::unique_ptr<QueueItem[]> items_;
  std::size_t capacity_ = 0;  // a power of two, or 0
  std::size_t head_ = 0;
  std::size_t size_ = 0;
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_QUEUE_RING_H_
