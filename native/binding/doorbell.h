// How native code gets the attention of one JavaScript environment.
#ifndef ALLSTOP_BINDING_DOORBELL_H_
#define ALLSTOP_BINDING_DOORBELL_H_

#include <node_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace allstop::binding {

// One thread-safe function per environment, rung at most once until answered, and
// silent for good once the environment ends. Native threads hold it by
// shared_ptr and may outlive the environment.
//
// Node 20 and 22 abort when a thread touches a thread-safe function whose worker
// has ended, so it is only ever touched under a mutex, and never after Close. The
// answer takes another one: it comes while the ring is still on its way back.
class Doorbell : public std::enable_shared_from_this<Doorbell> {
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
    bool is_dirty_ = false;  // guarded by the bell's news_mutex_
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

  std::mutex function_mutex_;                    // guards the function and its calls
  napi_threadsafe_function function_ = nullptr;  // null once closed
  std::mutex news_mutex_;                        // last in the lock order; guards what follows
  bool rung_ = false;                            // or just about to be
  std::vector<std::shared_ptr<Button>> dirty_;   // each once, however often it is pressed
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_DOORBELL_H_
