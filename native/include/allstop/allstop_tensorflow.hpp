/// @file allstop_tensorflow.hpp
/// TensorFlow's C++ Coordinator by name, on top of an allstop::Coordinator.
///
/// The names, the status codes and the results are those of
/// tensorflow/cc/training/coordinator.h. The stop is that of the allstop::Coordinator, so
/// JavaScript and other addons can request it, too.
#ifndef ALLSTOP_ALLSTOP_TENSORFLOW_HPP_
#define ALLSTOP_ALLSTOP_TENSORFLOW_HPP_

#include <algorithm>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "allstop.hpp"
#include "allstop_runner.hpp"

// Xlib.h defines a macro of this name.
#pragma push_macro("Status")
#undef Status

namespace allstop {

namespace tensorflow {

using RunnerInterface = Runner;

// allstop.hpp says why this type has another name in a file without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
inline namespace catching {
#else
inline namespace not_catching {
#endif

/// Owns runners, and joins them after a stop of the shared allstop::Coordinator. Every method
/// may be called on any thread; while the destructor runs, no other method may be called.
class Coordinator {
 public:
  /// The clean-stop types are an option of `shared` (allstop::Options), not of this class.
  explicit Coordinator(allstop::Coordinator shared) : shared_(std::move(shared)) {}
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  /// Requests a stop and joins the runners. Blocks until all of them have ended.
  ~Coordinator() {
    shared_.RequestStop();
    JoinRunners();  // not Join(), which refuses if another thread has cleared the stop meanwhile
  }

  const allstop::Coordinator& shared() const noexcept { return shared_; }

  /// Takes over `runner`, for Join to wait for. Does not block.
  ///
  /// @returns FAILED_PRECONDITION if the coordinator is stopped (`runner` is destroyed then),
  ///   INVALID_ARGUMENT if `runner` is null, else OK
  Status RegisterRunner(std::unique_ptr<Runner> runner) {
    if (!runner) return Status(ALLSTOP_INVALID_ARGUMENT, "The runner must not be null.");
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ShouldStop()) {
      return Status(ALLSTOP_FAILED_PRECONDITION, "The coordinator has been stopped.");
    }
    runners_.push_back(std::move(runner));
    return Status();
  }

  /// Asks each runner whether it is running. A guess: meanwhile runners may end, or be
  /// registered. Does not block.
  ///
  /// @returns true if no runner is running, also if none is registered
  bool AllRunnersStopped() const {
    // A copy, without the lock: IsRunning may call a method of this coordinator.
    const std::deque<std::shared_ptr<Runner>> runners = Runners();
    return std::none_of(runners.begin(), runners.end(),
                        [](const auto& runner) { return runner->IsRunning(); });
  }

  /// Requests a stop. Runs the stop callbacks on the calling thread; does not block otherwise.
  ///
  /// @returns FAILED_PRECONDITION if this call did not make the stop: another thread, in
  ///   whatever language, requested a stop before; RESOURCE_EXHAUSTED if there is no memory for
  ///   the record; else OK. With a package older than 1.3 of allstop.h, two requests at the
  ///   same time may both return OK.
  Status RequestStop() {
    bool made = false;
    allstop_status status = shared_.RequestStop(&made);
    if (status == ALLSTOP_UNAVAILABLE) {
      made = !ShouldStop();
      if (made) status = shared_.RequestStop();
    }
    if (!made && (status == ALLSTOP_OK || status == ALLSTOP_UNAVAILABLE)) {
      return Status(ALLSTOP_FAILED_PRECONDITION, "The Coordinator is not running.");
    }
    return Status(status, "The stop could not be requested");
  }

  bool ShouldStop() const noexcept { return shared_.ShouldStop(); }

  /// Blocks until a stop is requested.
  void WaitForStop() const noexcept { shared_.WaitForStop(); }

  /// Keeps the first status that is neither OK nor of a clean-stop type, and requests no stop.
  /// A join() in JavaScript throws the kept status as an error if a stop without an error has
  /// been requested by then. Does not block.
  void ReportStatus(const Status& status) {
    if (!status.ok()) shared_.ReportError(view::ErrorOf(status));
  }

  /// The error of the stop, whichever thread requested it, else the status that ReportStatus
  /// kept, else OK. Waits as allstop_stop_record does.
  ///
  /// @returns STOPPED_BY_ERROR for an error whose class has no status here
  Status GetStatus() const {
    const std::optional<Error> error = shared_.FirstError();
    return error ? Status(view::CodeOf(error->code, error->name), error->message) : Status();
  }

  /// Joins the runners in the order in which they were registered, reports the status of each,
  /// and destroys them. Blocks until all runners have ended: there is no grace period.
  ///
  /// @returns FAILED_PRECONDITION at once if no stop was requested, else GetStatus()
  Status Join() {
    if (!ShouldStop()) {
      return Status(ALLSTOP_FAILED_PRECONDITION, "Joining coordinator without requesting stop.");
    }
    JoinRunners();
    return GetStatus();
  }

 private:
  void JoinRunners() {
    const std::lock_guard<std::mutex> joining(join_mutex_);
    // A runner stays in the list until it has ended, else AllRunnersStopped would answer true while
    // it runs.
    for (const std::shared_ptr<Runner>& runner : Runners()) {
      ReportStatus(runner->Join());
      const std::lock_guard<std::mutex> lock(mutex_);
      runners_.pop_front();
    }
  }

  std::deque<std::shared_ptr<Runner>> Runners() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return runners_;
  }

  const allstop::Coordinator shared_;
  // Held during a join, so that only one thread at a time removes runners. Taken before mutex_.
  std::mutex join_mutex_;
  mutable std::mutex mutex_;  // guards the members below
  std::deque<std::shared_ptr<Runner>> runners_;
};

}  // inline namespace catching or not_catching
}  // namespace tensorflow
}  // namespace allstop

#pragma pop_macro("Status")

#endif  // ALLSTOP_ALLSTOP_TENSORFLOW_HPP_
