/// @file allstop_stop_flag.hpp
/// allstop::StopFlag: a stop flag for native threads, from whatever a JavaScript caller passes as
/// `signal`. The same in C, and when which flag is stopped: allstop_stop_flag.h.
///
/// For any Node addon in C++17, on plain Node-API (version 8 or later), also for an addon that
/// uses nothing else of allstop. The addon links nothing of allstop, and needs no allstop at run
/// time. Compiles with and without exceptions and RTTI.
///
/// @code
///   const allstop::StopFlag stop(env, argument);  // work(signal)
///   if (!stop.Valid()) {
///     allstop_throw(env, ALLSTOP_INVALID_HANDLE, "The argument must be an AbortSignal");
///     return nullptr;
///   }
///   std::thread([stop] {
///     while (!stop.ShouldStop()) Work();
///   }).detach();
/// @endcode
#ifndef ALLSTOP_ALLSTOP_STOP_FLAG_HPP_
#define ALLSTOP_ALLSTOP_STOP_FLAG_HPP_

#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

#include "allstop_cpp17.hpp"
#include "allstop_stop_flag.h"

namespace allstop {

/// A flag. A copy is another reference to the same flag; copying is cheap. Any thread may copy,
/// read and destroy it, also after the end of its environment; only the constructor from a
/// JavaScript value needs the JavaScript thread. No method blocks or throws.
class StopFlag {
 public:
  /// A flag that never stops. It is valid.
  StopFlag() noexcept = default;
  /// A flag of a `Coordinator`, of its `signal`, of any other AbortSignal, or of `undefined` or
  /// `null`, which never stops. Call it on the JavaScript thread of `env`. No JavaScript exception
  /// is pending afterwards: ask Valid().
  StopFlag(napi_env env, napi_value value) noexcept {
    allstop_stop_flag flag;
    valid_ = allstop_stop_flag_from_napi(env, value, &flag) == ALLSTOP_OK;
    if (flag.word == nullptr) return;
    shared_ = Make(1);
    if (shared_ == nullptr) {
      allstop_stop_flag_release(&flag);
      valid_ = false;
      return;
    }
    shared_->flags[shared_->count++] = flag;
  }
  StopFlag(const StopFlag& other) noexcept : shared_(other.shared_), valid_(other.valid_) {
    if (shared_ != nullptr) shared_->references.fetch_add(1, std::memory_order_relaxed);
  }
  /// `other` never stops afterwards.
  StopFlag(StopFlag&& other) noexcept
      : shared_(std::exchange(other.shared_, nullptr)), valid_(std::exchange(other.valid_, true)) {}
  StopFlag& operator=(StopFlag other) noexcept {
    std::swap(shared_, other.shared_);
    std::swap(valid_, other.valid_);
    return *this;
  }
  ~StopFlag() { Drop(shared_); }

  /// False if the value was none of those that the constructor takes, or if memory has run out.
  /// Such a flag never stops.
  bool Valid() const noexcept { return valid_; }

  /// True if the flag is stopped: one load for each flag that was merged. What the thread that
  /// stopped or aborted has written before is visible then.
  bool ShouldStop() const noexcept {
    if (shared_ == nullptr) return false;
    for (std::size_t i = 0; i < shared_->count; ++i) {
      if (allstop_stop_flag_should_stop(&shared_->flags[i]) != 0) return true;
    }
    return false;
  }

  /// A flag that is stopped while one of the two is: for a caller's signal and a limit of the
  /// addon's own, say. Valid if both are, and memory has not run out. Any thread.
  static StopFlag Merge(const StopFlag& one, const StopFlag& other) noexcept {
    StopFlag merged;
    merged.valid_ = one.valid_ && other.valid_;
    if (one.shared_ == nullptr || other.shared_ == nullptr || one.shared_ == other.shared_) {
      StopFlag copy = one.shared_ != nullptr ? one : other;
      merged.shared_ = std::exchange(copy.shared_, nullptr);
      return merged;
    }
    merged.shared_ = Make(one.shared_->count + other.shared_->count);
    if (merged.shared_ == nullptr) {
      merged.valid_ = false;
      return merged;
    }
    for (const Shared* each : {one.shared_, other.shared_}) {
      for (std::size_t i = 0; i < each->count; ++i) merged.shared_->Add(each->flags[i]);
    }
    return merged;
  }

 private:
  // Never changes once it is shared, except for `references`.
  struct Shared {
    std::atomic<std::size_t> references{1};
    std::size_t count = 0;
    allstop_stop_flag* flags = nullptr;  // an array

    // The same flag merged again and again must not make the array longer.
    void Add(const allstop_stop_flag& flag) noexcept {
      for (std::size_t i = 0; i < count; ++i) {
        if (flags[i].word == flag.word) return;
      }
      allstop_stop_flag_retain(&flag, &flags[count++]);
    }
  };

  static Shared* Make(std::size_t capacity) noexcept {
    auto* const made = new (std::nothrow) Shared;
    if (made == nullptr) return nullptr;
    made->flags = new (std::nothrow) allstop_stop_flag[capacity];
    if (made->flags != nullptr) return made;
    delete made;
    return nullptr;
  }

  static void Drop(Shared* shared) noexcept {
    if (shared == nullptr) return;
    if (shared->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
    for (std::size_t i = 0; i < shared->count; ++i) allstop_stop_flag_release(&shared->flags[i]);
    delete[] shared->flags;
    delete shared;
  }

  Shared* shared_ = nullptr;  // null: never stops
  bool valid_ = true;
};

}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_STOP_FLAG_HPP_
