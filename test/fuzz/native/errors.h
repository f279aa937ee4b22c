// Errors for the calls of the C table, made of an input.
#ifndef ALLSTOP_TEST_FUZZ_ERRORS_H_
#define ALLSTOP_TEST_FUZZ_ERRORS_H_

#include <allstop/allstop.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "input.h"

namespace allstop::fuzz {

// An allstop_error, its strings and its causes. Each struct lies in memory of exactly its `size`
// bytes, so that AddressSanitizer sees a read of a field that a shorter struct does not have.
class GivenError {
 public:
  explicit GivenError(Input& input) {
    const std::size_t depth = input.Number(3) == 3 ? input.Number(40) : 0;
    for (std::size_t i = 0; i <= depth; ++i) Add(input, i == 0);
  }
  GivenError(const GivenError&) = delete;
  GivenError& operator=(const GivenError&) = delete;

  const allstop_error* get() const {
    return reinterpret_cast<const allstop_error*>(structs_.back().get());
  }
  bool is_valid() const { return size_ >= 8; }
  const std::string& id() const { return id_; }  // empty: the library makes one
  const std::string& name() const { return name_; }
  const std::string& message() const { return message_; }
  std::size_t causes() const { return causes_; }

 private:
  // The first added is the innermost cause, and the last the error itself.
  void Add(Input& input, bool is_first) {
    static const char* const names[] = {"", "OutOfRangeError", "TypeError", "Mine"};
    static const std::uint32_t sizes[] = {sizeof(allstop_error),
                                          0,
                                          7,
                                          8,
                                          offsetof(allstop_error, message),
                                          offsetof(allstop_error, id),
                                          sizeof(allstop_error) + 16};
    const std::uint8_t choice = input.Byte();
    allstop_error full = {};
    size_ = full.size = sizes[choice < 200 ? 0 : choice % 7];
    full.name = Keep(names[choice % 4]);
    const std::size_t id = input.Number(9);
    full.id = Keep(id == 0 ? "" : "id" + std::to_string(id));
    full.message = Keep(input.Text(choice % 3));
    if (choice % 5 == 0) full.native_type = Keep("std::runtime_error");
    if (!is_first) full.cause = get();
    auto memory = std::make_unique<char[]>(std::max<std::size_t>(size_, 4));
    std::memcpy(memory.get(), &full, std::min<std::size_t>(std::max(size_, 4U), sizeof(full)));
    structs_.push_back(std::move(memory));

    const auto has = [&](std::size_t end) { return size_ >= end; };
    const bool has_name = has(offsetof(allstop_error, message));
    name_ = has_name ? Text(full.name) : "";
    message_ = has(offsetof(allstop_error, code)) ? Text(full.message) : "";
    const bool has_all = has(sizeof(allstop_error));
    id_ = has(offsetof(allstop_error, cause)) ? Text(full.id) : "";
    causes_ = has_all && !is_first && was_valid_ ? std::min<std::size_t>(causes_ + 1, 32) : 0;
    was_valid_ = size_ >= 8;
  }

  static std::string Text(allstop_string text) { return {text.data, text.size}; }
  allstop_string Keep(const std::string& text) {
    strings_.push_back(std::make_unique<std::string>(text));
    return {strings_.back()->data(), text.size()};
  }

  std::vector<std::unique_ptr<char[]>> structs_;
  std::vector<std::unique_ptr<std::string>> strings_;
  std::uint32_t size_ = 0;
  bool was_valid_ = false;
  std::string id_, name_, message_;
  std::size_t causes_ = 0;
};

}  // namespace allstop::fuzz

#endif  // ALLSTOP_TEST_FUZZ_ERRORS_H_
