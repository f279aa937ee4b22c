// How native code gets the attention of one JavaScript environment.
#ifndef ALLSTOP_BINDING_DOORBELL_H_
#define ALLSTOP_BINDING_DOORBELL_H_

#include <node_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "../include/allstop/allstop_threadsafe_function.hpp"

namespace allstop::binding {

// One thread-safe function per environment, rung at most once until answered, and
// silent for good once the environment ends. Native threads hold it by
// shared_ptr and may outlive the environment.
class Doorbell {
 public:
  // `on_ring` is called on the JavaScript thread, some time after a ring: with the
  // token if it was rung for one only, else without, to call TakeDirty. Null if the
  // runtime refuses.
  static std::shared_ptr<Doorbell> Create(napi_env env, napi_value on_ring);

  // Who rings for what.
  class Button {
   public:
    explicit Button(std::uint32_t token) : token_(token) {}

   private:
    friend class Doorbell;
    const std::uint32_t token_;
    // Guarded by the bell's mutex_. A list of its own, so that a ring needs no memory.
    bool is_dirty_ = false;
    std::shared_ptr<Button> next_;
  };

  // Notes that the attachment with the button's token has news, and rings. Any
  // thread; does not block; the caller holds no lock of the core.
  void Ring(const std::shared_ptr<Button>& button);

  // The tokens rung for that are not yet taken. JavaScript thread.
  std::vector<std::uint32_t> TakeDirty();

  // Whether the bell keeps the event loop alive. JavaScript thread.
  void SetReferenced(napi_env env, bool referenced);

  // From the environment's cleanup hook.
  void Close();
  ~Doorbell();

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

  static void Serve(napi_env env, napi_value on_ring, void* bell, void* data);

  std::shared_ptr<ThreadsafeFunction> function_;  // has a lock of its own, taken alone
  std::mutex mutex_;                              // last in the lock order; guards what follows
  bool rung_ = false;                             // or just about to be
  std::shared_ptr<Button> dirty_;  // each once, however often it is pressed; the latest first
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_DOORBELL_H_
