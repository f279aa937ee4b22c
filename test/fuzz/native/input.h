// What the fuzz targets share: reading the input, and stopping when an oracle is contradicted.
#ifndef ALLSTOP_TEST_FUZZ_INPUT_H_
#define ALLSTOP_TEST_FUZZ_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

// A fault that no sanitizer sees: libFuzzer, and the program that repeats inputs, end at abort().
#define MUST(condition)                                                            \
  do {                                                                             \
    if (!(condition)) {                                                            \
      std::fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                \
    }                                                                              \
  } while (false)

namespace allstop::fuzz {

// The bytes of an input, taken one after the other. Behind the end there are zeros.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}

  bool IsEmpty() const { return at_ == size_; }
  std::uint8_t Byte() { return at_ < size_ ? data_[at_++] : 0; }
  // A number from 0 to `most`.
  std::size_t Number(std::size_t most) { return Byte() % (most + 1); }
  bool Flag() { return (Byte() & 1) != 0; }

  std::string Text(std::size_t size) {
    const std::size_t taken = std::min(size, size_ - at_);
    std::string text(reinterpret_cast<const char*>(data_) + at_, taken);
    at_ += taken;
    return text;
  }

 private:
  const std::uint8_t* const data_;
  const std::size_t size_;
  std::size_t at_ = 0;
};

}  // namespace allstop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

#endif  // ALLSTOP_TEST_FUZZ_INPUT_H_
