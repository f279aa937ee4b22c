/// @file allstop_variable.hpp
/// allstop::Variable.
#ifndef ALLSTOP_ALLSTOP_VARIABLE_HPP_
#define ALLSTOP_ALLSTOP_VARIABLE_HPP_

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include "allstop_coordinator.hpp"
#include "allstop_variable.h"

namespace allstop {

// In `view`, and not in `internal`, which is in the inline namespaces of allstop.hpp: a second
// namespace of that name out here would make the name ambiguous.
namespace view {

template <typename Element>
inline constexpr bool kIsElement =
    std::is_same_v<Element, double> || std::is_same_v<Element, float> ||
    std::is_same_v<Element, std::int32_t>;

// The type of an element of a range; const double of a const std::vector<double>.
template <typename Range>
using ElementOf = std::remove_reference_t<decltype(std::data(std::declval<Range&>())[0])>;
// Exists for the ranges that a variable's value can be read into, and assigned from.
template <typename Range>
using Readable = std::enable_if_t<kIsElement<ElementOf<Range>>>;
template <typename Range>
using Assignable = std::enable_if_t<kIsElement<std::remove_const_t<ElementOf<const Range>>>>;

template <typename Range>
constexpr std::uint32_t VariableTypeOf() {
  using Element = std::remove_const_t<ElementOf<Range>>;
  if (std::is_same_v<Element, double>) return ALLSTOP_VARIABLE_FLOAT64;
  return std::is_same_v<Element, float> ? ALLSTOP_VARIABLE_FLOAT32 : ALLSTOP_VARIABLE_INT32;
}

}  // namespace view

/// One reference to a variable of a cluster, the same value as a JavaScript Variable. A copy is
/// another reference to the same value. The promises are those of allstop_variable.h, and the
/// methods return its statuses; with an empty object, ALLSTOP_INVALID_HANDLE.
///
/// @code
///   weights.AssignAdd(gradients);  // std::vector<float>, for a Float32Array
///   steps.AssignAdd(1);            // a number
/// @endcode
///
/// Many threads may call const methods on one object at the same time. They wait while other
/// threads copy or add the value.
class Variable {
 public:
  /// An empty object, as a moved-from one is.
  Variable() noexcept = default;
  /// Takes over the reference that `handle` owns (from allstop_variable_from_napi).
  explicit Variable(const allstop_variable& handle) noexcept : handle_(handle) {}
  Variable(const Variable& other) noexcept : handle_(other.handle_) {
    if (other) allstop_variable_retain(&handle_);
  }
  Variable(Variable&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Variable& operator=(Variable other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Variable() {
    if (*this) allstop_variable_release(&handle_);
  }

  /// False if this object is empty.
  explicit operator bool() const noexcept { return handle_.state != nullptr; }
  /// The handle, for the functions of allstop_variable.h. Borrowed: valid as long as this object.
  const allstop_variable* handle() const noexcept { return &handle_; }

  /// ALLSTOP_VARIABLE_*. Of an empty object: ALLSTOP_VARIABLE_NUMBER, with the length 0.
  std::uint32_t type() const noexcept { return Info().type; }
  /// How many elements; 1 for a number.
  std::size_t length() const noexcept { return static_cast<std::size_t>(Info().length); }
  std::string name() const { return view::ToString(Info().name); }

  /// Copies the value into a range of double, float or std::int32_t: a std::vector, std::array or
  /// std::span of as many elements as the variable has, or an array. The range is unchanged unless
  /// ALLSTOP_OK.
  ///
  /// @retval ALLSTOP_INVALID_ARGUMENT the range has another type or length than the variable
  template <typename Range, typename = view::Readable<Range>>
  allstop_status Read(Range&& range) const noexcept {
    if (!*this) return ALLSTOP_INVALID_HANDLE;
    return allstop_variable_read(&handle_, view::VariableTypeOf<Range>(), std::data(range),
                                 std::size(range));
  }
  /// The value of a number.
  ///
  /// @retval ALLSTOP_INVALID_ARGUMENT the variable is an array of another type or length
  allstop_status Read(double& number) const noexcept {
    if (!*this) return ALLSTOP_INVALID_HANDLE;
    return allstop_variable_read(&handle_, ALLSTOP_VARIABLE_NUMBER, &number, 1);
  }

  /// Sets the value. Otherwise as Read.
  template <typename Range, typename = view::Assignable<Range>>
  allstop_status Assign(const Range& range) const noexcept {
    if (!*this) return ALLSTOP_INVALID_HANDLE;
    return allstop_variable_assign(&handle_, view::VariableTypeOf<const Range>(), std::data(range),
                                   std::size(range));
  }
  allstop_status Assign(double number) const noexcept {
    if (!*this) return ALLSTOP_INVALID_HANDLE;
    return allstop_variable_assign(&handle_, ALLSTOP_VARIABLE_NUMBER, &number, 1);
  }

  /// Adds to each element; a std::int32_t wraps around. Every call counts: see
  /// allstop_variable.h on functions that are run again. Otherwise as Read.
  template <typename Range, typename = view::Assignable<Range>>
  allstop_status AssignAdd(const Range& range) const noexcept {
    if (!*this) return ALLSTOP_INVALID_HANDLE;
    return allstop_variable_assign_add(&handle_, view::VariableTypeOf<const Range>(),
                                       std::data(range), std::size(range));
  }
  allstop_status AssignAdd(double delta) const noexcept {
    if (!*this) return ALLSTOP_INVALID_HANDLE;
    return allstop_variable_assign_add(&handle_, ALLSTOP_VARIABLE_NUMBER, &delta, 1);
  }

 private:
  allstop_variable_info Info() const noexcept {
    allstop_variable_info info = {};
    info.size = sizeof(info);
    if (*this) allstop_variable_describe(&handle_, &info);
    return info;
  }

  allstop_variable handle_ = {};
};

}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_VARIABLE_HPP_
