// The Node side of the pool: one class, `Pool`.
#include <allstop/allstop_node.h>
#include <napi.h>

#include "pool.h"

namespace native_worker {
namespace {

// The reference is one more owner: the threads go on when this object is collected, or
// when the environment that it belongs to ends.
class JsPool : public Napi::ObjectWrap<JsPool> {
 public:
  static Napi::Function Class(Napi::Env env) {
    return DefineClass(
        env, "Pool",
        {InstanceMethod<&JsPool::Push>("push"), InstanceMethod<&JsPool::Close>("close"),
         InstanceMethod<&JsPool::GetStats>("stats")});
  }

  // Pool(coord, threads)
  explicit JsPool(const Napi::CallbackInfo& info) : ObjectWrap(info) {
    const Napi::Env env = info.Env();
    allstop_coordinator handle;
    const allstop_status status = allstop_from_napi(env, info[0], &handle);
    if (status != ALLSTOP_OK) {
      allstop_throw_status(env, status);
      throw env.GetAndClearPendingException();
    }
    const allstop::Coordinator coord(handle);
    pool_ = Pool::Start(coord, info[1].As<Napi::Number>());
  }

 private:
  void Push(const Napi::CallbackInfo& info) {
    pool_->Push(info[0].As<Napi::Number>().Int64Value());
  }
  void Close(const Napi::CallbackInfo&) { pool_->Close(); }
  Napi::Value GetStats(const Napi::CallbackInfo& info) {
    const Stats stats = pool_->GetStats();
    auto object = Napi::Object::New(info.Env());
    object["waiting"] = stats.waiting;
    object["queued"] = stats.queued;
    object["done"] = stats.done;
    object["total"] = stats.total;
    object["stoppedBy"] = stats.stopped_by;
    return object;
  }

  std::shared_ptr<Pool> pool_;
};

// Once for every environment that loads the addon: nothing of JavaScript is kept in
// globals, which all environments would share.
Napi::Object Init(Napi::Env env, Napi::Object exports) {
  exports["Pool"] = JsPool::Class(env);
  return exports;
}

}  // namespace

NODE_API_MODULE(native_worker, Init)

}  // namespace native_worker
