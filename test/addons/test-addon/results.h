// Gates at which native threads wait until a test opens them, and the results of those threads.
#ifndef TEST_ADDON_RESULTS_H_
#define TEST_ADDON_RESULTS_H_

#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>

// Never destroyed: native threads may still run when static destructors have run.
struct Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::string, bool> gates;           // by name; true: open
  std::map<std::string, std::string> results;  // by thread name
};

inline Shared& shared() {
  static Shared* const instance = new Shared;
  return *instance;
}

inline void PassGate(const std::string& name) {
  std::unique_lock<std::mutex> lock(shared().mutex);
  shared().changed.wait(lock, [&] { return shared().gates[name]; });
}

inline void SetResult(const std::string& name, std::string text) {
  const std::lock_guard<std::mutex> lock(shared().mutex);
  shared().results[name] = std::move(text);
  shared().changed.notify_all();
}

#endif  // TEST_ADDON_RESULTS_H_
