// The doorbell: how native code gets the attention of one JavaScript environment.
#ifndef ALLSTOP_BINDING_DOORBELL_H_
#define ALLSTOP_BINDING_DOORBELL_H_

#include <node_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "../include/allstop/allstop_threadsafe_function.hpp"

namespace allstop::binding {

// One thread-safe function per environment. It is called at most once until JavaScript has served
// the ring, and not at all after the environment has ended. Native threads hold the doorbell by
// shared_ptr and may outlive the environment.
class Doorbell {
 public:
  // `on_ring` is called on the JavaScript thread, some time after a ring. If one token is dirty,
  // `on_ring` gets it; if several are, it gets no argument and must call TakeDirty. Returns null
  // if the runtime cannot create a thread-safe function.
  static std::shared_ptr<Doorbell> Create(napi_env env, napi_value on_ring);

  // Rings the doorbell for one token: that of a NativeAttachment or a NativeQueue.
  class Button {
   public:
    explicit Button(std::uint64_t token) : token_(token) {}

   private:
    friend class Doorbell;
    const std::uint64_t token_;
    // Guarded by Doorbell::mutex_. The dirty buttons form a linked list, so that a ring needs no
    // memory.
    bool is_dirty_ = false;         // in the list
    std::shared_ptr<Button> next_;  // in the list
  };

  // Marks the button's token as dirty, and rings. Any thread; does not block. The caller must not
  // hold a lock of the core.
  void Ring(const std::shared_ptr<Button>& button, bool even_if_quiet = false);

  // Returns the dirty tokens in the order of their rings; they are clean then. JavaScript thread.
  std::vector<std::uint64_t> TakeDirty();

  // Sets whether the doorbell keeps the event loop alive. JavaScript thread.
  void SetReferenced(napi_env env, bool referenced);

  // Called by the environment's cleanup hook.
  void Close();
  ~Doorbell();

  // While a Quiet exists, Ring on the thread that made it marks tokens and does not ring. That
  // thread is the doorbell's JavaScript thread, and calls TakeDirty after the native call.
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

  std::shared_ptr<ThreadsafeFunction> function_;  // called with no lock held: it locks
  std::mutex mutex_;                              // last in the lock order
  // Guarded by mutex_.
  bool rung_ = false;              // a ring is on its way or about to be, and not served yet
  std::shared_ptr<Button> dirty_;  // the list of dirty buttons, the latest first
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_DOORBELL_H_
