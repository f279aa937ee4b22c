/* The C version of the check, in a file of its own, so that a C compiler compiles it. */
#include <allstop/allstop.h>

uint64_t allstop_bench_poll_c(const allstop_coordinator *coord, uint64_t count);

uint64_t allstop_bench_poll_c(const allstop_coordinator *coord, uint64_t count) {
  uint64_t i = 0;
  while (i < count && !allstop_should_stop(coord)) {
    ++i;
    /* Makes the compiler assume that memory has changed, so that it loads the stop word, and the
     * pointer to it, in each iteration. */
    __asm__ volatile("" : "+r"(i) : : "memory");
  }
  return i;
}
