// A fault point before each lock and after each unlock of a std::mutex, in a build with
// ALLSTOP_FAULT_INJECTION. The linker calls these functions in place of the system's (--wrap), so
// the core's code names no such point: its name is the place of the call in the binary.
#include <pthread.h>

#include <cstdint>

#include "core/fault_point.h"

// The names are the linker's.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)
extern "C" {

extern const char __ehdr_start __attribute__((visibility("hidden")));  // where the binary begins

int __real_pthread_mutex_lock(pthread_mutex_t* mutex);
int __real_pthread_mutex_unlock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex);
int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex);

int __wrap_pthread_mutex_lock(pthread_mutex_t* mutex) {
  const auto caller = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  allstop::core::PassMutexPoint(caller - reinterpret_cast<std::uintptr_t>(&__ehdr_start));
  return __real_pthread_mutex_lock(mutex);
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t* mutex) {
  const auto caller = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  const int result = __real_pthread_mutex_unlock(mutex);
  allstop::core::PassMutexPoint(caller - reinterpret_cast<std::uintptr_t>(&__ehdr_start));
  return result;
}

}  // extern "C"
// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
