// The Node side of the scan: one function, `scan`.
#include <napi.h>

#include <utility>

#include "allstop/allstop_node.h"
#include "scan.h"

namespace find_duplicates {
namespace {

// scan(coordinator, directory, { hashers, strict }, queues): () => progress
//
// Returns at once. What the threads throw goes to the coordinator, what they find to the
// queues, which they close at the end.
Napi::Value ScanDirectory(const Napi::CallbackInfo& info) {
  const Napi::Env env = info.Env();
  // The Coordinator object itself: no wrapper, no handle to pass around.
  allstop_coordinator handle;
  const allstop_status status = allstop_from_napi(env, info[0], &handle);
  if (status != ALLSTOP_OK) {
    allstop_throw_status(env, status);
    return env.Undefined();
  }
  const allstop::Coordinator coord(handle);

  if (!info[1].IsString() || !info[2].IsObject() || !info[3].IsArray()) {
    throw Napi::TypeError::New(env, "scan(coordinator, directory, options, queues)");
  }
  const auto given = info[2].As<Napi::Object>();
  ScanOptions options;
  options.directory = info[1].As<Napi::String>();
  options.hashers = given.Get("hashers").ToNumber().Uint32Value();
  options.strict = given.Get("strict").ToBoolean();
  const auto queues = info[3].As<Napi::Array>();
  for (std::uint32_t i = 0; i < queues.Length(); ++i) {
    allstop_queue queue;
    const allstop_status is_queue = allstop_queue_from_napi(env, queues.Get(i), &queue);
    if (is_queue != ALLSTOP_OK) {
      allstop_queue_throw_status(env, is_queue);
      return env.Undefined();
    }
    options.results.emplace_back(queue);
  }
  if (options.results.empty()) throw Napi::RangeError::New(env, "scan() needs a queue");

  return Napi::Function::New(
      env, [progress = StartScan(coord, std::move(options))](const Napi::CallbackInfo& asked) {
        auto now = Napi::Object::New(asked.Env());
        now["files"] = static_cast<double>(progress->files);
        now["bytesToHash"] = static_cast<double>(progress->bytes_to_hash);
        now["bytesHashed"] = static_cast<double>(progress->bytes_hashed);
        return now;
      });
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports["scan"] = Napi::Function::New(env, ScanDirectory, "scan");
  return exports;
}

}  // namespace

NODE_API_MODULE(find_duplicates, Init)

}  // namespace find_duplicates
