/// @file allstop_exceptions.hpp
/// C++ exceptions as errors of a coordinator, and errors of a coordinator as C++ exceptions.
/// Part of allstop.hpp, which includes it. Declares nothing in a file that is compiled without
/// exceptions.
#ifndef ALLSTOP_ALLSTOP_EXCEPTIONS_HPP_
#define ALLSTOP_ALLSTOP_EXCEPTIONS_HPP_

#include <cstdlib>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
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

/// What RaiseRequestedException throws where this module (executable or addon) no longer has,
/// or never had, the exception itself: for an error from JavaScript or from another addon, and
/// for an exception that is not among the module's last 64.
class StopError : public std::runtime_error {
 public:
  explicit StopError(Error error)
      : std::runtime_error(error.name + ": " + error.message), error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

namespace internal {

// The last 64 exceptions that this module has reported, each with the id of its error, so that
// RaiseRequestedException can throw the exception itself. The table belongs to the module and
// not to the record: only the module that threw an exception can throw it again. Hidden
// visibility keeps the linker from merging the tables of all modules into one;
// scripts/lint-native.sh checks that.
#if defined(__GNUC__)
class __attribute__((visibility("hidden"))) KeptExceptions {
#else
class KeptExceptions {
#endif
 public:
  // Never destroyed: native threads may use the table after static destructors have run.
  static KeptExceptions& Get() {
    static KeptExceptions* const kept = new KeptExceptions;
    return *kept;
  }
  void Keep(std::string_view id, std::exception_ptr exception) {
    constexpr std::size_t kMost = 64;
    // Declared before the lock, hence destroyed after it: the destructor of the exception may
    // run the program's code, which may come back here.
    std::exception_ptr oldest;
    const std::lock_guard<std::mutex> lock(mutex_);
    exceptions_.emplace_back(id, std::move(exception));
    if (exceptions_.size() <= kMost) return;
    oldest = std::move(exceptions_.front().second);
    exceptions_.pop_front();
  }
  std::exception_ptr Find(std::string_view id) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [known, exception] : exceptions_) {
      if (known == id) return exception;
    }
    return nullptr;
  }
  // The id under which `exception` was reported before; "" if it is new.
  std::string IdOf(const std::exception_ptr& exception) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [id, known] : exceptions_) {
      if (known == exception) return id;
    }
    return {};
  }

 private:
  mutable std::mutex mutex_;
  std::deque<std::pair<std::string, std::exception_ptr>> exceptions_;
};

using Report = void (*)(void* context, const allstop_error& error);

// Call in a catch block. Whether the caught exception is one of another language (Objective-C, Ada,
// D), thrown past C++ by the unwinder. Such an exception has no header with a type, and dies at the
// end of the first catch block: one that is nested in yours (try { throw; } catch (...) {}) would
// destroy the exception, and the next `throw;` would end the process.
inline bool IsCaughtForeign() { return std::current_exception() == nullptr; }

// Call in a catch block, with `outer` null. Calls `report(context, outermost)`, where
// `outermost` describes the caught exception, and its `cause` chain describes the exceptions
// nested in it. Works by recursion, each nested exception in a catch block of its own, so that
// the texts stay valid until `report` has returned. Allocates nothing of its own: the
// exception may be std::bad_alloc.
inline void DescribeCaught(allstop_error& outermost, allstop_error* outer, int max_causes,
                           Report report, void* context) {
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
  std::optional<view::ErrorView> fields;
  const auto take = [&](const Error& caught) {
    const allstop_string id = error.id;
    error = *fields.emplace(caught).get();
    if (!outer) error.id = id;
  };
  try {
    throw;
  } catch (const StopError& caught) {
    take(caught.error());
    error.cause = nullptr;
  } catch (const Error& caught) {
    take(caught);
  } catch (const std::exception& caught) {
    error.message = allstop_str(caught.what());
  } catch (const std::string& text) {
    error.message = view::Of(text);
  } catch (const char* text) {  // a char*, and nullptr, too
    error.message = allstop_str(text != nullptr ? text : "a null pointer");
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
    DescribeCaught(outermost, &error, max_causes - 1, report, context);
  }
}

// Call in a catch block. Calls `report` with the caught exception as an error that has an id,
// and keeps the exception under that id for RaiseRequestedException. An exception that
// RaiseRequestedException has thrown keeps its id.
inline void ReportCaught(const Coordinator& coord, Report report, void* context) {
  allstop_error error = {};
  char fresh[64];
  std::string known;
  try {
    const std::exception_ptr caught = std::current_exception();
    if (caught) known = KeptExceptions::Get().IdOf(caught);
    try {
      if (caught && known.empty()) throw;
    } catch (const StopError& stop) {
      known = stop.error().id;
    } catch (const Error& thrown) {
      known = thrown.id;
    } catch (...) {
    }
    error.id = view::Of(known);
    if (known.empty()) {
      error.id = {fresh, allstop_new_id(coord.handle(), fresh, sizeof(fresh))};
      if (caught && error.id.size > 0) {
        KeptExceptions::Get().Keep({fresh, error.id.size}, caught);
      }
    }
  } catch (const std::bad_alloc&) {
    // Not kept: RaiseRequestedException will throw a StopError for this exception.
  }
  DescribeCaught(error, nullptr, ALLSTOP_MAX_CAUSES, report, context);
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
/// @throws the exception itself, if this module has reported it and it is among the module's
///   last 64; else a StopError
inline void RaiseRequestedException(const Coordinator& coord) {
  std::optional<Error> error = coord.FirstError();
  if (!error) return;
  const std::exception_ptr own = internal::KeptExceptions::Get().Find(error->id);
  if (own) std::rethrow_exception(own);
  throw StopError(std::move(*error));
}

}  // namespace catching
}  // namespace allstop
#endif

#endif  // ALLSTOP_ALLSTOP_EXCEPTIONS_HPP_
