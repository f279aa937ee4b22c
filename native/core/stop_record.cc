#include "stop_record.h"

#include <utility>

#include "identity.h"

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace allstop::core {
namespace {

std::string OsThreadName(std::uint64_t thread_id) {
#if !defined(_WIN32)
  char name[64] = {};
  if (pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 && name[0] != '\0') return name;
#endif
  return "native-" + std::to_string(thread_id);
}

}  // namespace

Requester ThisNativeThread(Via via) {
  Requester requester;
  requester.language = Language::kNative;
  requester.via = via;
  requester.thread_id = OsThreadId();
  requester.thread_name = OsThreadName(requester.thread_id);
  requester.pid = ProcessId();
  return requester;
}

}  // namespace allstop::core
