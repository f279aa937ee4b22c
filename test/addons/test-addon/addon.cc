// An addon as a third party would write it: native threads that share a Coordinator with
// JavaScript. Each thread does one job of a test, and waits at a gate where the test opens one.
#ifndef _WIN32
#include <poll.h>
#endif

#include <allstop/allstop_node.h>

#include <allstop/allstop.hpp>
#include <allstop/allstop_interruptible.hpp>
#include <allstop/allstop_threadsafe_function.hpp>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "flags.h"
#include "queue.h"
#include "results.h"
#include "signals.h"
#include "variable.h"

namespace {

std::string ToString(allstop_string text) {
  return text.data ? std::string(text.data, text.size) : "";
}

// "kind|language|thread|name|message|code|first line of the stack|native type"
std::string DescribeStop(const allstop::Coordinator& coord) {
  allstop_record* record = nullptr;
  allstop_stop_record(coord.handle(), &record);
  if (record == nullptr) return "none";
  allstop_record_info info = {};
  info.size = sizeof(info);
  allstop_record_read(coord.handle(), record, &info);
  const std::string stack = ToString(info.stack);
  std::string text = std::to_string(info.kind) + "|" + std::to_string(info.language) + "|" +
                     ToString(info.thread_name) + "|" + ToString(info.name) + "|" +
                     ToString(info.message) + "|" + ToString(info.code) + "|" +
                     stack.substr(0, stack.find('\n')) + "|" + ToString(info.native_type);
  allstop_record_release(coord.handle(), record);
  return text;
}

struct CustomError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The function of a thread: does the job of that name. `text` is the job's argument.
void Work(const allstop::Coordinator& coord, const std::string& job, const std::string& name,
          const std::string& text) {
  if (job == "gate") {
    PassGate(name);
  } else if (job == "throw") {
    PassGate(name);
    throw CustomError(text);
  } else if (job == "throw-int") {
    throw 42;
  } else if (job == "wait") {
    SetResult(name, coord.WaitForStop() ? "stopped" : "timed out");
  } else if (job == "poll") {
    while (!coord.ShouldStop()) {
    }
    SetResult(name, "stopped");
  } else if (job == "describe") {
    coord.WaitForStop();
    SetResult(name, DescribeStop(coord));
  } else if (job == "request") {
    PassGate(name);
    SetResult(name, std::to_string(coord.RequestStop()));
  } else if (job == "request-error") {  // text: name|message|code
    PassGate(name);
    const auto first = text.find('|');
    const auto second = text.find('|', first + 1);
    allstop::Error error;
    error.name = text.substr(0, first);
    error.message = text.substr(first + 1, second - first - 1);
    error.code = text.substr(second + 1);
    SetResult(name, std::to_string(coord.RequestStop(error)));
  } else if (job == "join") {
    SetResult(name, std::to_string(coord.Join()));
  }
}

std::string Text(napi_env env, napi_value value) {
  std::size_t size = 0;
  napi_get_value_string_utf8(env, value, nullptr, 0, &size);
  std::string text(size + 1, '\0');
  napi_get_value_string_utf8(env, value, text.data(), text.size(), &size);
  text.resize(size);
  return text;
}

napi_value Undefined(napi_env env) {
  napi_value value;
  napi_get_undefined(env, &value);
  return value;
}

napi_value ToJs(napi_env env, const std::string& text) {
  napi_value value;
  napi_create_string_utf8(env, text.c_str(), text.size(), &value);
  return value;
}

struct Arguments {
  Arguments(napi_env env, napi_callback_info info) : env(env) {
    napi_get_cb_info(env, info, &count, values, nullptr, nullptr);
  }
  std::string text(std::size_t index) const { return Text(env, values[index]); }
  napi_env env;
  std::size_t count = 8;
  napi_value values[8] = {};
};

// Gets the coordinator from the first argument. Returns false, with a JavaScript exception
// pending, if the argument is not a Coordinator.
bool Take(const Arguments& arguments, allstop::Coordinator& coord) {
  allstop_coordinator handle;
  const allstop_status status = allstop_from_napi(arguments.env, arguments.values[0], &handle);
  if (status != ALLSTOP_OK) {
    allstop_throw_status(arguments.env, status);
    return false;
  }
  coord = allstop::Coordinator(handle);
  return true;
}

// start(coord, job, name, text): starts a registered thread.
napi_value Start(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::Coordinator coord;
  if (!Take(arguments, coord)) return nullptr;
  const std::string job = arguments.text(1);
  const std::string name = arguments.text(2);
  const std::string text = arguments.count > 3 ? arguments.text(3) : "";
  allstop::Thread(coord, name, [=](const allstop::Coordinator& shared_coord) {
    Work(shared_coord, job, name, text);
  }).Detach();
  return Undefined(env);
}

// startUnregistered(coord, job, name, text): starts a thread that has a handle but is not
// registered.
napi_value StartUnregistered(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::Coordinator coord;
  if (!Take(arguments, coord)) return nullptr;
  const std::string job = arguments.text(1);
  const std::string name = arguments.text(2);
  const std::string text = arguments.count > 3 ? arguments.text(3) : "";
  std::thread([=] { Work(coord, job, name, text); }).detach();
  return Undefined(env);
}

// registerUnstarted(coord, name): registers a thread that is never started and never ends.
napi_value RegisterUnstarted(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::Coordinator coord;
  if (!Take(arguments, coord)) return nullptr;
  allstop_thread* thread = nullptr;
  allstop_thread_register(coord.handle(), allstop_str(arguments.text(1).c_str()),
                          ALLSTOP_THREAD_UNSTARTED, &thread);
  static std::vector<allstop_thread*>* const kept = new std::vector<allstop_thread*>;
  kept->push_back(thread);
  return Undefined(env);
}

std::string WithCauses(const allstop::Error& error) {
  const std::string text = error.name + " " + error.code + ": " + error.message;
  return error.cause ? text + " <- " + WithCauses(*error.cause) : text;
}

// Makes one call on a new native thread, and returns when that thread has ended.
std::string CallOnThread(const allstop::Coordinator& coord, const std::string& operation,
                         const std::string& text) {
  std::string result;
  std::thread([&] {
    if (operation == "shouldStop") result = coord.ShouldStop() ? "true" : "false";
    if (operation == "requestStop") result = std::to_string(coord.RequestStop());
    if (operation == "requestStopError") {
      allstop::Error error;
      error.name = text;
      error.message = "from native";
      result = std::to_string(coord.RequestStop(error));
    }
    if (operation == "waitForStop") {
      const bool stopped = coord.WaitForStop(allstop::Milliseconds(std::stod(text)));
      result = stopped ? "true" : "false";
    }
#ifndef _WIN32
    if (operation == "poll") {
      const allstop::Interruptible guard(coord);
      result = poll(nullptr, 0, std::stoi(text)) < 0 && errno == EINTR ? "interrupted" : "over";
    }
#endif
    if (operation == "clearStop") result = std::to_string(coord.ClearStop());
    if (operation == "join") {
      result = std::to_string(coord.Join(allstop::Milliseconds(std::stod(text))));
    }
    if (operation == "reportError") {  // TensorFlow's ReportStatus
      allstop::Error root;
      root.message = "the root";
      allstop::Error error;
      error.message = text;
      error.cause = std::make_shared<const allstop::Error>(root);
      result = std::to_string(coord.ReportError(error));
    }
    if (operation == "throwNested") {
      allstop::StopOnException(coord, [&] {
        try {
          throw std::out_of_range("sector 7");
        } catch (...) {
          std::throw_with_nested(std::runtime_error(text));
        }
      });
    }
    if (operation == "systemError") {
      allstop::StopOnException(coord, [&] {
        throw std::system_error(std::stoi(text), std::generic_category(), "read");
      });
    }
    if (operation == "errno" || operation == "errnoOfTypeError") {  // of the errno `text`
      allstop_error error = {};
      error.size = sizeof(error);
      error.error_number = static_cast<std::uint32_t>(std::stoul(text));
      error.code = allstop_str("ECUSTOM");
      if (operation == "errnoOfTypeError") error.name = allstop_str("TypeError");
      result = std::to_string(allstop_request_stop(coord.handle(), &error));
    }
    if (operation == "raiseAgain") {
      allstop::StopOnException(coord, [&] { allstop::RaiseRequestedException(coord); });
    }
    if (operation == "raise") {
      try {
        allstop::RaiseRequestedException(coord);
      } catch (const std::exception& error) {
        result = error.what();
      }
    }
    if (operation == "describe") result = DescribeStop(coord);
    if (operation == "causes") {  // of the first error and of each suppressed one
      const auto first = coord.FirstError();
      if (first) result = WithCauses(*first);
      for (const allstop::Error& error : coord.SuppressedErrors()) {
        result += "\n" + WithCauses(error);
      }
    }
  }).join();
  return result;
}

// call(coord, operation, text): makes that call on a native thread; see CallOnThread.
napi_value Call(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::Coordinator coord;
  if (!Take(arguments, coord)) return nullptr;
  const std::string text = arguments.count > 2 ? arguments.text(2) : "";
  return ToJs(env, CallOnThread(coord, arguments.text(1), text));
}

// blockingCallback(coord): a stop callback that blocks until standard input ends, which callbacks
// must not.
napi_value BlockingCallback(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::Coordinator coord;
  if (!Take(arguments, coord)) return nullptr;
  const auto wait = [] {
    while (std::fgetc(stdin) != EOF)
      ;
  };
  new allstop::StopCallback(coord, wait);  // for as long as the process lives
  return Undefined(env);
}

napi_value OpenGate(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  const std::lock_guard<std::mutex> lock(shared().mutex);
  shared().gates[arguments.text(0)] = true;
  shared().changed.notify_all();
  return Undefined(env);
}

// result(name): blocks until a thread has set the result of that name, for at most 20 s.
napi_value Result(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  const std::string name = arguments.text(0);
  std::unique_lock<std::mutex> lock(shared().mutex);
  const bool there = shared().changed.wait_for(lock, std::chrono::seconds(20),
                                               [&] { return shared().results.count(name) != 0; });
  return there ? ToJs(env, shared().results[name]) : Undefined(env);
}

// requestStop(coord): requests a stop from native code, on this JavaScript thread.
napi_value RequestStop(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::Coordinator coord;
  if (!Take(arguments, coord)) return nullptr;
  coord.RequestStop();
  return Undefined(env);
}

// hammer(coord, name, threads, rounds): starts unregistered threads that begin together and
// request |rounds| stops each; if `rounds` is positive they also clear each stop. When all have
// ended, the result `name` is "done".
napi_value Hammer(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop::Coordinator coord;
  if (!Take(arguments, coord)) return nullptr;
  const std::string name = arguments.text(1);
  std::int32_t threads = 0;
  std::int32_t rounds = 0;
  napi_get_value_int32(env, arguments.values[2], &threads);
  napi_get_value_int32(env, arguments.values[3], &rounds);
  auto ready = std::make_shared<std::atomic<int>>(threads);
  auto running = std::make_shared<std::atomic<int>>(threads);
  for (int i = 0; i < threads; ++i) {
    std::thread([=] {
      for (--*ready; *ready > 0;) {
      }
      for (int round = 0; round < (rounds < 0 ? -rounds : rounds); ++round) {
        coord.RequestStop();
        if (rounds > 0) coord.ClearStop();
      }
      if (--*running == 0) SetResult(name, "done");
    }).detach();
  }
  return Undefined(env);
}

// How often the environment of a `post` has ended, and its function refused calls by then.
std::atomic<int> environment_ends{0};
// The function of the last `post` of this JavaScript thread.
thread_local std::weak_ptr<allstop::ThreadsafeFunction> newest;

// post(function, name, threads): starts threads that call `function` with their number again
// and again, until its environment has ended. Then the result `name` is "refused".
napi_value Post(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  const std::string name = arguments.text(1);
  std::int32_t threads = 0;
  napi_get_value_int32(env, arguments.values[2], &threads);
  const auto held = std::make_shared<std::shared_ptr<allstop::ThreadsafeFunction>>();
  const auto function =
      allstop::ThreadsafeFunction::Create(env, arguments.values[0], "post", [held] {
        if (!(*held)->Post([](napi_env, napi_value) {})) ++environment_ends;
      });
  if (!function) return nullptr;
  *held = function;
  newest = function;
  auto running = std::make_shared<std::atomic<int>>(threads);
  for (int i = 0; i < threads; ++i) {
    std::thread([=] {
      const auto call = [i](napi_env own_env, napi_value own_function) {
        napi_value receiver;
        napi_value number;
        napi_get_undefined(own_env, &receiver);
        napi_create_int32(own_env, i, &number);
        napi_call_function(own_env, receiver, own_function, 1, &number, nullptr);
      };
      while (function->Post(call)) std::this_thread::yield();
      if (--*running == 0) SetResult(name, "refused");
    }).detach();
  }
  return Undefined(env);
}

// fill(function, limit): a native thread posts calls of `function` until the limit is reached; this
// thread waits meanwhile. Returns how many calls are queued, and what Post gives after Close of
// another function: "N 0".
napi_value Fill(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  std::uint32_t limit = 0;
  napi_get_value_uint32(env, arguments.values[1], &limit);
  const auto create = [&] {
    return allstop::ThreadsafeFunction::Create(env, arguments.values[0], "fill", {}, limit);
  };
  const auto call = [](napi_env own_env, napi_value function) {
    napi_value receiver;
    napi_get_undefined(own_env, &receiver);
    napi_call_function(own_env, receiver, function, 0, nullptr, nullptr);
  };
  int queued = 0;
  std::thread([&, function = create()] {
    while (function->Post(call) == allstop::ThreadsafeFunction::kPosted) ++queued;
    if (function->Post(call) != allstop::ThreadsafeFunction::kFull) queued = -1;
  }).join();
  const auto closed = create();
  closed->Close();
  const std::string text = std::to_string(queued) + " " + std::to_string(closed->Post(call));
  napi_value result;
  napi_create_string_utf8(env, text.data(), text.size(), &result);
  return result;
}

// closePosts(): closes the function of the last `post` of this thread.
napi_value ClosePosts(napi_env env, napi_callback_info) {
  if (const auto function = newest.lock()) function->Close();
  return Undefined(env);
}

napi_value EnvironmentEnds(napi_env env, napi_callback_info) {
  napi_value count;
  napi_create_int32(env, environment_ends, &count);
  return count;
}

// status(value): the status of allstop_from_napi for any value.
napi_value StatusOf(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  allstop_coordinator handle;
  const allstop_status status = allstop_from_napi(env, arguments.values[0], &handle);
  if (status == ALLSTOP_OK) allstop_release(&handle);
  napi_value value;
  napi_create_int32(env, status, &value);
  return value;
}

// throwStatus(function, status, message): throws as `function` does: 'allstop_throw',
// 'allstop_throw_status', 'allstop_queue_throw_status' or 'allstop_variable_throw_status'. Only the
// first one takes a message.
napi_value ThrowStatus(napi_env env, napi_callback_info info) {
  const Arguments arguments(env, info);
  const std::string function = arguments.text(0);
  std::int32_t status = 0;
  napi_get_value_int32(env, arguments.values[1], &status);
  if (function == "allstop_throw_status") allstop_throw_status(env, status);
  if (function == "allstop_queue_throw_status") allstop_queue_throw_status(env, status);
  if (function == "allstop_variable_throw_status") allstop_variable_throw_status(env, status);
  if (function == "allstop_throw") {
    const std::string message = arguments.count > 2 ? arguments.text(2) : "";
    allstop_throw(env, status, message.empty() ? nullptr : message.c_str());
  }
  return nullptr;
}

// decoy(): an object with a pointer and a type tag of this addon, not of allstop.
napi_value Decoy(napi_env env, napi_callback_info) {
  static const napi_type_tag tag = {1, 2};
  static int data = 0;
  napi_value object;
  napi_create_object(env, &object);
  napi_wrap(env, object, &data, nullptr, nullptr, nullptr);
  napi_type_tag_object(env, object, &tag);
  return object;
}

// external(): a JavaScript value that holds a bare pointer, as other addons make them.
napi_value External(napi_env env, napi_callback_info) {
  static int data = 0;
  napi_value value;
  napi_create_external(env, &data, nullptr, nullptr, &value);
  return value;
}

napi_value Init(napi_env env, napi_value exports) {
  const auto set = [&](const char* name, napi_callback function) {
    napi_value value;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value);
    napi_set_named_property(env, exports, name, value);
  };
  set("start", Start);
  set("startUnregistered", StartUnregistered);
  set("registerUnstarted", RegisterUnstarted);
  set("call", Call);
  set("blockingCallback", BlockingCallback);
  set("openGate", OpenGate);
  set("result", Result);
  set("requestStop", RequestStop);
  set("hammer", Hammer);
  set("post", Post);
  set("closePosts", ClosePosts);
  set("fill", Fill);
  set("environmentEnds", EnvironmentEnds);
  set("status", StatusOf);
  set("throwStatus", ThrowStatus);
  set("decoy", Decoy);
  set("external", External);
  InitFlags(env, exports);
  InitQueue(env, exports);
  InitSignals(env, exports);
  InitVariable(env, exports);
  return exports;
}

}  // namespace

NAPI_MODULE(test_addon, Init)
