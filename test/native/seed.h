// The seed of the randomized tests. It is printed; set ALLSTOP_TEST_SEED to run a failure again.
#ifndef ALLSTOP_TEST_NATIVE_SEED_H_
#define ALLSTOP_TEST_NATIVE_SEED_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace allstop::test {

inline std::uint32_t Seed() {
  const char* const given = std::getenv("ALLSTOP_TEST_SEED");
  const auto seed = given ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10))
                          : static_cast<std::uint32_t>(std::random_device{}());
  std::printf("seed: run again with ALLSTOP_TEST_SEED=%u\n", static_cast<unsigned>(seed));
  return seed;
}

}  // namespace allstop::test

#endif  // ALLSTOP_TEST_NATIVE_SEED_H_
