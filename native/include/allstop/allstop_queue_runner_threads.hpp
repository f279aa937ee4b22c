/// @file allstop_queue_runner_threads.hpp
/// The threads of a QueueRunner and what they share. Part of allstop_queue_runner.hpp, which
/// includes it. Only QueueRunnerOptions and QueueOp are for you to use.

#ifndef ALLSTOP_ALLSTOP_QUEUE_RUNNER_THREADS_HPP_
#define ALLSTOP_ALLSTOP_QUEUE_RUNNER_THREADS_HPP_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allstop.hpp"
#include "allstop_bounded_queue.hpp"
#include "allstop_runner.hpp"

// Xlib.h defines a macro of this name.
#pragma push_macro("Status")
#undef Status

namespace allstop {

// allstop.hpp says why these types have other names in a file without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define ALLSTOP_QUEUE_RUNNER_HPP_CATCHES 1
inline namespace catching {
#else
#define ALLSTOP_QUEUE_RUNNER_HPP_CATCHES 0
inline namespace not_catching {
#endif

/// One step of filling the queue, usually one Enqueue. It may block, and it may throw; see
/// QueueRunner.
using QueueOp = std::function<Status(const BoundedQueue&)>;

struct QueueRunnerOptions {
  /// Part of the threads' names. Default: the name of the queue.
  std::string name = {};
  /// The names of the ops, in the order of the ops. An op without a name, or with an empty one,
  /// is called "op-N", where N counts the ops from 1.
  std::vector<std::string> op_names = {};
  /// Called instead of queue.Close() when the last op has ended. If it fails, the queue is closed.
  QueueOp close_op = {};
  /// Called instead of queue.Close(true) on a stop.
  QueueOp cancel_op = {};
  /// The statuses with which an op says that its input has ended. Ours: an empty list means
  /// that no status says so (with TensorFlow, it means OUT_OF_RANGE).
  std::vector<allstop_status> queue_closed_statuses = {ALLSTOP_OUT_OF_RANGE};
};

namespace internal {

#if ALLSTOP_QUEUE_RUNNER_HPP_CATCHES
// Call in a catch block. The caught exception as a Status: the status for the code or name of an
// Error or StopError, else STOPPED_BY_ERROR; and "TYPE: what()".
inline Status StatusOfCaught(const Coordinator& coord) {
  Status status;
  allstop_error error = {};
  DescribeCaught(
      coord, error, nullptr, 0,
      [](void* described, const allstop_error& caught) {
        const std::string type = view::ToString(caught.native_type);
        const std::string what = view::ToString(caught.message);
        *static_cast<Status*>(described) =
            Status(view::CodeOf(view::ToString(caught.code), view::ToString(caught.name)),
                   type.empty() ? what : type + ": " + what);
      },
      &status);
  return status;
}
#endif

// The state that a QueueRunner shares with its threads. The runner and each thread own it
// together, because a runner that is destroyed on one of its threads ends before that thread.
//
// Invariants
//   1. When any thread can notice a stop of the coordinator, `ending_` is stopped already, and
//      it stays stopped (`ending_` is a child of the coordinator, and is never cleared). This
//      is why an op that returns CANCELLED because of the stop never counts as failed, even
//      if the stop is cleared at once.
//   2. No function of the program is called, and no stop is requested, under mutex_: either
//      may call back into the runner.
//   3. live_threads_ counts a thread from before its creation until the thread has done its
//      last step here, and live_ops_ counts an op until the op's captures are destroyed. So
//      AwaitEnd returns only after all of that.
class QueueRunnerState {
 public:
  // `coord` may be empty. `ending` is a child of `coord`, or independent if `coord` is empty.
  QueueRunnerState(BoundedQueue queue, QueueRunnerOptions options, std::size_t ops,
                   Coordinator coord, Coordinator ending)
      : queue_(std::move(queue)),
        options_(std::move(options)),
        coord_(std::move(coord)),
        ending_(std::move(ending)),
        live_ops_(ops),
        unattempted_ops_(ops) {}

  const BoundedQueue& queue() const { return queue_; }
  const QueueRunnerOptions& options() const { return options_; }
  bool has_coordinator() const { return static_cast<bool>(coord_); }
  // The coordinator that the threads are registered with.
  const Coordinator& registry() const { return coord_ ? coord_ : ending_; }
  bool ShouldEnd() const { return ending_.ShouldStop(); }

  void Begin() {
    const std::lock_guard<std::mutex> lock(mutex_);
    has_begun_ = true;
  }
  bool has_begun() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return has_begun_;
  }
  bool IsRunning() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return !has_begun_ || live_threads_ > 0;
  }

  // The life of a thread: AddThread before the thread is created, Enter on the thread, and
  // Leave at its end, or when it could not be created.
  void AddThread() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++live_threads_;
  }
  void Enter() {
    const std::lock_guard<std::mutex> lock(mutex_);
    own_threads_.push_back(std::this_thread::get_id());
  }
  void Leave() {
    const std::lock_guard<std::mutex> lock(mutex_);
    own_threads_.erase(
        std::remove(own_threads_.begin(), own_threads_.end(), std::this_thread::get_id()),
        own_threads_.end());
    --live_threads_;
    changed_.notify_all();
  }
  // Whether the calling thread is one of the runner's.
  bool IsOnOwnThread() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::find(own_threads_.begin(), own_threads_.end(), std::this_thread::get_id()) !=
           own_threads_.end();
  }

  // Once for each op: the result of its first attempt.
  void NoteFirstAttempt(const Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_attempts_.ok()) first_attempts_ = status;
    --unattempted_ops_;
    changed_.notify_all();
  }

  // Returns true if `status` is an error. Keeps the first error, for Join, and calls the error
  // callbacks with it.
  bool Report(const Status& status) {
    const std::vector<allstop_status>& closed = options_.queue_closed_statuses;
    if (status.ok() || std::find(closed.begin(), closed.end(), status.code()) != closed.end()) {
      return false;
    }
    if (status.code() == ALLSTOP_CANCELLED && ShouldEnd()) return false;
    std::vector<std::function<void(const Status&)>> callbacks;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (!status_.ok()) return true;
      status_ = status;
      callbacks = callbacks_;
    }
    for (const auto& callback : callbacks) callback(status);
    return true;
  }

  // At the end of each op's thread. The last one closes the queue.
  void EndOp() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (--live_ops_ > 0) return;
    }
    // As a destructor, since close_op may end its thread (pthread_exit).
    struct Closing {
      QueueRunnerState& state;
      bool is_closed;
      ~Closing() { state.AfterCloseOp(is_closed); }
    } closing{*this, false};
    closing.is_closed = CallFinalOp(options_.close_op);
  }

  // The work of the thread "close_on_stop". Blocks until a stop, or until the last op has ended.
  void CancelOnStop() {
    ending_.WaitForStop();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (closed_without_stop_) return;
    }
    CallFinalOp(options_.cancel_op);
  }

  // Tells all live threads to end, without a stop of the coordinator: for a runner that is
  // destroyed, or whose Start has failed.
  void Cancel() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (live_threads_ == 0) return;
    }
    ending_.RequestStop();
    if (!coord_) CallFinalOp(options_.cancel_op);  // no thread close_on_stop calls it
    queue_.Close(true);  // a cancel_op of the program's own may leave the queue open
  }

  Status AwaitFirstAttempts(Milliseconds timeout) {
    constexpr Milliseconds kLongest = std::chrono::hours(24 * 365);  // infinity would overflow
    const auto until = std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           (std::min)(timeout, kLongest));
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_until(lock, until, [this] { return unattempted_ops_ == 0; })) {
      return Status(ALLSTOP_DEADLINE_EXCEEDED,
                    "Start of the QueueRunner '" + options_.name +
                        "' timed out: an op has not returned from its first call");
    }
    return first_attempts_;
  }

  Status status() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }
  Status AwaitEnd() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return live_threads_ == 0; });
    return status_;
  }

  void AddErrorCallback(std::function<void(const Status&)> callback) {
    const std::lock_guard<std::mutex> lock(mutex_);
    callbacks_.push_back(std::move(callback));
  }
  void ClearErrorCallbacks() {
    // Declared before the lock, so that the callbacks are destroyed after it (invariant 2).
    std::vector<std::function<void(const Status&)>> callbacks;
    const std::lock_guard<std::mutex> lock(mutex_);
    callbacks.swap(callbacks_);
  }

 private:
  void AfterCloseOp(bool is_closed) {
    if (!is_closed) queue_.Close();
    {
      // Set only after close_op: while close_op blocks, a stop must still call cancel_op.
      const std::lock_guard<std::mutex> lock(mutex_);
      closed_without_stop_ = !ShouldEnd();
    }
    ending_.RequestStop();  // wakes CancelOnStop, whose thread is to end, too
  }

  // Calls close_op or cancel_op. Returns false if it fails: that is reported, but requests no stop.
  bool CallFinalOp(const QueueOp& op) {
    const Status status = Call(op);
    if (Report(status) && coord_) coord_.ReportError(view::ErrorOf(status));
    return status.ok();
  }

  ALLSTOP_HPP_CATCHES_UNWINDING Status Call(const QueueOp& op) const {
#if ALLSTOP_QUEUE_RUNNER_HPP_CATCHES
    try {
      return op(queue_);
#if defined(__GLIBCXX__)
    } catch (const abi::__forced_unwind&) {
      throw;
#endif
    } catch (...) {
      return StatusOfCaught(registry());
    }
#else
    return op(queue_);
#endif
  }

  const BoundedQueue queue_;
  const QueueRunnerOptions options_;
  const Coordinator coord_;
  // Stopped by a stop of coord_, by the end of the last op, or by Cancel. Never cleared.
  const Coordinator ending_;

  mutable std::mutex mutex_;  // guards the members below; the last one in the lock order
  std::condition_variable changed_;
  bool has_begun_ = false;
  bool closed_without_stop_ = false;  // the last op has ended and closed the queue, unstopped
  std::size_t live_threads_ = 0;
  std::size_t live_ops_;
  std::size_t unattempted_ops_;  // ops whose first call has not returned
  std::vector<std::thread::id> own_threads_;
  Status first_attempts_;  // the first failure among the first calls of the ops
  Status status_;          // the first error
  std::vector<std::function<void(const Status&)>> callbacks_;
};

// Counts one thread in the state, from its construction to its destruction. It is a member of
// the thread's function and moves with it, so its destructor calls Leave however the thread
// ends, and also if the thread cannot be created.
class QueueRunnerThreadPart {
 public:
  explicit QueueRunnerThreadPart(std::shared_ptr<QueueRunnerState> state)
      : state_(std::move(state)) {
    state_->AddThread();
  }
  QueueRunnerThreadPart(QueueRunnerThreadPart&&) noexcept = default;
  QueueRunnerThreadPart& operator=(QueueRunnerThreadPart&&) = delete;
  ~QueueRunnerThreadPart() {
    if (state_) state_->Leave();
  }

 protected:
  std::shared_ptr<QueueRunnerState> state_;  // null once moved from
};

// The function of the thread "close_on_stop".
class CloseOnStopThread : private QueueRunnerThreadPart {
 public:
  using QueueRunnerThreadPart::QueueRunnerThreadPart;

  void operator()() const {
    state_->Enter();
    state_->CancelOnStop();
  }
};

// Counts the thread of an op. End, or else its destructor, ends the op, and notes a first attempt
// if there was none.
class OpThreadPart : public QueueRunnerThreadPart {
 public:
  using QueueRunnerThreadPart::QueueRunnerThreadPart;
  OpThreadPart(OpThreadPart&&) noexcept = default;
  OpThreadPart& operator=(OpThreadPart&&) = delete;
  ~OpThreadPart() {
    if (state_) End();
  }
  void End() {
    if (std::exchange(has_ended_, true)) return;
    NoteAttempt(Status(ALLSTOP_CANCELLED, "The QueueRunner ended before it had called this op"));
    state_->EndOp();
  }

  QueueRunnerState& state() { return *state_; }
  // After each call of the op. Only the first one counts.
  void NoteAttempt(const Status& status) {
    if (!std::exchange(has_attempted_, true)) state_->NoteFirstAttempt(status);
  }

 private:
  bool has_attempted_ = false;
  bool has_ended_ = false;
};

// The function of an op's thread: calls the op until the op or the runner ends.
class OpThread {
 public:
  OpThread(std::shared_ptr<QueueRunnerState> state, QueueOp op)
      : part_(std::move(state)), op_(std::move(op)) {}

  // If the op fails, this requests the stop, and only afterwards closes the queue: a consumer that
  // finds the queue closed must be able to see from the stop that the stream broke off instead of
  // ending. An error whose stop was refused goes with the end of the thread.
  Unrecorded operator()(const Coordinator& coord) {
    part_.state().Enter();
    Unrecorded unrecorded;
#if ALLSTOP_QUEUE_RUNNER_HPP_CATCHES
    StopOnException(coord, [&]() ALLSTOP_HPP_CATCHES_UNWINDING {
      try {
        unrecorded = Run(coord);
#if defined(__GLIBCXX__)
      } catch (const abi::__forced_unwind&) {
        throw;
#endif
      } catch (...) {
        const Status status = StatusOfCaught(coord);
        part_.NoteAttempt(status);
        if (part_.state().Report(status) && part_.state().has_coordinator()) throw;
      }
    });
#else
    unrecorded = Run(coord);
#endif
    op_ = nullptr;
    part_.End();  // here, since pthread_exit in close_op must not leave a destructor
    return unrecorded;
  }

 private:
  Unrecorded Run(const Coordinator& coord) {
    QueueRunnerState& state = part_.state();
    Status status;
    while (status.ok() && !state.ShouldEnd()) {
      status = op_(state.queue());
      part_.NoteAttempt(status);
    }
    if (!state.Report(status) || !state.has_coordinator()) return {};
    Error error = view::ErrorOf(status);
    if (coord.RequestStop(error) == ALLSTOP_OK) return {};
    return {std::move(error)};
  }

  // op_ is declared last, so it is destroyed first: the op's captures, which may own the runner
  // itself, are destroyed while part_ still counts this thread as one of the runner's.
  OpThreadPart part_;
  QueueOp op_;
};

}  // namespace internal

}  // inline namespace catching or not_catching
}  // namespace allstop

#undef ALLSTOP_QUEUE_RUNNER_HPP_CATCHES

#pragma pop_macro("Status")

#endif  // ALLSTOP_ALLSTOP_QUEUE_RUNNER_THREADS_HPP_
