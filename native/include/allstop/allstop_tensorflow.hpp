// allstop_tensorflow.hpp - TensorFlow's C++ Coordinator, by name, on a shared one.
// Part of allstop.hpp, which includes it.
//
// The names, the Status codes and what each call comes to are those of
// tensorflow/cc/training/coordinator.h; the stop is that of an
// allstop::Coordinator, so it also comes from JavaScript and from other addons.
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

namespace allstop {

namespace tensorflow {

using RunnerInterface = Runner;

// As in allstop.hpp: another type in a file compiled without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
inline namespace catching {
#else
inline namespace not_catching {
#endif

// One owner of runners, on the stop of `shared`. Every method may be called on any
// thread, but for the destructor.
class Coordinator {
 public:
  // What counts as a clean stop is an option of `shared` (allstop::Options).
  explicit Coordinator(allstop::Coordinator shared) : shared_(std::move(shared)) {}
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  // Requests a stop and joins the runners. Blocks.
  ~Coordinator() {
    shared_.RequestStop();
    JoinRunners();  // whoever has cleared the stop meanwhile
  }

  const allstop::Coordinator& shared() const noexcept { return shared_; }

  // From now on Join waits for `runner`. FAILED_PRECONDITION: stopped; the runner is
  // destroyed then. INVALID_ARGUMENT: null.
  Status RegisterRunner(std::unique_ptr<Runner> runner) {
    if (!runner) return Status(ALLSTOP_INVALID_ARGUMENT, "The runner must not be null.");
    const std::lock_guard<std::mutex> lock(mutex_);
    if (ShouldStop()) {
      return Status(ALLSTOP_FAILED_PRECONDITION, "The coordinator has been stopped.");
    }
    runners_.push_back(std::move(runner));
    return Status();
  }

  // True if there is none. A guess, as any may end or be registered meanwhile.
  bool AllRunnersStopped() const {
    const std::deque<std::shared_ptr<Runner>> runners = Runners();  // they may call in again
    return std::none_of(runners.begin(), runners.end(),
                        [](const auto& runner) { return runner->IsRunning(); });
  }

  // FAILED_PRECONDITION: it is stopped already, by whomever.
  Status RequestStop() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (requesting_ || ShouldStop()) {
        return Status(ALLSTOP_FAILED_PRECONDITION, "The Coordinator is not running.");
      }
      requesting_ = true;
    }
    const allstop_status status = shared_.RequestStop();  // calls out
    const std::lock_guard<std::mutex> lock(mutex_);
    requesting_ = false;
    return Status(status, "The stop could not be requested");
  }

  bool ShouldStop() const noexcept { return shared_.ShouldStop(); }

  // Blocks until a stop is requested.
  void WaitForStop() const noexcept { shared_.WaitForStop(); }

  // Keeps the first status that is neither OK nor of a clean-stop type, and stops
  // nobody. A join() in JavaScript throws it once a stop without an error has come.
  void ReportStatus(const Status& status) {
    if (!status.ok()) shared_.ReportError(view::ErrorOf(status));
  }

  // The error that stopped it, from whatever thread, else the first status that was
  // reported. As Coordinator::FirstError, it may wait for a moment.
  // STOPPED_BY_ERROR: an error that is of no class with a code of ours.
  Status GetStatus() const {
    const std::optional<Error> error = shared_.FirstError();
    return error ? Status(view::CodeOf(error->code), error->message) : Status();
  }

  // FAILED_PRECONDITION before a stop. Joins the runners in the order in which they
  // were registered, reports what each came to, and lets go of them. Blocks, without
  // a grace period. What GetStatus says then.
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
    // One after the other, and listed until it has ended, for AllRunnersStopped.
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
  std::mutex join_mutex_;     // a second join waits for the first, and only one removes
  mutable std::mutex mutex_;  // taken last; guards what follows
  std::deque<std::shared_ptr<Runner>> runners_;
  bool requesting_ = false;  // so that of two requests here, one is told
};

}  // inline namespace catching or not_catching
}  // namespace tensorflow
}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_TENSORFLOW_HPP_
