// The Node side of the scan: one function, `scan`.
#include <napi.h>

#include <utility>

#include "allstop/allstop_node.h"
#include "channel.h"
#include "scan.h"

namespace find_duplicates {
namespace {

// scan(coordinator, directory, { hashers, strict }, onReport): Promise<void>
//
// The promise resolves when all threads of the scan have reported their last. What
// they throw goes to the coordinator, not here; what onReport throws comes here.
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

  if (!info[1].IsString() || !info[2].IsObject() || !info[3].IsFunction()) {
    throw Napi::TypeError::New(env, "scan(coordinator, directory, options, onReport)");
  }
  const auto given = info[2].As<Napi::Object>();
  ScanOptions options;
  options.directory = info[1].As<Napi::String>();
  options.hashers = given.Get("hashers").ToNumber().Uint32Value();
  options.strict = given.Get("strict").ToBoolean();

  const auto channel = Channel::Open(env, info[3].As<Napi::Function>());
  StartScan(coord, std::move(options),
            [channel](Report report) { channel->Send(std::move(report)); });
  return channel->Done();
}

Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports["scan"] = Napi::Function::New(env, ScanDirectory, "scan");
  return exports;
}

}  // namespace

NODE_API_MODULE(find_duplicates, Init)

}  // namespace find_duplicates
