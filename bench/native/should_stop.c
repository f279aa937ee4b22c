/* The loop around allstop_should_stop, compiled as C; should_stop.cc measures it. */
#include <allstop/allstop.h>

uint64_t allstop_bench_poll_c(const allstop_coordinator *coord, uint64_t count);

uint64_t allstop_bench_poll_c(const allstop_coordinator *coord, uint64_t count) {
  uint64_t i = 0;
  while (i < count && !allstop_should_stop(coord)) {
    ++i;
    /* A compiler barrier: memory may have changed, so the compiler has to load the stop word,
     * and the pointer to it, in every turn. */
    __asm__ volatile("" : "+r"(i) : : "memory");
  }
  return i;
}
