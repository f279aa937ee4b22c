// The JavaScript threads that have loaded the addon: the operating system's ids of them, by which
// the kernel says what a thread waits for that does not return to JavaScript; and which of them
// stay.
#ifndef ALLSTOP_CORE_JS_THREADS_H_
#define ALLSTOP_CORE_JS_THREADS_H_

#include <cstdint>
#include <map>
#include <mutex>
#include <set>

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
    staying_.insert(ids.thread_id);
    ++Here();
  }
  void Remove(std::uint64_t environment) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (threads_.erase(environment) > 0) --Here();
  }
  // The thread with this id of Node's exits, or has ended. Whether none stays: true for one of the
  // threads that exit at the same time.
  bool Exits(std::uint32_t thread_id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    staying_.erase(thread_id);
    return staying_.empty();
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
  // Guarded by mutex_.
  std::map<std::uint64_t, Ids> threads_;  // by environment, of which a thread may have several
  std::set<std::uint32_t> staying_;       // those that do not exit yet
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_JS_THREADS_H_
