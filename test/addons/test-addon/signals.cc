#include "signals.h"

#if defined(_WIN32)

void InitSignals(napi_env, napi_value) {}

#else

#include <signal.h>

#include <atomic>
#include <cstdint>

namespace {

std::atomic<std::uint32_t> taken{0};
std::atomic<bool> calls_previous{false};
int taken_signal = 0;
struct sigaction previous;

void Handle(int signal, siginfo_t* info, void* context) {
  ++taken;
  if (!calls_previous) return;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  }
}

// takeSignal(number, callsPrevious): installs the handler, once in a process.
napi_value TakeSignal(napi_env env, napi_callback_info info) {
  std::size_t count = 2;
  napi_value arguments[2];
  napi_get_cb_info(env, info, &count, arguments, nullptr, nullptr);
  bool calls = false;
  napi_get_value_int32(env, arguments[0], &taken_signal);
  napi_get_value_bool(env, arguments[1], &calls);
  calls_previous = calls;
  struct sigaction action = {};
  action.sa_sigaction = Handle;
  action.sa_flags = SA_SIGINFO | SA_RESTART;
  sigaction(taken_signal, nullptr, &previous);
  sigaction(taken_signal, &action, nullptr);
  return nullptr;
}

// giveSignalBack(): installs the handler that takeSignal() has replaced, over any that came since.
napi_value GiveSignalBack(napi_env, napi_callback_info) {
  sigaction(taken_signal, &previous, nullptr);
  return nullptr;
}

// signalsTaken(): how often the handler was called.
napi_value SignalsTaken(napi_env env, napi_callback_info) {
  napi_value number;
  napi_create_uint32(env, taken, &number);
  return number;
}

}  // namespace

void InitSignals(napi_env env, napi_value exports) {
  const auto set = [&](const char* name, napi_callback function) {
    napi_value value;
    napi_create_function(env, name, NAPI_AUTO_LENGTH, function, nullptr, &value);
    napi_set_named_property(env, exports, name, value);
  };
  set("takeSignal", TakeSignal);
  set("giveSignalBack", GiveSignalBack);
  set("signalsTaken", SignalsTaken);
}

#endif
