// A native thread that hands small items to JavaScript: through a BoundedQueue, or with one call
// of a thread-safe function for each item.
#include "queue.h"

#include <allstop/allstop_node.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_bounded_queue.hpp>
#include <cstdint>
#include <cstring>
#include <thread>

namespace {

constexpr std::size_t kItemSize = 16;

struct Arguments {
  Arguments(napi_env env, napi_callback_info info) {
    std::size_t count = 2;
    napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
    napi_get_value_int64(env, values[1], &items);
  }
  napi_value values[2] = {};
  std::int64_t items = 0;
};

// produce(queue, items): starts a thread that enqueues `items` items of 16 bytes.
napi_value Produce(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop_queue handle;
  const allstop_status status = allstop_queue_from_napi(env, arguments.values[0], &handle);
  if (status != ALLSTOP_OK) {
    allstop_queue_throw_status(env, status);
    return nullptr;
  }
  const allstop::BoundedQueue queue(handle);
  std::thread([queue, items = arguments.items] {
    char item[kItemSize] = {};
    for (std::int64_t i = 0; i < items; ++i) {
      std::memcpy(item, &i, sizeof(i));
      queue.Enqueue({item, kItemSize});
    }
  }).detach();
  return nullptr;
}

// block(queue, coord, enqueues): starts a registered thread that makes one enqueue or dequeue
// without a timeout.
napi_value Block(napi_env env, napi_callback_info info) {
  std::size_t count = 3;
  napi_value values[3] = {};
  bool enqueues = false;
  allstop_queue queue_handle;
  allstop_coordinator coord_handle;
  napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  napi_get_value_bool(env, values[2], &enqueues);
  if (allstop_queue_from_napi(env, values[0], &queue_handle) != ALLSTOP_OK) return nullptr;
  const allstop::BoundedQueue queue(queue_handle);
  if (allstop_from_napi(env, values[1], &coord_handle) != ALLSTOP_OK) return nullptr;
  allstop::Thread(allstop::Coordinator(coord_handle), "blocked", [queue, enqueues] {
    allstop::Item item;
    if (enqueues)
      queue.Enqueue("x");
    else
      queue.Dequeue(item);
  }).Detach();
  return nullptr;
}

void CallJs(napi_env env, napi_value function, void* /*context*/, void* data) {
  if (env != nullptr) {
    void* bytes = nullptr;
    napi_value buffer;
    napi_value item;
    napi_value receiver;
    napi_create_arraybuffer(env, kItemSize, &bytes, &buffer);
    std::memcpy(bytes, data, kItemSize);
    napi_create_typedarray(env, napi_uint8_array, kItemSize, buffer, 0, &item);
    napi_get_undefined(env, &receiver);
    napi_call_function(env, receiver, function, 1, &item, nullptr);
  }
  delete[] static_cast<char*>(data);
}

// call(function, items): the peer of the comparison, a thread-safe function that blocks its
// caller while 1024 calls are queued.
napi_value Call(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  napi_value name;
  napi_threadsafe_function function;
  napi_create_string_utf8(env, "items", NAPI_AUTO_LENGTH, &name);
  napi_create_threadsafe_function(env, arguments.values[0], nullptr, name, 1024, 1, nullptr,
                                  nullptr, nullptr, CallJs, &function);
  std::thread([function, items = arguments.items] {
    for (std::int64_t i = 0; i < items; ++i) {
      char* const item = new char[kItemSize]();
      std::memcpy(item, &i, sizeof(i));
      napi_call_threadsafe_function(function, item, napi_tsfn_blocking);
    }
    napi_release_threadsafe_function(function, napi_tsfn_release);
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
  set("produce", Produce);
  set("block", Block);
  set("call", Call);
}
