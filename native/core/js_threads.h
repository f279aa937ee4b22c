// The operating system's ids of the JavaScript threads that have loaded the addon: by them the
// kernel says what a thread waits for that does not return to JavaScript.
#ifndef ALLSTOP_CORE_JS_THREADS_H_
#define ALLSTOP_CORE_JS_THREADS_H_

#include <cstdint>
#include <map>
#include <mutex>

#include "made_once.h"

namespace allstop::core {

// Any thread. Never destroyed, since threads may outlive process.exit().
class JsThreads {
 public:
  struct Ids {
    std::uint32_t thread_id;  // Node's
    std::uint64_t os_thread_id;
  };

  static JsThreads& Get() {
    static MadeOnce<JsThreads> threads;
    return threads.Get([] { return new JsThreads; });
  }

  // From Setup of the environment with this id until its Close, both on its own thread.
  void Add(std::uint64_t environment, Ids ids) {
    const std::lock_guard<std::mutex> lock(mutex_);
    threads_[environment] = ids;
    ++Here();
  }
  void Remove(std::uint64_t environment) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (threads_.erase(environment) > 0) --Here();
  }
  // Whether the calling thread runs an environment that has loaded the addon, and that lives.
  static bool IsCurrent() { return Here() > 0; }
  // 0: no such thread has loaded the addon.
  std::uint64_t Find(std::uint32_t thread_id) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [environment, ids] : threads_) {
      if (ids.thread_id == thread_id) return ids.os_thread_id;
    }
    return 0;
  }

 private:
  static int& Here() {
    static thread_local int environments = 0;
    return environments;
  }

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Ids> threads_;  // guarded by mutex_
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_JS_THREADS_H_
