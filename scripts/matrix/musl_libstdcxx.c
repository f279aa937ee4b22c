/* Bun's builds for musl need a libstdc++.so.6 for musl, which Alpine has. Debian only has a
 * libstdc++.so.6 for glibc; together with the functions in this file it runs on musl. Used only to
 * run Bun in the test matrix: the prebuilt binaries of allstop contain their C++ library. */
#define _GNU_SOURCE
#include <link.h>
#include <locale.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <time.h>

struct dl_find_object {
  unsigned long long flags;
  void *map_start, *map_end;
  struct link_map *link_map;
  void *eh_frame;
  unsigned long long reserved[7];
};
struct search {
  uintptr_t pc;
  struct dl_find_object *found;
};

static int visit(struct dl_phdr_info *info, size_t size, void *data) {
  (void)size;
  const struct search *search = data;
  void *eh_frame = 0;
  uintptr_t low = UINTPTR_MAX, high = 0;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *header = &info->dlpi_phdr[i];
    const uintptr_t at = info->dlpi_addr + header->p_vaddr;
    if (header->p_type == PT_GNU_EH_FRAME) eh_frame = (void *)at;
    if (header->p_type != PT_LOAD) continue;
    if (at < low) low = at;
    if (at + header->p_memsz > high) high = at + header->p_memsz;
  }
  if (search->pc < low || search->pc >= high || !eh_frame) return 0;
  memset(search->found, 0, sizeof *search->found);
  search->found->map_start = (void *)low;
  search->found->map_end = (void *)high;
  search->found->eh_frame = eh_frame;
  return 1;
}

int _dl_find_object(void *pc, struct dl_find_object *found) {
  struct search search = {(uintptr_t)pc, found};
  return dl_iterate_phdr(visit, &search) == 1 ? 0 : -1;
}

uint32_t arc4random(void) {
  uint32_t value;
  return getrandom(&value, sizeof value, 0) == sizeof value ? value : 0;
}

size_t __strftime_l(char *to, size_t size, const char *format, const struct tm *time,
                    locale_t locale) {
  return strftime_l(to, size, format, time, locale);
}

/* Ignores `destroy`: destructors of thread_local variables are never called. */
int __cxa_thread_atexit_impl(void (*destroy)(void *), void *object, void *library) {
  (void)destroy, (void)object, (void)library;
  return 0;
}

unsigned long __getauxval(unsigned long type) { return getauxval(type); }
char __libc_single_threaded = 0;
int __cpu_indicator_init(void) { return 0; }
unsigned __cpu_model[4] = {1};
