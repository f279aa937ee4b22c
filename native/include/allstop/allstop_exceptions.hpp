/// @file allstop_exceptions.hpp
/// C++ exceptions as errors of a coordinator, and errors of a coordinator as C++ exceptions.
/// Part of allstop.hpp, which includes it. Declares nothing in a file that is compiled without
/// exceptions.
#ifndef ALLSTOP_ALLSTOP_EXCEPTIONS_HPP_
#define ALLSTOP_ALLSTOP_EXCEPTIONS_HPP_

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <typeinfo>
#include <utility>

#if __has_include(<cxxabi.h>)
#include <cxxabi.h>
#endif

#include "allstop_coordinator.hpp"

// Marks a function that catches abi::__forced_unwind. glibc unwinds the stack of pthread_exit and
// pthread_cancel with an exception that has no object, g++ binds the caught reference to null, and
// UBSan would report that binding. The C functions of allstop are not unwound: a cancelled thread
// returns from their waits, and is cancelled at its next cancellation point.
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 8
#define ALLSTOP_HPP_CATCHES_UNWINDING __attribute__((no_sanitize("null")))
#else
#define ALLSTOP_HPP_CATCHES_UNWINDING
#endif

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
namespace allstop {
inline namespace catching {  // see allstop.hpp

/// What RaiseRequestedException throws: the recorded error as data. An exception itself is not
/// kept, since it may belong to a thread (that of a Napi::Error, of a Python interpreter), on which
/// alone it may be destroyed.
class StopError : public std::runtime_error {
 public:
  explicit StopError(Error error)
      : std::runtime_error(error.name + ": " + error.message), error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

namespace internal {

using Report = void (*)(void* context, const allstop_error& error);

// Call in a catch block. Whether the caught exception is one of another language (Objective-C, Ada,
// D), thrown past C++ by the unwinder. Such an exception has no header with a type, and dies at the
// end of the first catch block: one that is nested in yours (try { throw; } catch (...) {}) would
// destroy the exception, and the next `throw;` would end the process.
inline bool IsCaughtForeign() { return std::current_exception() == nullptr; }

// The errno of an error code, or 0. The system category has Windows' own numbers there.
inline std::uint32_t ErrnoOf(const std::error_code& code) noexcept {
#if defined(_WIN32)
  const bool has_errno = code.category() == std::generic_category();
#else
  const bool has_errno =
      code.category() == std::generic_category() || code.category() == std::system_category();
#endif
  return has_errno && code.value() > 0 ? static_cast<std::uint32_t>(code.value()) : 0;
}

// Describes a caught Napi::Error in `error` and returns true, or returns false. `encoded` holds
// what `error.encoded` refers to. Set by allstop_napi.hpp, which alone knows that class. Each
// module has its own (hidden visibility): another one may have been compiled with another version
// of node-addon-api.
using DescribeForeign = bool (*)(const Coordinator& coord, allstop_error& error,
                                 std::string& encoded);
#if defined(__GNUC__)
__attribute__((visibility("hidden")))
#endif
inline DescribeForeign describe_foreign = nullptr;

// Call in a catch block, with `outer` null. Calls `report(context, outermost)`, where
// `outermost` describes the caught exception, and its `cause` chain describes the exceptions
// nested in it. Works by recursion, each nested exception in a catch block of its own, so that
// the texts stay valid until `report` has returned, also if it destroys the function that has
// thrown: what() may be a text in a capture. Needs no memory, but says less without: the exception
// may be std::bad_alloc. A frame is small, since a thread of musl has a stack of 128 KB.
inline void DescribeCaught(const Coordinator& coord, allstop_error& outermost, allstop_error* outer,
                           int max_causes, Report report, void* context) {
  allstop_error inner = {};
  allstop_error& error = outer ? inner : outermost;
  error.size = sizeof(error);
  if (outer) outer->cause = &error;
  if (IsCaughtForeign()) {
    error.message = allstop_str("an exception of another language");
    report(context, outermost);
    return;
  }
#if __has_include(<cxxabi.h>)
  // Not typeid: this also works without RTTI, and for objects that are not a std::exception.
  const std::type_info* const type = abi::__cxa_current_exception_type();
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      type ? abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr) : nullptr, &std::free);
  if (type) error.native_type = allstop_str(demangled ? demangled.get() : type->name());
#endif
  std::unique_ptr<const view::ErrorView> fields;
  char number[32];
  const auto print = [&](const char* format, auto value) {
    error.message = {
        number, static_cast<std::size_t>(std::snprintf(number, sizeof(number), format, value))};
  };
  const auto take = [&](const Error& caught) {
    const allstop_string fresh = error.id;
    fields.reset(new (std::nothrow) view::ErrorView(caught));
    error = fields ? *fields->get() : view::WithoutCauses(caught);
    if (error.id.size == 0) error.id = fresh;
  };
  std::string kept;
  const auto keep = [&](std::string_view text) {
    try {
      kept = text;
      error.message = view::Of(kept);
    } catch (const std::bad_alloc&) {
      error.message = allstop_str("there was no memory for the text of the exception");
    }
  };
  try {
    if (describe_foreign == nullptr || !describe_foreign(coord, error, kept)) throw;
  } catch (const StopError& caught) {
    take(caught.error());
  } catch (const Error& caught) {
    take(caught);
  } catch (const std::system_error& caught) {
    keep(view::TextOf(caught));
    error.error_number = ErrnoOf(caught.code());
  } catch (const std::exception& caught) {
    keep(view::TextOf(caught));
  } catch (int value) {
    print("%d", value);
  } catch (unsigned value) {
    print("%u", value);
  } catch (long value) {
    print("%ld", value);
  } catch (unsigned long value) {
    print("%lu", value);
  } catch (long long value) {
    print("%lld", value);
  } catch (unsigned long long value) {
    print("%llu", value);
  } catch (double value) {
    print("%g", value);
  } catch (const std::string& text) {
    error.message = view::Of(text);
  } catch (const std::string_view& text) {
    keep(text);
  } catch (const char* text) {  // a char*, and nullptr, too
    keep(text != nullptr ? text : "a null pointer");
  } catch (...) {
    error.message = allstop_str("not a std::exception");
  }
  std::exception_ptr cause;
  try {
    throw;
  } catch (const std::nested_exception& nested) {
    cause = nested.nested_ptr();
  } catch (...) {
  }
  if (!cause || max_causes == 0) {
    report(context, outermost);
    return;
  }
  try {
    std::rethrow_exception(std::move(cause));
  } catch (...) {
    DescribeCaught(coord, outermost, &error, max_causes - 1, report, context);
  }
}

// Call in a catch block. Calls `report` with the caught exception as an error that has an id. An
// exception that RaiseRequestedException has thrown keeps its id.
inline void ReportCaught(const Coordinator& coord, Report report, void* context) {
  allstop_error error = {};
  char fresh[64];
  error.id = {fresh, allstop_new_id(coord.handle(), fresh, sizeof(fresh))};
  DescribeCaught(coord, error, nullptr, ALLSTOP_MAX_CAUSES, report, context);
}

}  // namespace internal

/// Calls `function()`. An exception that it throws requests a stop, as in a Thread, and is
/// swallowed. Any thread; does not block by itself.
///
/// @returns true if `function` has returned normally, false if it has thrown
/// @throws the exception of `function`, if it could not be recorded, so that its error would reach
///   nobody: a join of the coordinator has completed, the coordinator is an empty object, or there
///   is no memory for the record
template <typename Function>
ALLSTOP_HPP_CATCHES_UNWINDING bool StopOnException(const Coordinator& coord, Function&& function) {
  try {
    std::forward<Function>(function)();
    return true;
#if defined(__GLIBCXX__)
  } catch (const abi::__forced_unwind&) {
    throw;
#endif
  } catch (...) {
    struct Context {
      const Coordinator& coord;
      allstop_status status;
    } context{coord, ALLSTOP_OK};
    internal::ReportCaught(
        coord,
        [](void* opaque, const allstop_error& error) {
          auto& own = *static_cast<Context*>(opaque);
          own.status = allstop_request_stop(own.coord.handle(), &error);
        },
        &context);
    if (context.status != ALLSTOP_OK) throw;
    return false;
  }
}

/// Throws the error of the stop, else the error that ReportError kept, if there is one. The
/// error stays recorded. Waits as allstop_stop_record does. Any thread; also in the function
/// of a Thread, where the thrown exception is recognized as the stop's own error.
///
/// @throws StopError, whose error() has native_type, message and cause of the exception
inline void RaiseRequestedException(const Coordinator& coord) {
  std::optional<Error> error = coord.FirstError();
  if (error) throw StopError(std::move(*error));
}

}  // namespace catching
}  // namespace allstop
#endif

#endif  // ALLSTOP_ALLSTOP_EXCEPTIONS_HPP_
