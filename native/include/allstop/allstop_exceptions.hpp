// allstop_exceptions.hpp - C++ exceptions and the errors of a coordinator, both ways.
// Part of allstop.hpp, which includes it. Empty in a file compiled without exceptions.
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

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
namespace allstop {
inline namespace catching {  // see allstop.hpp

// A recorded error that this module has not thrown itself: JavaScript's, or that of
// another addon.
class StopError : public std::runtime_error {
 public:
  explicit StopError(Error error)
      : std::runtime_error(error.name + ": " + error.message), error_(std::move(error)) {}
  const Error& error() const noexcept { return error_; }

 private:
  Error error_;
};

namespace internal {

// The exceptions that this module has reported, by the id of their record: the latest
// 64. Here and not in the record, since no other module can throw them; hidden, or the
// linker would merge the tables of all modules (scripts/lint-native.sh looks).
#if defined(__GNUC__)
class __attribute__((visibility("hidden"))) KeptExceptions {
#else
class KeptExceptions {
#endif
 public:
  // Allocated once and never destroyed, as threads outlive static destructors.
  static KeptExceptions& Get() {
    static KeptExceptions* const kept = new KeptExceptions;
    return *kept;
  }
  void Keep(std::string_view id, std::exception_ptr exception) {
    constexpr std::size_t kMost = 64;
    std::exception_ptr oldest;  // its destructor may do anything, so not under the lock
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
  // The id of one that is raised again, or "".
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

// In a catch block: calls `report` with `outermost`, which becomes the exception, and
// those that are nested in it as its causes. Allocates nothing that it could not do
// without: the error may be that there is no memory.
inline void DescribeCaught(allstop_error& outermost, allstop_error* outer, int max_causes,
                           Report report, void* context) {
  allstop_error inner = {};
  allstop_error& error = outer ? inner : outermost;
  error.size = sizeof(error);
  if (outer) outer->cause = &error;
#if __has_include(<cxxabi.h>)
  // Not typeid: this works without RTTI, and for what is no std::exception.
  const std::type_info* const type = abi::__cxa_current_exception_type();
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      type ? abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr) : nullptr, &std::free);
  if (type) error.native_type = allstop_str(demangled ? demangled.get() : type->name());
#endif
  try {
    throw;
  } catch (const StopError& caught) {
    const allstop_string id = error.id;
    error = *view::ErrorView(caught.error()).get();
    error.cause = nullptr;
    if (!outer) error.id = id;
  } catch (const std::exception& caught) {
    error.message = allstop_str(caught.what());
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

// In a catch block. The exception is found again by RaiseRequestedException; one that
// was raised by that keeps its identity.
inline void ReportCaught(const Coordinator& coord, Report report, void* context) {
  allstop_error error = {};
  char fresh[64];
  std::string known;
  try {
    known = KeptExceptions::Get().IdOf(std::current_exception());
    try {
      if (known.empty()) throw;
    } catch (const StopError& stop) {
      known = stop.error().id;
    } catch (...) {
    }
    error.id = view::Of(known);
    if (known.empty()) {
      error.id = {fresh, allstop_new_id(coord.handle(), fresh, sizeof(fresh))};
      if (error.id.size > 0) {
        KeptExceptions::Get().Keep({fresh, error.id.size}, std::current_exception());
      }
    }
  } catch (const std::bad_alloc&) {  // then it is raised as a StopError
  }
  DescribeCaught(error, nullptr, ALLSTOP_MAX_CAUSES, report, context);
}

}  // namespace internal

// Calls `function()`. What it throws requests a stop, as it would in a Thread, and is
// swallowed; false then. It is thrown on if a join has completed, as nobody would ever
// see it. On any thread.
template <typename Function>
bool StopOnException(const Coordinator& coord, Function&& function) {
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
    if (context.status == ALLSTOP_FAILED_PRECONDITION) throw;
    return false;
  }
}

// Throws the error of the stop, or the one that was reported, if there is one: the
// exception itself if it was thrown in this module (and is among its latest 64), else
// a StopError. Does not clear it. Any thread, in a Thread as well: the error that it
// throws comes back as the stop's own.
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
