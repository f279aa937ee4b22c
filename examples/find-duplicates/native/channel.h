// From the threads of a scan to the JavaScript thread that started it.
#ifndef FIND_DUPLICATES_CHANNEL_H_
#define FIND_DUPLICATES_CHANNEL_H_

#include <napi.h>

#include <chrono>
#include <memory>
#include <mutex>

#include "scan.h"

namespace find_duplicates {

// Collects reports and hands them over in one call of `on_report` at a time: the
// JavaScript thread is not woken again before it has answered.
//
// The threads may outlive the JavaScript environment (a worker that is
// terminated), and a thread-safe function that is used after its environment has
// ended aborts the process on some versions of Node. So the threads never touch
// it but under a mutex, and a cleanup hook closes it under the same mutex. From
// then on Send() does nothing.
class Channel {
 public:
  // On the JavaScript thread, whose event loop it keeps alive until the last
  // report has been delivered.
  static std::shared_ptr<Channel> Open(Napi::Env env, Napi::Function on_report);

  // Resolves once that is so; rejects with what `on_report` throws, which is not
  // called again then. On the JavaScript thread.
  Napi::Promise Done() const { return done_.Promise(); }

  // Any thread; does not block.
  void Send(Report report);

 private:
  explicit Channel(Napi::Env env) : done_(env) {}

  static void Deliver(Napi::Env env, Napi::Function on_report, Channel* channel, void*);
  static void OnEnvironmentEnd(Channel* channel);

  using Doorbell = Napi::TypedThreadSafeFunction<Channel, void, &Channel::Deliver>;
  using Hook = Napi::Env::CleanupHook<void (*)(Channel*), Channel>;

  // The JavaScript thread's own.
  Napi::Promise::Deferred done_;
  bool settled_ = false;
  Hook hook_;
  std::shared_ptr<Channel> self_;  // until the doorbell is gone, which points here

  std::mutex mutex_;  // guards all that follows
  Doorbell doorbell_;
  bool open_ = true;   // the doorbell may be used
  bool rung_ = false;  // and has been, without an answer yet
  std::chrono::steady_clock::time_point rung_at_;
  Report pending_;
};

}  // namespace find_duplicates

#endif  // FIND_DUPLICATES_CHANNEL_H_
