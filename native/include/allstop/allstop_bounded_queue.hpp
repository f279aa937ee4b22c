/// @file allstop_bounded_queue.hpp
/// allstop::BoundedQueue and its Item.
#ifndef ALLSTOP_ALLSTOP_BOUNDED_QUEUE_HPP_
#define ALLSTOP_ALLSTOP_BOUNDED_QUEUE_HPP_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "allstop_coordinator.hpp"
#include "allstop_queue.h"

namespace allstop {

/// One item of a queue, which owns its bytes. Can be moved, not copied; a moved-from item is
/// empty.
class Item {
 public:
  Item() noexcept = default;
  /// Takes over the bytes that `item` owns.
  explicit Item(const allstop_item& item) noexcept : item_(item) {}
  /// Takes over `data` without a copy. `release(data, size, context)` is called once, on any
  /// thread; it must not block and must not throw.
  Item(void* data, std::size_t size, void (*release)(void*, std::size_t, void*),
       void* context = nullptr) noexcept {
    item_.data = data;
    item_.size = size;
    item_.release = release;
    item_.context = context;
  }
  Item(Item&& other) noexcept : item_(std::exchange(other.item_, {})) {}
  Item& operator=(Item&& other) noexcept {
    Item old(std::move(other));
    std::swap(item_, old.item_);
    return *this;
  }
  ~Item() { allstop_item_release(&item_); }

  /// Valid until this item is moved, assigned or destroyed.
  std::string_view bytes() const noexcept {
    return {static_cast<const char*>(allstop_item_data(&item_)), item_.size};
  }
  /// The item, for the functions of allstop_queue.h.
  allstop_item* handle() noexcept { return &item_; }

 private:
  allstop_item item_ = {};
};

/// One reference to a bounded queue of bytes, the same queue as a JavaScript BoundedQueue with
/// the codec 'bytes'. A copy is another reference to the same queue. The promises are those of
/// allstop_queue.h, and the methods return its statuses.
///
/// Many threads may call const methods on one object at the same time. A method with a
/// `timeout` blocks for at most that time; a timeout of 0 or less does not block. Never block
/// on a thread that runs a JavaScript event loop.
class BoundedQueue {
 public:
  static constexpr Milliseconds kForever{std::numeric_limits<double>::infinity()};

  /// An empty object, as a moved-from one is: its methods return ALLSTOP_INVALID_HANDLE, or 0.
  BoundedQueue() noexcept = default;
  /// Takes over the reference that `handle` owns (from allstop_queue_from_napi).
  explicit BoundedQueue(const allstop_queue& handle) noexcept : handle_(handle) {}
  /// Creates a queue for `capacity` items. A stop of `coord` ends all its waits. The object is
  /// empty if `capacity` is 0, if `coord` is an empty object, if there is no memory, or if the
  /// installed package is older than 1.2 of allstop.h.
  BoundedQueue(const Coordinator& coord, std::uint64_t capacity, const std::string& name = {}) {
    allstop_queue_options options = {};
    options.size = sizeof(options);
    options.name = view::Of(name);
    options.capacity = capacity;
    options.coordinator = coord.handle()->state;
    allstop_queue_create(coord.handle()->table, &options, &handle_);
  }
  BoundedQueue(const BoundedQueue& other) noexcept : handle_(other.handle_) {
    if (other) allstop_queue_retain(&handle_);
  }
  BoundedQueue(BoundedQueue&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  BoundedQueue& operator=(BoundedQueue other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~BoundedQueue() {
    if (*this) allstop_queue_release(&handle_);
  }

  /// False if this object is empty.
  explicit operator bool() const noexcept { return handle_.state != nullptr; }
  /// The handle, for the functions of allstop_queue.h. Borrowed: valid as long as this object.
  const allstop_queue* handle() const noexcept { return &handle_; }

  /// Enqueues a copy of `bytes`. See allstop_queue_enqueue.
  allstop_status Enqueue(std::string_view bytes, Milliseconds timeout = kForever) const noexcept {
    if (!*this) return ALLSTOP_INVALID_HANDLE;
    return allstop_queue_enqueue(&handle_, bytes.data(), bytes.size(), view::NotNegative(timeout));
  }
  /// Enqueues the item without a copy. The item is empty afterwards if ALLSTOP_OK, and
  /// otherwise unchanged.
  allstop_status Enqueue(Item&& item, Milliseconds timeout = kForever) const noexcept {
    if (!*this) return ALLSTOP_INVALID_HANDLE;
    return allstop_queue_enqueue_many(&handle_, item.handle(), 1, view::NotNegative(timeout),
                                      nullptr);
  }

  /// Dequeues one item into `item`, which is unchanged unless ALLSTOP_OK. See
  /// allstop_queue_dequeue.
  allstop_status Dequeue(Item& item, Milliseconds timeout = kForever) const noexcept {
    if (!*this) return ALLSTOP_INVALID_HANDLE;
    allstop_item taken = {};
    const allstop_status status =
        allstop_queue_dequeue(&handle_, &taken, view::NotNegative(timeout));
    if (status == ALLSTOP_OK) item = Item(taken);
    return status;
  }
  /// Appends the items that are in the queue to `items`, up to `max`, waiting for the first one
  /// if the queue is empty. See allstop_queue_dequeue_many.
  allstop_status DequeueMany(std::vector<Item>& items, std::size_t max,
                             Milliseconds timeout = kForever) const {
    if (!*this) return ALLSTOP_INVALID_HANDLE;
    constexpr std::size_t kBatch = 32;
    allstop_status status = max > 0 ? ALLSTOP_OK : ALLSTOP_INVALID_ARGUMENT;
    for (std::size_t taken = 0; taken < max;) {
      std::array<allstop_item, kBatch> batch = {};
      const std::size_t most = (std::min)(kBatch, max - taken);
      MakeRoom(items, most);  // before dequeuing: bad_alloc must not lose items
      std::size_t count = 0;
      status = allstop_queue_dequeue_many(&handle_, batch.data(), most,
                                          taken == 0 ? view::NotNegative(timeout) : 0, &count);
      for (std::size_t i = 0; i < count; ++i) items.emplace_back(batch[i]);
      taken += count;
      if (taken > 0) status = ALLSTOP_OK;
      if (count < most) break;
    }
    return status;
  }
  /// As above, but waits until the queue has `least` items, and appends fewer, but at least one,
  /// when the time is over, when the queue is closed, or after a stop. `least` is 1 to `max`, and
  /// not above the capacity. ALLSTOP_RESOURCE_EXHAUSTED: no vector holds so many. See
  /// allstop_queue_dequeue_least.
  allstop_status DequeueMany(std::vector<Item>& items, std::size_t max, std::size_t least,
                             Milliseconds timeout = kForever) const {
    if (!*this) return ALLSTOP_INVALID_HANDLE;
    if (least == 0 || least > max || least > capacity()) return ALLSTOP_INVALID_ARGUMENT;
    if (least > items.max_size() - items.size()) return ALLSTOP_RESOURCE_EXHAUSTED;
    std::vector<allstop_item> first(least);
    MakeRoom(items, least);  // before dequeuing: bad_alloc must not lose items
    std::size_t count = 0;
    const allstop_status status = allstop_queue_dequeue_least(&handle_, first.data(), least, least,
                                                              view::NotNegative(timeout), &count);
    for (std::size_t i = 0; i < count; ++i) items.emplace_back(first[i]);
    if (count == least && count < max) DequeueMany(items, max - count, Milliseconds(0));
    return status;
  }

  /// Closes the queue: no enqueue may begin from now on. With `cancel_pending_enqueues`, an
  /// enqueue that waits already returns ALLSTOP_CANCELLED. See allstop_queue_close.
  void Close(bool cancel_pending_enqueues = false) const noexcept {
    if (!*this) return;
    allstop_queue_close(&handle_, cancel_pending_enqueues ? ALLSTOP_CLOSE_CANCEL_PENDING : 0);
  }

  /// How many items are in the queue. A guess: other threads go on meanwhile.
  std::uint64_t size() const noexcept { return Info().item_count; }
  std::uint64_t capacity() const noexcept { return Info().capacity; }
  bool closed() const noexcept { return Info().closed != 0; }
  std::string name() const { return view::ToString(Info().name); }

 private:
  // Makes room for `more` items. A vector that grows at least doubles its capacity: reserve alone
  // would move all its items for each batch.
  static void MakeRoom(std::vector<Item>& items, std::size_t more) {
    const std::size_t needed = items.size() + more;
    if (needed > items.capacity()) items.reserve((std::max)(needed, 2 * items.capacity()));
  }

  allstop_queue_info Info() const noexcept {
    allstop_queue_info info = {};
    info.size = sizeof(info);
    if (*this) allstop_queue_read(&handle_, &info);
    return info;
  }

  allstop_queue handle_ = {};
};

}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_BOUNDED_QUEUE_HPP_
