/// @file allstop_queue_runner.hpp
/// allstop::QueueRunner, after TensorFlow's: threads that keep a queue filled.
///
/// The names and results are those of tensorflow/cc/training/queue_runner.h, with C++
/// functions instead of the ops of a graph. "Ours" marks where a QueueRunner differs from
/// TensorFlow's.
#ifndef ALLSTOP_ALLSTOP_QUEUE_RUNNER_HPP_
#define ALLSTOP_ALLSTOP_QUEUE_RUNNER_HPP_

#include <algorithm>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "allstop.hpp"
#include "allstop_bounded_queue.hpp"
#include "allstop_queue_runner_threads.hpp"
#include "allstop_runner.hpp"

// Xlib.h defines a macro of this name.
#pragma push_macro("Status")
#undef Status

namespace allstop {

// allstop.hpp says why this type has another name in a file without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
inline namespace catching {
#else
inline namespace not_catching {
#endif

/// Keeps a queue filled: calls each of its ops again and again, each op on its own thread.
///
/// @code
///   std::unique_ptr<allstop::QueueRunner> runner;
///   allstop::Status status = allstop::QueueRunner::New(queue, {ReadLine}, {}, coord, &runner);
///   if (status.ok()) status = runner->Start();
/// @endcode
///
/// How an op ends
///   - A status of `queue_closed_statuses` ends the op's thread without an error, and so does
///     (ours) CANCELLED after a stop. The other ops go on.
///   - An exception ends it, too. An Error or a StopError whose `code` or else `name` is that of
///     a status (ERR_ALLSTOP_OUT_OF_RANGE, OutOfRangeError) counts as this status, and so ends the
///     thread without an error if the status does: ours, as in JavaScript. Any other exception
///     has the status STOPPED_BY_ERROR, with the type and what().
///   - Any other status than OK is an error. Join returns the first error. Without a
///     coordinator the other ops go on. With a coordinator, each error requests a stop; ours:
///     the error is that of the stop (TensorFlow's QueueRunner reports the error and requests
///     a stop without one). After a completed join, the error is kept as suppressed.
///
/// When the last op has ended
///   - close_op is called. Ours: also if an op ended by an error, so that consumers never hang;
///     the stop for that error is requested first. Ours: if close_op fails, the queue is closed.
///
/// On a stop of the coordinator
///   - All ops end, even if the stop is cleared at once. A thread of its own, close_on_stop,
///     calls cancel_op, so that a full queue delays no op. Ours: close_on_stop also ends when
///     the last op has ended. (TensorFlow's goes on waiting for a stop, and so do joins.)
///
/// Errors of close_op and cancel_op: Join returns them like those of ops. They are reported to
/// the coordinator (ReportError), but request no stop.
///
/// Threads: all threads of the runner are registered with the coordinator, so its joins wait
/// for them. Every method may be called on any thread; while the destructor runs, no other
/// method may be called. The ops, close_op, cancel_op and the error callbacks are called
/// without a lock and may call any method here. close_op, cancel_op and the callbacks must not
/// own the runner, and a callback must not throw.
class QueueRunner final : public Runner {
 public:
  using Op = QueueOp;
  using Options = QueueRunnerOptions;

  /// Creates a runner without a coordinator. Such a runner ends only when its ops end: close
  /// its queue before you join it, or before a tensorflow::Coordinator does. Does not block.
  ///
  /// @param[out] created unchanged unless OK
  /// @returns INVALID_ARGUMENT if there are no ops, if an op is an empty function, or if
  ///   `queue` is an empty object; UNAVAILABLE or RESOURCE_EXHAUSTED as from allstop_create
  static Status New(BoundedQueue queue, std::vector<Op> enqueue_ops, Options options,
                    std::unique_ptr<QueueRunner>* created) {
    if (!queue) return Status(ALLSTOP_INVALID_ARGUMENT, kNoQueue);
    allstop_coordinator ending = {};
    const allstop_status status = allstop_create(queue.handle()->table, nullptr, &ending);
    if (status != ALLSTOP_OK) return Status(status, kNotCreated);
    return Make(std::move(queue), std::move(enqueue_ops), std::move(options), Coordinator(),
                Coordinator(ending), created);
  }
  /// Creates a runner that ends on a stop of `coord` (for a tensorflow::Coordinator, pass its
  /// shared()). A stop between New and Start counts, also if it is cleared. Otherwise as above.
  ///
  /// @returns also INVALID_ARGUMENT if `coord` is an empty object, and the statuses of
  ///   allstop_child instead of those of allstop_create
  static Status New(BoundedQueue queue, std::vector<Op> enqueue_ops, Options options,
                    const Coordinator& coord, std::unique_ptr<QueueRunner>* created) {
    if (!coord) {
      return Status(ALLSTOP_INVALID_ARGUMENT,
                    "The Coordinator of a QueueRunner is an empty object");
    }
    allstop_coordinator ending = {};
    const allstop_status status = allstop_child(coord.handle(), nullptr, &ending);
    if (status != ALLSTOP_OK) return Status(status, kNotCreated);
    return Make(std::move(queue), std::move(enqueue_ops), std::move(options), coord,
                Coordinator(ending), created);
  }
  QueueRunner(const QueueRunner&) = delete;
  QueueRunner& operator=(const QueueRunner&) = delete;
  /// Ours: if threads of the runner are alive, ends them as a stop would, without a stop of the
  /// coordinator: calls cancel_op, closes the queue as Close(true) does, and joins.
  /// (TensorFlow's destructor only joins.) Blocks until the ops have returned; an op that waits
  /// for something other than the queue must be woken by cancel_op. On one of the runner's own
  /// threads, the destructor does not wait.
  ~QueueRunner() override {
    state_->Cancel();
    if (state_->IsOnOwnThread()) {
      for (Thread& thread : threads_) thread.Detach();
    } else {
      Join().IgnoreError();
    }
  }

  /// Starts a thread for each op, "QueueRunnerThread-NAME-OP", and with a coordinator one more,
  /// "QueueRunnerThread-NAME-close_on_stop". If `wait_for_first_attempts` is above 0, blocks
  /// for at most that time until each op has returned from its first call.
  ///
  /// @returns
  ///   - OK;
  ///   - the status of the first op that did not return OK from its first call, also if it is
  ///     one of `queue_closed_statuses`;
  ///   - CANCELLED if a stop ended an op before its first call;
  ///   - DEADLINE_EXCEEDED if the time has passed; the threads go on;
  ///   - FAILED_PRECONDITION if the runner was started before;
  ///   - RESOURCE_EXHAUSTED if a thread cannot be created; the threads that were created have
  ///     been told to end. Without exceptions, the process ends.
  Status Start(Milliseconds wait_for_first_attempts = Milliseconds(0)) {
    const Status status = StartThreads();
    if (!status.ok() || !(wait_for_first_attempts > Milliseconds(0))) return status;
    return state_->AwaitFirstAttempts(wait_for_first_attempts);
  }

  /// Blocks until all threads have ended, without telling them to end. Returns at once if the
  /// runner was never started.
  ///
  /// @returns the first error, or OK; SELF_JOIN (ours) on one of the runner's own threads
  Status Join() override {
    if (state_->IsOnOwnThread()) {
      return Status(ALLSTOP_SELF_JOIN, "A thread of the QueueRunner '" + name() +
                                           "' cannot join that runner: it would wait for its own "
                                           "end");
    }
    Status status = state_->AwaitEnd();
    const std::lock_guard<std::mutex> lock(threads_mutex_);
    for (Thread& thread : threads_) thread.Join();  // short: these threads have done their work
    return status;
  }

  /// The first error so far, or OK. Does not block.
  Status GetStatus() const { return state_->status(); }

  /// True from construction until all threads have ended. Does not block. (TensorFlow's: until
  /// cancel_op has returned, so without a coordinator always.)
  bool IsRunning() const override { return state_->IsRunning(); }

  /// Adds a callback for the first error of the runner. It is called once, on the thread that
  /// has the error; never, if there was an error before this call.
  void AddErrorCallback(std::function<void(const Status&)> callback) {
    state_->AddErrorCallback(std::move(callback));
  }
  /// Removes all error callbacks.
  void ClearErrorCallbacks() { state_->ClearErrorCallbacks(); }

  const std::string& name() const noexcept { return state_->options().name; }

 private:
  static constexpr const char* kNoQueue = "The BoundedQueue of a QueueRunner is an empty object";
  static constexpr const char* kNotCreated =
      "The QueueRunner could not create the coordinator that ends its threads";

  QueueRunner(std::shared_ptr<internal::QueueRunnerState> state, std::vector<Op> ops)
      : state_(std::move(state)), ops_(std::move(ops)) {}

  static Status Make(BoundedQueue queue, std::vector<Op> ops, Options options, Coordinator coord,
                     Coordinator ending, std::unique_ptr<QueueRunner>* created) {
    if (!queue) return Status(ALLSTOP_INVALID_ARGUMENT, kNoQueue);
    if (ops.empty()) return Status(ALLSTOP_INVALID_ARGUMENT, "A QueueRunner needs at least one op");
    if (std::any_of(ops.begin(), ops.end(), [](const Op& op) { return !op; })) {
      return Status(ALLSTOP_INVALID_ARGUMENT, "An op of the QueueRunner is an empty function");
    }
    if (options.name.empty()) options.name = queue.name();
    options.op_names.resize(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) {
      std::string& name = options.op_names[i];
      if (name.empty()) name = "op-" + std::to_string(i + 1);
    }
    const auto close = [](bool cancel) {
      return [cancel](const BoundedQueue& closing) {
        closing.Close(cancel);
        return Status();
      };
    };
    if (!options.close_op) options.close_op = close(false);
    if (!options.cancel_op) options.cancel_op = close(true);
    auto state = std::make_shared<internal::QueueRunnerState>(
        std::move(queue), std::move(options), ops.size(), std::move(coord), std::move(ending));
    created->reset(new QueueRunner(std::move(state), std::move(ops)));
    return Status();
  }

  Status StartThreads() {
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
    try {
      return CreateThreads();
    } catch (const std::exception& error) {
      state_->Cancel();
      return Status(
          ALLSTOP_RESOURCE_EXHAUSTED,
          "The QueueRunner '" + name() + "' could not create its threads: " + view::TextOf(error));
    }
#else
    return CreateThreads();
#endif
  }

  Status CreateThreads() {
    std::vector<internal::OpThread> ops;
    std::unique_lock<std::mutex> lock(threads_mutex_);
    if (state_->has_begun()) {
      return Status(ALLSTOP_FAILED_PRECONDITION,
                    "The QueueRunner '" + name() + "' was started before; it starts only once");
    }
    ops.reserve(ops_.size());
    threads_.reserve(ops_.size() + 1);
    for (Op& op : ops_) ops.emplace_back(state_, std::move(op));
    ops_.clear();
    // After the ops are counted as live threads: otherwise IsRunning would be false for a moment.
    state_->Begin();
    lock.unlock();
    // No lock is held where a thread is created: if it cannot be, the ops without a thread end, and
    // call close_op.
    const auto create = [this](const std::string& thread_name, auto function) {
      Thread thread(state_->registry(), "QueueRunnerThread-" + name() + "-" + thread_name,
                    std::move(function));
      const std::lock_guard<std::mutex> guard(threads_mutex_);
      threads_.push_back(std::move(thread));
    };
    if (state_->has_coordinator()) create("close_on_stop", internal::CloseOnStopThread(state_));
    for (std::size_t i = 0; i < ops.size(); ++i) {
      create(state_->options().op_names[i], std::move(ops[i]));
    }
    return Status();
  }

  const std::shared_ptr<internal::QueueRunnerState> state_;
  std::mutex threads_mutex_;  // guards the members below; taken before the mutex of state_
  std::vector<Op> ops_;       // empty once started
  std::vector<Thread> threads_;
};

}  // inline namespace catching or not_catching
}  // namespace allstop

#pragma pop_macro("Status")

#endif  // ALLSTOP_ALLSTOP_QUEUE_RUNNER_HPP_
