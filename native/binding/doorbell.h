// How native code gets the attention of one JavaScript environment.
#ifndef ALLSTOP_BINDING_DOORBELL_H_
#define ALLSTOP_BINDING_DOORBELL_H_

#include <node_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>

namespace allstop::binding {

// One thread-safe function per environment, rung at most once until answered, and
// silent for good once the environment ends. Native threads hold it by
// shared_ptr and may outlive the environment.
//
// Node 20 and 22 abort when a thread touches a thread-safe function whose worker
// has ended, so it is only ever touched under mutex_, and never after Close.
class Doorbell : public std::enable_shared_from_this<Doorbell> {
 public:
  // `on_ring` is called on the JavaScript thread, some time after a ring. Null
  // if the runtime refuses.
  static std::shared_ptr<Doorbell> Create(napi_env env, napi_value on_ring);

  // Notes that the attachment with this token has news, and rings. Any thread;
  // does not block; the caller holds no lock of the core.
  void Ring(std::uint32_t token);

  // The tokens rung for since the last call. JavaScript thread.
  std::set<std::uint32_t> TakeDirty();

  // Whether the bell keeps the event loop alive. JavaScript thread.
  void SetReferenced(napi_env env, bool referenced);

  // From the environment's cleanup hook.
  void Close();

  // While one lives, the calling thread only notes and does not ring: it is the
  // bell's own JavaScript thread, and takes the dirty tokens when it is done.
  class Quiet {
   public:
    explicit Quiet(const Doorbell& bell) : outer_(here_) { here_ = &bell; }
    ~Quiet() { here_ = outer_; }
    Quiet(const Quiet&) = delete;
    Quiet& operator=(const Quiet&) = delete;

   private:
    friend class Doorbell;
    const Doorbell* const outer_;
    static thread_local const Doorbell* here_;
  };

 private:
  Doorbell() = default;

  static void Answer(napi_env env, napi_value on_ring, void* context, void* data);
  static void Finalize(napi_env env, void* data, void* context);

  std::mutex mutex_;                             // last in the lock order; guards what follows
  napi_threadsafe_function function_ = nullptr;  // null once closed
  bool rung_ = false;
  // A set: while JavaScript is busy, threads may ring without end.
  std::set<std::uint32_t> dirty_;
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_DOORBELL_H_
