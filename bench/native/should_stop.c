/* The check as C compiles it. In a file of its own, since a C++ compiler would
 * not do. */
#include <allstop/allstop.h>

uint64_t allstop_bench_poll_c(const allstop_coordinator *coord, uint64_t count);

uint64_t allstop_bench_poll_c(const allstop_coordinator *coord, uint64_t count) {
  uint64_t i = 0;
  while (i < count && !allstop_should_stop(coord)) {
    ++i;
    /* The compiler must take it that somebody wrote to memory, and so must load
     * the word, and the pointer to it, each time. */
    __asm__ volatile("" : "+r"(i) : : "memory");
  }
  return i;
}
