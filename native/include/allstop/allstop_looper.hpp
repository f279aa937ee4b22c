/// @file allstop_looper.hpp
/// allstop::LooperThread, after TensorFlow's: a thread that calls a function at fixed intervals
/// until a stop.
#ifndef ALLSTOP_ALLSTOP_LOOPER_HPP_
#define ALLSTOP_ALLSTOP_LOOPER_HPP_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include "allstop.hpp"

namespace allstop {

// allstop.hpp says why this type has another name in a file without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
inline namespace catching {
#else
inline namespace not_catching {
#endif

/// The policy for runs that became due while an earlier run was still going on.
enum class MissedTicks : std::uint32_t {
  kBurst = ALLSTOP_MISSED_TICKS_BURST,  ///< run them at once, back to back (TensorFlow's)
  kSkip = ALLSTOP_MISSED_TICKS_SKIP,    ///< drop them; go on at the next multiple of the interval
  kDelay = ALLSTOP_MISSED_TICKS_DELAY,  ///< count the interval from the end of each run
};

struct LooperOptions {
  std::string name = "looper";  ///< of the thread; shown to people
  MissedTicks missed_ticks = MissedTicks::kBurst;
  /// Called on the looper's thread, start_loop before the first run and stop_loop after the
  /// last run; also if a stop was requested before the start.
  std::function<void()> start_loop = {};
  std::function<void()> stop_loop = {};
};

/// A registered thread that calls `run(coord)`, or `run()`, at once and then every `interval`
/// of a monotonic clock until a stop; `run` need not check for the stop. An interval of 0
/// calls `run` back to back, an infinite one calls it once.
///
///   - The thread is registered when the object is constructed. A join does not wait for it
///     before Start.
///   - A stop ends the looper's wait at once. A stop after Start has begun ends the looper even
///     if the stop is cleared at once.
///   - An exception of `run` requests a stop, as in a Thread, and ends the looper. stop_loop is
///     still called, after the stop has been requested (ours; TensorFlow does not call it), or
///     before if there is no memory for the record of the stop. An exception of start_loop does
///     the same, but then stop_loop is not called. An exception of stop_loop is an error like
///     that of `run`.
///   - A looper that cannot run requests a stop when it is started: with an UnavailableError
///     if the installed package is older than 1.2 of allstop.h, with an InvalidArgumentError
///     if the interval is negative or NaN. After a completed join, the error is kept as
///     suppressed, as that of a Thread.
///
/// The destructor blocks until the thread has ended, but does not request a stop. The other
/// promises and warnings of Thread hold here as well.
class LooperThread {
 public:
  using Options = LooperOptions;

  template <typename Run>
  LooperThread(const Coordinator& coord, Milliseconds interval, Run&& run, Options options = {})
      : body_(std::make_unique<BodyOf<std::decay_t<Run>>>(interval, std::move(options),
                                                          std::forward<Run>(run))),
        token_(Register(coord, body_->options.name, ALLSTOP_THREAD_UNSTARTED)) {}
  /// Constructs a looper and starts it.
  template <typename Run>
  static LooperThread Loop(const Coordinator& coord, Milliseconds interval, Run&& run,
                           Options options = {}) {
    LooperThread looper(coord, interval, std::forward<Run>(run), std::move(options));
    looper.Start();
    return looper;
  }
  LooperThread(LooperThread&&) noexcept = default;
  /// Blocks until the thread that this object held has ended.
  LooperThread& operator=(LooperThread&& other) noexcept {
    Join();
    body_ = std::move(other.body_);
    token_ = std::move(other.token_);
    thread_ = std::move(other.thread_);
    return *this;
  }
  /// Blocks until the thread has ended.
  ~LooperThread() { Join(); }

  /// Starts the thread. A join that begins after this call waits for the thread. Does not
  /// block. Only one thread at a time may call methods of this object.
  ///
  /// @retval ALLSTOP_OK
  /// @retval ALLSTOP_FAILED_PRECONDITION it was started before
  /// @retval ALLSTOP_INVALID_ARGUMENT its coordinator is an empty object, so it would never end;
  ///   it was not started
  /// @throws as the constructor of Thread; treat the looper as ended then
  allstop_status Start() {
    if (!body_) return ALLSTOP_FAILED_PRECONDITION;
    if (!token_.get_deleter().coord) return ALLSTOP_INVALID_ARGUMENT;
    // Here and not on the new thread, which would miss a stop that is cleared before it runs.
    body_->CreateLooper(token_.get_deleter().coord);
    // A second registration, alive at once. The first one, of the constructor, does not do: it
    // would count as alive only once the new thread runs, and a join may have forgotten it.
    token_ = Register(token_.get_deleter().coord, body_->options.name, 0);
    thread_ = std::thread(&internal::RunThread<Body>, std::move(token_), std::move(body_));
    return ALLSTOP_OK;
  }
  /// Blocks until the thread has ended; returns at once if the looper was never started. Any
  /// thread except the looper's own.
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  /// Lets go of the thread: Join() and the destructor no longer wait for it. The thread stays
  /// registered, so a join of the coordinator still waits. Does not block.
  void Detach() {
    if (thread_.joinable()) thread_.detach();
  }

 private:
  struct Release {
    Coordinator coord;
    void operator()(allstop_looper* looper) const {
      allstop_looper_release(coord.handle(), looper);
    }
  };

  // The function of the thread. A virtual class instead of a std::function: a std::function
  // takes only functions that can be copied.
  struct Body {
    Body(Milliseconds each, Options given) : interval(each), options(std::move(given)) {}
    virtual ~Body() = default;
    virtual void Run(const Coordinator& coord) = 0;

    void CreateLooper(const Coordinator& coord) {
      allstop_looper* made = nullptr;
      const auto missed_ticks = static_cast<std::uint32_t>(options.missed_ticks);
      created = allstop_looper_create(coord.handle(), interval.count(), missed_ticks, &made);
      if (created == ALLSTOP_RESOURCE_EXHAUSTED) internal::OutOfMemory();
      looper = {made, Release{coord}};
    }

    internal::Unrecorded operator()(const Coordinator& coord) {
      if (created != ALLSTOP_OK) return Refuse(coord);
      if (options.start_loop) options.start_loop();
      const auto loop = [&] {
        while (allstop_looper_wait(coord.handle(), looper.get()) == ALLSTOP_OK) Run(coord);
      };
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
      try {
        StopOnException(coord, loop);  // requests the stop before stop_loop, which may be slow
      } catch (...) {                  // not recorded, or the thread was cancelled
        EndLoopBeside(coord);
        throw;
      }
#else
      loop();
#endif
      if (options.stop_loop) options.stop_loop();
      return {};
    }

#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
    // Calls stop_loop while another exception ends the thread. That one goes on: the exception of
    // stop_loop requests a stop of its own, or is only reported.
    ALLSTOP_HPP_CATCHES_UNWINDING void EndLoopBeside(const Coordinator& coord) const {
      if (!options.stop_loop) return;
      try {
        StopOnException(coord, options.stop_loop);
#if defined(__GLIBCXX__)
      } catch (const abi::__forced_unwind&) {
        throw;
#endif
      } catch (...) {
        Coordinator own = coord;
        internal::ReportCaught(
            coord,
            [](void* opaque, const allstop_error& error) {
              allstop_report_error(static_cast<Coordinator*>(opaque)->handle(), &error);
            },
            &own);
      }
    }
#endif

    internal::Unrecorded Refuse(const Coordinator& coord) const {
      Error error;
      if (created == ALLSTOP_UNAVAILABLE) {
        error.name = "UnavailableError";
        error.message =
            "The installed package 'allstop' is too old for a LooperThread of C++: update it";
      } else {
        error.name = "InvalidArgumentError";
        error.message =
            "The interval of a LooperThread must not be negative or NaN, nor its missed_ticks an "
            "unknown value";
      }
      if (coord.RequestStop(error) == ALLSTOP_OK) return {};
      return {std::move(error)};
    }

    const Milliseconds interval;
    const Options options;
    allstop_status created = ALLSTOP_OK;  // what allstop_looper_create returned
    std::unique_ptr<allstop_looper, Release> looper;
  };

  template <typename Function>
  struct BodyOf final : Body {
    template <typename Given>
    BodyOf(Milliseconds each, Options given, Given&& run)
        : Body(each, std::move(given)), function(std::forward<Given>(run)) {}
    void Run(const Coordinator& coord) override { internal::Call(function, coord); }

    Function function;
  };

  // A package older than 1.2 does not know ALLSTOP_THREAD_LOOPER: the thread is then registered
  // as an ordinary native thread.
  static internal::ThreadToken Register(const Coordinator& coord, const std::string& name,
                                        std::uint32_t flags) {
    internal::ThreadToken token = internal::Register(coord, name, flags | ALLSTOP_THREAD_LOOPER);
    return token ? std::move(token) : internal::Register(coord, name, flags);
  }

  std::unique_ptr<Body> body_;   // null once started
  internal::ThreadToken token_;  // null once started
  std::thread thread_;
};

}  // inline namespace catching or not_catching
}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_LOOPER_HPP_
