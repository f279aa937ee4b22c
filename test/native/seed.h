// The seed of the random tests: always the same, unless ALLSTOP_TEST_SEED names another one, as
// `npm run nightly` does.
#ifndef ALLSTOP_TEST_NATIVE_SEED_H_
#define ALLSTOP_TEST_NATIVE_SEED_H_

#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace allstop::test {

inline std::uint32_t Seed() {
  const char* const given = std::getenv("ALLSTOP_TEST_SEED");
  const auto seed = given ? static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10)) : 1U;
  std::printf("seed: run again with ALLSTOP_TEST_SEED=%u\n", static_cast<unsigned>(seed));
  return seed;
}

}  // namespace allstop::test

#endif  // ALLSTOP_TEST_NATIVE_SEED_H_
