/* Debian's static libc++ for arm64 calls these functions of newer versions of libgcc, which choose
 * between two kinds of atomic instructions at run time. This file defines the functions with the
 * kind that every arm64 processor has. */
#include <stdint.h>

uint32_t __aarch64_ldadd4_acq_rel(uint32_t value, uint32_t *at) {
  return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}

uint64_t __aarch64_ldadd8_acq_rel(uint64_t value, uint64_t *at) {
  return __atomic_fetch_add(at, value, __ATOMIC_ACQ_REL);
}

uint64_t __aarch64_cas8_acq_rel(uint64_t expected, uint64_t desired, uint64_t *at) {
  __atomic_compare_exchange_n(at, &expected, desired, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
