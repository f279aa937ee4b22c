#include "queue.h"

#include <allstop/allstop_node.h>

#include <algorithm>
#include <allstop/allstop.hpp>
#include <allstop/allstop_bounded_queue.hpp>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "results.h"

namespace {

// The bytes of an item, so that the tests can account for each one: its producer, and its number
// among the items of that producer.
struct Number {
  std::uint32_t producer;
  std::uint32_t sequence;
};

std::string Text(napi_env env, napi_value value) {
  std::size_t size = 0;
  napi_get_value_string_utf8(env, value, nullptr, 0, &size);
  std::string text(size + 1, '\0');
  napi_get_value_string_utf8(env, value, text.data(), text.size(), &size);
  text.resize(size);
  return text;
}

std::uint32_t Integer(napi_env env, napi_value value) {
  std::uint32_t number = 0;
  napi_get_value_uint32(env, value, &number);
  return number;
}

struct Arguments {
  Arguments(napi_env env, napi_callback_info info) : env(env) {
    std::size_t count = 5;
    napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  }
  // Gets the queue from the first argument. Returns false, with a JavaScript exception pending,
  // if the argument is not a BoundedQueue.
  bool Take(allstop::BoundedQueue& queue) const {
    allstop_queue handle;
    const allstop_status status = allstop_queue_from_napi(env, values[0], &handle);
    if (status != ALLSTOP_OK) {
      allstop_queue_throw_status(env, status);
      return false;
    }
    queue = allstop::BoundedQueue(handle);
    return true;
  }
  napi_env env;
  napi_value values[5] = {};
};

// queueStatus(value): the status of allstop_queue_from_napi for any value.
napi_value QueueStatus(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop_queue handle;
  const allstop_status status = allstop_queue_from_napi(env, arguments.values[0], &handle);
  if (status == ALLSTOP_OK) allstop_queue_release(&handle);
  napi_value value;
  napi_create_int32(env, status, &value);
  return value;
}

// queueProduce(queue, producer, count, name): starts a thread that enqueues the numbers from 0
// to `count` - 1, in batches of 1 to 5. The result `name`: "number of enqueued items|status".
napi_value QueueProduce(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::BoundedQueue queue;
  if (!arguments.Take(queue)) return nullptr;
  const std::uint32_t producer = Integer(env, arguments.values[1]);
  const std::uint32_t count = Integer(env, arguments.values[2]);
  const std::string name = Text(env, arguments.values[3]);
  std::thread([=] {
    std::uint32_t sent = 0;
    allstop_status status = ALLSTOP_OK;
    while (sent < count && status == ALLSTOP_OK) {
      allstop_item batch[5];
      const std::uint32_t size = (std::min)(count - sent, 1 + sent % 5);
      for (std::uint32_t i = 0; i < size; ++i) {
        const Number number = {producer, sent + i};
        allstop_item_copy(queue.handle(), &number, sizeof(number), &batch[i]);
      }
      std::size_t enqueued = 0;
      status = allstop_queue_enqueue_many(queue.handle(), batch, size, 1e9, &enqueued);
      sent += static_cast<std::uint32_t>(enqueued);
    }
    SetResult(name, std::to_string(sent) + "|" + std::to_string(status));
  }).detach();
  return nullptr;
}

// queueConsume(queue, seen, perProducer, name): starts a thread that dequeues until the end and
// counts each item in `seen`, an Int32Array of shared memory. The result `name`: "status|number
// of items that came out of order".
napi_value QueueConsume(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::BoundedQueue queue;
  if (!arguments.Take(queue)) return nullptr;
  void* data = nullptr;
  napi_get_typedarray_info(env, arguments.values[1], nullptr, nullptr, &data, nullptr, nullptr);
  auto* const seen = static_cast<std::int32_t*>(data);
  const std::uint32_t per_producer = Integer(env, arguments.values[2]);
  const std::string name = Text(env, arguments.values[3]);
  std::thread([=] {
    std::map<std::uint32_t, std::uint32_t> next;
    int out_of_order = 0;
    std::vector<allstop::Item> items;
    allstop_status status;
    for (std::size_t max = 1;; max = 1 + items.size() % 100) {
      const std::size_t least = 1 + max % (std::min<std::size_t>)(max, queue.capacity());
      items.clear();
      status = queue.DequeueMany(items, max, least);
      if (status != ALLSTOP_OK) break;
      for (const allstop::Item& item : items) {
        Number number;
        std::memcpy(&number, item.bytes().data(), sizeof(number));
        __atomic_fetch_add(&seen[number.producer * per_producer + number.sequence], 1,
                           __ATOMIC_RELAXED);
        if (number.sequence < next[number.producer]) ++out_of_order;
        next[number.producer] = number.sequence + 1;
      }
    }
    SetResult(name, std::to_string(status) + "|" + std::to_string(out_of_order));
  }).detach();
  return nullptr;
}

// queueBlock(queue, operation, name): starts a thread that makes one call without a timeout,
// "enqueue" or "dequeue". The result `name`: "status|dequeued bytes".
napi_value QueueBlock(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::BoundedQueue queue;
  if (!arguments.Take(queue)) return nullptr;
  const std::string operation = Text(env, arguments.values[1]);
  const std::string name = Text(env, arguments.values[2]);
  std::thread([=] {
    allstop::Item item;
    const allstop_status status =
        operation == "enqueue" ? queue.Enqueue("from a native thread") : queue.Dequeue(item);
    SetResult(name, std::to_string(status) + "|" + std::string(item.bytes()));
  }).detach();
  return nullptr;
}

// queueFill(queue, count, size): starts a thread that enqueues `count` items of `size` bytes
// each, without a copy, and then closes the queue.
napi_value QueueFill(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::BoundedQueue queue;
  if (!arguments.Take(queue)) return nullptr;
  const std::uint32_t count = Integer(env, arguments.values[1]);
  const std::uint32_t size = Integer(env, arguments.values[2]);
  std::thread([=] {
    for (std::uint32_t i = 0; i < count; ++i) {
      auto* const bytes = new unsigned char[size];
      std::memset(bytes, static_cast<int>(i), size);
      const auto release = [](void* data, std::size_t, void*) {
        delete[] static_cast<unsigned char*>(data);
      };
      if (queue.Enqueue(allstop::Item(bytes, size, release)) != ALLSTOP_OK) return;
    }
    queue.Close();
  }).detach();
  return nullptr;
}

}  // namespace

void InitQueue(napi_env env, napi_value exports) {
  const auto set = [&](const char* name, napi_callback function) {
    napi_value value;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value);
    napi_set_named_property(env, exports, name, value);
  };
  set("queueStatus", QueueStatus);
  set("queueProduce", QueueProduce);
  set("queueConsume", QueueConsume);
  set("queueBlock", QueueBlock);
  set("queueFill", QueueFill);
}
