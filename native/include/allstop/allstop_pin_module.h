/**
 * @file allstop_pin_module.h
 * Keeps an addon in memory until the process ends. Part of allstop_node.h, which includes it.
 */
#ifndef ALLSTOP_ALLSTOP_PIN_MODULE_H_
#define ALLSTOP_ALLSTOP_PIN_MODULE_H_

#include <stddef.h>

#if defined(_WIN32)
#ifndef NOMINMAX
#define NOMINMAX /* or windows.h defines macros that break std::min and std::max */
#endif
#ifndef WIN32_LEAN_AND_MEAN
#define WIN32_LEAN_AND_MEAN
#endif
#include <windows.h>
#else
#include <dlfcn.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Every libc of Linux and macOS has dladdr, but its headers hide the declaration from strict C
 * and strict POSIX. */
#if (defined(__linux__) && !defined(__USE_GNU) && !defined(_GNU_SOURCE) && \
     (defined(__GLIBC__) || !defined(_BSD_SOURCE))) ||                     \
    (defined(__APPLE__) && defined(_POSIX_C_SOURCE) && !defined(_DARWIN_C_SOURCE))
typedef struct allstop_dl_info {
  const char *dli_fname;
  void *dli_fbase;
  const char *dli_sname;
  void *dli_saddr;
} allstop_dl_info;
extern int dladdr(const void *address, allstop_dl_info *info);
#elif !defined(_WIN32)
typedef Dl_info allstop_dl_info;
#endif

/**
 * Keeps the module that includes this header in memory until the process ends. Without it,
 * Node unmaps an addon when the last environment that loaded the addon ends, and a native
 * thread that still runs the addon's code crashes. allstop_from_napi calls this function;
 * call it yourself if you start threads before that. Any thread; calling it again is
 * harmless.
 */
static inline void allstop_pin_module(void) {
  static int pinned = 0; /* two threads at once pin the module twice, which is harmless */
#if defined(_WIN32)
  if (!pinned) {
    HMODULE module;
    pinned =
        GetModuleHandleExA(GET_MODULE_HANDLE_EX_FLAG_PIN | GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS,
                           (LPCSTR)&pinned, &module) != 0;
  }
#else
  if (!__atomic_load_n(&pinned, __ATOMIC_RELAXED)) {
    allstop_dl_info info;
    if (dladdr((void *)&pinned, &info) != 0 && info.dli_fname != NULL &&
        dlopen(info.dli_fname, RTLD_LAZY | RTLD_NODELETE) != NULL) {
      __atomic_store_n(&pinned, 1, __ATOMIC_RELAXED);
    }
  }
#endif
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ALLSTOP_ALLSTOP_PIN_MODULE_H_ */
