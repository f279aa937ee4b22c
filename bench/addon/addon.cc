// A native thread that does one thing which wakes JavaScript, and notes the time of that on the
// clock of process.hrtime(). One thread serves all samples, so that no sample includes the start
// of a thread.
#include <allstop/allstop_node.h>

#include <allstop/allstop.hpp>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "queue.h"
#include "signal.h"

namespace {

// Never destroyed: its thread may still run when static destructors have run.
class LateThread {
 public:
  static LateThread& Get() {
    static LateThread* const thread = new LateThread;
    return *thread;
  }

  // Calls `function` on the thread 1 ms later, when JavaScript is back in its event loop.
  void Call(std::function<void()> function) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      next_ = std::move(function);
    }
    changed_.notify_all();
  }

  // Notes the current time. `function` calls this as the last step before it acts.
  void NoteStart() {
    const auto now = std::chrono::steady_clock::now().time_since_epoch();
    const std::lock_guard<std::mutex> lock(mutex_);
    start_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  }

  std::int64_t start_ns() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return start_ns_;
  }

 private:
  LateThread() {
    std::thread([this] { Run(); }).detach();
  }

  void Run() {
    for (;;) {
      std::function<void()> function;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] { return next_ != nullptr; });
        function = std::exchange(next_, nullptr);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      function();
    }
  }

  std::mutex mutex_;  // guards the members below
  std::condition_variable changed_;
  std::function<void()> next_;
  std::int64_t start_ns_ = 0;
};

// Gets the coordinator from the first argument. Returns false, with a JavaScript exception
// pending, if the argument is not a Coordinator.
bool Take(napi_env env, napi_callback_info info, allstop::Coordinator& coord) {
  std::size_t count = 1;
  napi_value value;
  allstop_coordinator handle;
  napi_get_cb_info(env, info, &count, &value, nullptr, nullptr);
  const allstop_status status = allstop_from_napi(env, value, &handle);
  if (status != ALLSTOP_OK) {
    allstop_throw_status(env, status);
    return false;
  }
  coord = allstop::Coordinator(handle);
  return true;
}

// requestStop(coord): has the late thread request the stop.
napi_value RequestStop(napi_env env, napi_callback_info info) {
  allstop::Coordinator coord;
  if (!Take(env, info, coord)) return nullptr;
  LateThread::Get().Call([coord = std::move(coord)] {
    LateThread::Get().NoteStart();
    coord.RequestStop();
  });
  return nullptr;
}

// runThread(coord): registers the late thread with `coord`, and has it end that registration.
napi_value RunThread(napi_env env, napi_callback_info info) {
  allstop::Coordinator coord;
  if (!Take(env, info, coord)) return nullptr;
  allstop_thread* thread = nullptr;
  allstop_thread_register(coord.handle(), allstop_str("late"), 0, &thread);
  LateThread::Get().Call([coord = std::move(coord), thread] {
    allstop_thread_enter(coord.handle(), thread);
    LateThread::Get().NoteStart();
    allstop_thread_done(coord.handle(), thread, nullptr);
  });
  return nullptr;
}

napi_threadsafe_function bare = nullptr;

// setBare(function): sets up the peer of the comparison, a bare napi_threadsafe_function.
napi_value SetBare(napi_env env, napi_callback_info info) {
  std::size_t count = 1;
  napi_value function;
  napi_value name;
  napi_get_cb_info(env, info, &count, &function, nullptr, nullptr);
  napi_create_string_utf8(env, "bare", NAPI_AUTO_LENGTH, &name);
  napi_create_threadsafe_function(env, function, nullptr, name, 0, 1, nullptr, nullptr, nullptr,
                                  nullptr, &bare);
  napi_unref_threadsafe_function(env, bare);
  return nullptr;
}

// callBare(): has the late thread call that function.
napi_value CallBare(napi_env /*env*/, napi_callback_info /*info*/) {
  LateThread::Get().Call([] {
    LateThread::Get().NoteStart();
    napi_call_threadsafe_function(bare, nullptr, napi_tsfn_nonblocking);
  });
  return nullptr;
}

// start(): the time that NoteStart noted last, in nanoseconds of process.hrtime().
napi_value Start(napi_env env, napi_callback_info /*info*/) {
  napi_value value;
  napi_create_bigint_int64(env, LateThread::Get().start_ns(), &value);
  return value;
}

napi_value Init(napi_env env, napi_value exports) {
  const auto set = [&](const char* name, napi_callback function) {
    napi_value value;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value);
    napi_set_named_property(env, exports, name, value);
  };
  set("requestStop", RequestStop);
  set("runThread", RunThread);
  set("setBare", SetBare);
  set("callBare", CallBare);
  set("start", Start);
  InitQueue(env, exports);
  InitSignal(env, exports);
  return exports;
}

}  // namespace

NAPI_MODULE(bench_addon, Init)
