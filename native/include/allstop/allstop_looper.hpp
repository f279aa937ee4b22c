// allstop_looper.hpp - TensorFlow's LooperThread: do something every so often, until a
// stop. Part of allstop.hpp, which includes it.
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

// As in allstop.hpp: another type in a file compiled without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
inline namespace catching {
#else
inline namespace not_catching {
#endif

// What becomes of the runs that were due while another one took too long.
enum class MissedTicks : std::uint32_t {
  kBurst = ALLSTOP_MISSED_TICKS_BURST,  // made up for, back to back (TensorFlow's)
  kSkip = ALLSTOP_MISSED_TICKS_SKIP,    // dropped: the next multiple of the interval
  kDelay = ALLSTOP_MISSED_TICKS_DELAY,  // none: it counts from the end of a run
};

struct LooperOptions {
  std::string name = "looper";
  MissedTicks missed_ticks = MissedTicks::kBurst;
  // Called on the looper's thread before the first run and after the last one, also if
  // a stop was requested before.
  std::function<void()> start_loop = {};
  std::function<void()> stop_loop = {};
};

// A Thread that calls `run(coord)`, or `run()`, at once and then every `interval` of a
// monotonic clock, until a stop; it need not ask for one. 0: back to back; infinity: once.
//
//   - Registered when it is constructed. Until it is started it holds up no join.
//   - A stop ends its wait at once, and ends the looper even if it is cleared at once.
//   - What `run` throws stops everybody, as in a Thread, and ends the looper: first
//     `stop_loop` is called, unlike with TensorFlow. What `start_loop` throws does so
//     too, and then `stop_loop` is not called.
//   - If it cannot loop, it stops everybody when it is started: UnavailableError, the
//     package that is installed is older than 1.2 of allstop.h; InvalidArgumentError,
//     the interval is negative or NaN.
//
// The destructor blocks as that of Thread does. What else is said there of the
// function, of memory and of JavaScript threads holds here, too.
class LooperThread {
 public:
  using Options = LooperOptions;

  template <typename Run>
  LooperThread(const Coordinator& coord, Milliseconds interval, Run&& run, Options options = {})
      : body_(std::make_unique<BodyOf<std::decay_t<Run>>>(interval, std::move(options),
                                                          std::forward<Run>(run))),
        token_(Register(coord, body_->options.name, ALLSTOP_THREAD_UNSTARTED)) {}
  // Constructed and started.
  template <typename Run>
  static LooperThread Loop(const Coordinator& coord, Milliseconds interval, Run&& run,
                           Options options = {}) {
    LooperThread looper(coord, interval, std::forward<Run>(run), std::move(options));
    looper.Start();
    return looper;
  }
  LooperThread(LooperThread&&) noexcept = default;
  LooperThread& operator=(LooperThread&& other) noexcept {  // blocks, as the destructor does
    Join();
    body_ = std::move(other.body_);
    token_ = std::move(other.token_);
    thread_ = std::move(other.thread_);
    return *this;
  }
  ~LooperThread() { Join(); }

  // A join that begins next waits for it. ALLSTOP_FAILED_PRECONDITION: it was started
  // before. Throws what the constructor of Thread throws, and is then ended.
  allstop_status Start() {
    if (!body_) return ALLSTOP_FAILED_PRECONDITION;
    // Anew, and alive: not when its thread gets to say so, and a join may have
    // forgotten the first one.
    token_ = Register(token_.get_deleter().coord, body_->options.name, 0);
    thread_ = std::thread(&internal::RunThread<Body>, std::move(token_), std::move(body_));
    return ALLSTOP_OK;
  }
  // Blocks until it has ended; at once if it was never started. Not on its own thread.
  void Join() {
    if (thread_.joinable()) thread_.join();
  }
  // Nobody will wait here; the coordinator still does.
  void Detach() {
    if (thread_.joinable()) thread_.detach();
  }

 private:
  struct Release {
    const Coordinator& coord;
    void operator()(allstop_looper* looper) const {
      allstop_looper_release(coord.handle(), looper);
    }
  };

  // What the thread calls. Not one std::function, which would have to be copied.
  struct Body {
    Body(Milliseconds each, Options given) : interval(each), options(std::move(given)) {}
    virtual ~Body() = default;
    virtual void Run(const Coordinator& coord) = 0;

    void operator()(const Coordinator& coord) {
      allstop_looper* made = nullptr;
      const auto missed_ticks = static_cast<std::uint32_t>(options.missed_ticks);
      const allstop_status status =
          allstop_looper_create(coord.handle(), interval.count(), missed_ticks, &made);
      if (status != ALLSTOP_OK) return Refuse(coord, status);
      const std::unique_ptr<allstop_looper, Release> looper(made, Release{coord});
      if (options.start_loop) options.start_loop();
      const auto loop = [&] {
        while (allstop_looper_wait(coord.handle(), looper.get()) == ALLSTOP_OK) Run(coord);
      };
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
      try {
        StopOnException(coord, loop);  // the others need not wait for our stop_loop
      } catch (...) {                  // a join has completed, or the thread is cancelled
        if (options.stop_loop) options.stop_loop();
        throw;
      }
#else
      loop();
#endif
      if (options.stop_loop) options.stop_loop();
    }

    static void Refuse(const Coordinator& coord, allstop_status status) {
      Error error;
      if (status == ALLSTOP_UNAVAILABLE) {
        error.name = "UnavailableError";
        error.message = "The package 'allstop' that is installed is too old for a LooperThread";
      } else if (status == ALLSTOP_INVALID_ARGUMENT) {
        error.name = "InvalidArgumentError";
        error.message = "The interval of a LooperThread must not be negative or NaN";
      } else {
        internal::OutOfMemory();
      }
      coord.RequestStop(error);
    }

    const Milliseconds interval;
    const Options options;
  };

  template <typename Function>
  struct BodyOf final : Body {
    template <typename Given>
    BodyOf(Milliseconds each, Options given, Given&& run)
        : Body(each, std::move(given)), function(std::forward<Given>(run)) {}
    void Run(const Coordinator& coord) override { internal::Call(function, coord); }

    Function function;
  };

  // Older packages list it as a native thread.
  static internal::ThreadToken Register(const Coordinator& coord, const std::string& name,
                                        std::uint32_t flags) {
    internal::ThreadToken token = internal::Register(coord, name, flags | ALLSTOP_THREAD_LOOPER);
    return token ? std::move(token) : internal::Register(coord, name, flags);
  }

  std::unique_ptr<Body> body_;   // until it is started
  internal::ThreadToken token_;  // the same
  std::thread thread_;
};

}  // inline namespace catching or not_catching
}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_LOOPER_HPP_
