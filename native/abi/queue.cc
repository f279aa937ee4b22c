// The queue functions of the table in include/allstop/allstop_queue.h, over the core.
#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "../core/deadline.h"
#include "table.h"

static_assert(sizeof(allstop_item) == 4 * sizeof(void*) + ALLSTOP_ITEM_IN_PLACE);
static_assert(offsetof(allstop_item, in_place) == 4 * sizeof(void*));
static_assert(offsetof(allstop_queue_options, name) == 8);
static_assert(offsetof(allstop_queue_options, coordinator) == 8 + sizeof(allstop_string));
static_assert(sizeof(allstop_queue_options) == offsetof(allstop_queue_options, capacity) + 8);
static_assert(offsetof(allstop_queue_info, item_count) == 16);
static_assert(sizeof(allstop_queue_info) == 32 + sizeof(allstop_string));

namespace allstop::abi {
namespace {

using core::BoundedQueue;
using core::Deadline;
using core::QueueItem;

static_assert(ALLSTOP_ITEM_IN_PLACE == QueueItem::kInPlace);
static_assert(ALLSTOP_CODEC_STRUCTURED ==
              static_cast<std::uint32_t>(BoundedQueue::Codec::kStructured));
static_assert(ALLSTOP_CODEC_BYTES == static_cast<std::uint32_t>(BoundedQueue::Codec::kBytes));

BoundedQueue& FromState(allstop_queue_state* queue) {
  return *reinterpret_cast<BoundedQueue*>(queue);
}

// The most items that are converted between allstop_item and QueueItem at a time.
constexpr std::size_t kBatch = 32;

// Longer ones JavaScript could not be given: Node ends the process for such a Uint8Array.
constexpr std::size_t kLongestItem = 0xFFFFFFFF;

bool IsKnown(const allstop_item& item) {
  return item.size <= (item.release != nullptr ? kLongestItem : ALLSTOP_ITEM_IN_PLACE);
}

QueueItem FromC(allstop_item& item) {
  if (item.release == nullptr) return QueueItem::InPlace(item.in_place, item.size);
  QueueItem taken(item.data, item.size, item.release, item.context);
  item.size = 0;
  item.release = nullptr;
  return taken;
}

void ToC(QueueItem& item, allstop_item* given) {
  given->size = item.size();
  given->release = item.release();
  if (given->release == nullptr) {
    std::memcpy(given->in_place, item.data(), ALLSTOP_ITEM_IN_PLACE);
  } else {
    given->data = item.data();
    given->context = item.context();
  }
  item.Disown();
}

// Does not read the clock for a timeout of 0.
Deadline After(double timeout_ms) {
  return timeout_ms == 0 ? Deadline::Passed() : Deadline::After(timeout_ms);
}

bool IsOfBytes(const BoundedQueue& queue) {
  return queue.options().codec == BoundedQueue::Codec::kBytes;
}

// `enqueue` has the arguments and the result of BoundedQueue::PartialEnqueue::Add.
template <std::size_t capacity, typename Enqueue>
allstop_status EnqueueBatch(Enqueue enqueue, allstop_item* items, std::size_t size,
                            std::size_t& enqueued) {
  QueueItem batch[capacity];
  for (std::size_t i = 0; i < size; ++i) batch[i] = FromC(items[i]);
  // Gives the items that were not enqueued back to the caller, also if `enqueue` throws.
  struct GiveBack {
    QueueItem* batch;
    allstop_item* items;
    const std::size_t size;
    const std::size_t& enqueued;
    ~GiveBack() {
      for (std::size_t i = 0; i < enqueued; ++i) items[i].size = 0;
      for (std::size_t i = enqueued; i < size; ++i) ToC(batch[i], &items[i]);
    }
  } const give_back{batch, items, size, enqueued};
  return static_cast<allstop_status>(enqueue(batch, size, enqueued));
}

// Sets `enqueued`, which is 0 before. All batches are one enqueue: a close lets the later ones in
// if an earlier one has waited.
allstop_status EnqueueMany(BoundedQueue& queue, allstop_item* items, std::size_t count,
                           const Deadline& deadline, std::size_t& enqueued) {
  BoundedQueue::PartialEnqueue all(queue, deadline);
  const auto enqueue = [&](QueueItem* batch, std::size_t size, std::size_t& went_in) {
    return all.Add(batch, size, went_in);
  };
  allstop_status status = ALLSTOP_OK;
  while (status == ALLSTOP_OK && enqueued < count) {
    const std::size_t size = std::min(count - enqueued, kBatch);
    std::size_t went_in = 0;
    status = EnqueueBatch<kBatch>(enqueue, items + enqueued, size, went_in);
    enqueued += went_in;
  }
  return status;
}

template <std::size_t capacity>
allstop_status DequeueBatch(BoundedQueue& queue, allstop_item* items, std::size_t max,
                            const Deadline& deadline, std::size_t& dequeued,
                            std::size_t least = 1) {
  QueueItem batch[capacity];
  const core::Status status = queue.Dequeue(batch, max, deadline, dequeued, least);
  for (std::size_t i = 0; i < dequeued; ++i) ToC(batch[i], &items[i]);
  return static_cast<allstop_status>(status);
}

// Sets `dequeued`, which is 0 before.
allstop_status DequeueLeast(BoundedQueue& queue, allstop_item* items, std::size_t max,
                            std::size_t least, double timeout_ms, std::size_t& dequeued) {
  Deadline deadline = After(timeout_ms);
  if (least > kBatch) {
    std::vector<QueueItem> batch(least);
    const core::Status status = queue.Dequeue(batch.data(), least, deadline, dequeued, least);
    for (std::size_t i = 0; i < dequeued; ++i) ToC(batch[i], &items[i]);
    if (dequeued < least) return static_cast<allstop_status>(status);
    least = 1;
    deadline = Deadline::Passed();  // take the rest without waiting
  }
  while (dequeued < max) {
    const std::size_t size = std::min(max - dequeued, kBatch);
    std::size_t came_out = 0;
    const allstop_status status =
        DequeueBatch<kBatch>(queue, items + dequeued, size, deadline, came_out, least);
    dequeued += came_out;
    if (dequeued == 0) return status;
    if (came_out < size) break;
    least = 1;
    deadline = Deadline::Passed();
  }
  return ALLSTOP_OK;
}

}  // namespace

allstop_status QueueCreate(const allstop_queue_options* given, allstop_queue_state** queue) {
  if (given == nullptr || given->size < kSmallestStruct) return ALLSTOP_INVALID_ARGUMENT;
  return ExceptionsToStatus([&] {
    const allstop_queue_options options = Read(*given);
    if (options.capacity == 0) return ALLSTOP_INVALID_ARGUMENT;
    BoundedQueue::Options own;
    own.name = ToString(options.name);
    if (own.name.empty()) own.name = "native";
    own.capacity = options.capacity;
    own.codec = BoundedQueue::Codec::kBytes;
    if (options.coordinator != nullptr) {
      own.coordinator = abi::FromState(options.coordinator).shared_from_this();
    }
    const auto made = BoundedQueue::Create(std::move(own));
    made->Retain();
    *queue = ToState(made.get());
    return ALLSTOP_OK;
  });
}

void QueueRetain(allstop_queue_state* queue) { FromState(queue).Retain(); }

void QueueRelease(allstop_queue_state* queue) { FromState(queue).Release(); }

allstop_status QueueEnqueue(allstop_queue_state* state, allstop_item* items, std::size_t count,
                            double timeout_ms, std::size_t* enqueued) {
  *enqueued = 0;
  if (!(timeout_ms >= 0)) return ALLSTOP_INVALID_ARGUMENT;
  for (std::size_t i = 0; i < count; ++i) {
    if (!IsKnown(items[i])) return ALLSTOP_INVALID_ARGUMENT;
  }
  BoundedQueue& queue = FromState(state);
  if (!IsOfBytes(queue)) return ALLSTOP_FAILED_PRECONDITION;
  if (count == 1 && items[0].release == nullptr &&
      queue.QuickEnqueue(items[0].in_place, items[0].size)) {
    items[0].size = 0;
    *enqueued = 1;
    return ALLSTOP_OK;
  }
  return ExceptionsToStatus([&] {
    if (count == 1) {
      const auto enqueue = [&](QueueItem* batch, std::size_t size, std::size_t& went_in) {
        return queue.Enqueue(batch, size, After(timeout_ms), went_in);
      };
      return EnqueueBatch<1>(enqueue, items, 1, *enqueued);
    }
    return EnqueueMany(queue, items, count, After(timeout_ms), *enqueued);
  });
}

allstop_status QueueDequeue(allstop_queue_state* state, allstop_item* items, std::size_t max,
                            double timeout_ms, std::size_t* dequeued) {
  *dequeued = 0;
  if (!(timeout_ms >= 0) || max == 0) return ALLSTOP_INVALID_ARGUMENT;
  BoundedQueue& queue = FromState(state);
  if (!IsOfBytes(queue)) return ALLSTOP_FAILED_PRECONDITION;
  if (max == 1 && queue.QuickDequeue([&](QueueItem& item) { ToC(item, items); })) {
    *dequeued = 1;
    return ALLSTOP_OK;
  }
  return ExceptionsToStatus([&] {
    if (max == 1) return DequeueBatch<1>(queue, items, 1, After(timeout_ms), *dequeued);
    return DequeueLeast(queue, items, max, 1, timeout_ms, *dequeued);
  });
}

allstop_status QueueDequeueLeast(allstop_queue_state* state, allstop_item* items, std::size_t max,
                                 std::size_t least, double timeout_ms, std::size_t* dequeued) {
  *dequeued = 0;
  if (!(timeout_ms >= 0) || least == 0 || least > max) return ALLSTOP_INVALID_ARGUMENT;
  BoundedQueue& queue = FromState(state);
  if (!IsOfBytes(queue)) return ALLSTOP_FAILED_PRECONDITION;
  if (least > queue.options().capacity) return ALLSTOP_INVALID_ARGUMENT;
  return ExceptionsToStatus(
      [&] { return DequeueLeast(queue, items, max, least, timeout_ms, *dequeued); });
}

allstop_status QueueClose(allstop_queue_state* queue, std::uint32_t flags) {
  if ((flags & ~ALLSTOP_CLOSE_CANCEL_PENDING) != 0) return ALLSTOP_INVALID_ARGUMENT;
  return ExceptionsToStatus([&] {
    FromState(queue).Close((flags & ALLSTOP_CLOSE_CANCEL_PENDING) != 0);
    return ALLSTOP_OK;
  });
}

allstop_status QueueInfo(allstop_queue_state* state, allstop_queue_info* info) {
  if (info->size < kSmallestStruct) return ALLSTOP_INVALID_ARGUMENT;
  return ExceptionsToStatus([&] {
    const BoundedQueue& queue = FromState(state);
    allstop_queue_info full = {};
    full.size = info->size;
    full.codec = static_cast<std::uint32_t>(queue.options().codec);
    full.closed = queue.closed() ? 1 : 0;
    full.item_count = queue.size();
    full.capacity = queue.options().capacity;
    full.name = {queue.options().name.data(), queue.options().name.size()};
    std::memcpy(info, &full, std::min<std::size_t>(info->size, sizeof(full)));
    return ALLSTOP_OK;
  });
}

allstop_status ItemCopy(const void* data, std::size_t size, allstop_item* item) {
  return ExceptionsToStatus([&] {
    QueueItem copy(data, size);
    ToC(copy, item);
    return ALLSTOP_OK;
  });
}

}  // namespace allstop::abi
