// allstop_queue_runner.hpp - TensorFlow's C++ QueueRunner: threads that keep a queue
// filled. Part of allstop.hpp, which includes it.
//
// The names and what each call comes to are those of
// tensorflow/cc/training/queue_runner.h, with functions for the ops of its graph. What
// differs says "ours".
#ifndef ALLSTOP_ALLSTOP_QUEUE_RUNNER_HPP_
#define ALLSTOP_ALLSTOP_QUEUE_RUNNER_HPP_

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
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

namespace allstop {

// As in allstop.hpp: another type in a file compiled without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
#define ALLSTOP_QUEUE_RUNNER_HPP_CATCHES 1
inline namespace catching {
#else
#define ALLSTOP_QUEUE_RUNNER_HPP_CATCHES 0
inline namespace not_catching {
#endif

// One attempt at something with the queue, mostly Enqueue. May throw.
using QueueOp = std::function<Status(const BoundedQueue&)>;

struct QueueRunnerOptions {
  std::string name = {};  // the queue's, if it is empty
  // Of the ops, in their order. One that is left out or empty is `op-1`, `op-2` ...
  std::vector<std::string> op_names = {};
  QueueOp close_op = {};   // instead of queue.Close()
  QueueOp cancel_op = {};  // instead of queue.Close(true)
  // What an op says when it has come to its end. Ours: of an empty list, nothing is.
  std::vector<allstop_status> queue_closed_statuses = {ALLSTOP_OUT_OF_RANGE};
};

namespace internal {

#if ALLSTOP_QUEUE_RUNNER_HPP_CATCHES
// In a catch block: the exception as RunThread would report it.
inline Status StatusOfCaught() {
  Status status;
  allstop_error error = {};
  DescribeCaught(
      error, nullptr, 0,
      [](void* described, const allstop_error& caught) {
        const std::string type = view::ToString(caught.native_type);
        const std::string what = view::ToString(caught.message);
        *static_cast<Status*>(described) = Status(view::CodeOf(view::ToString(caught.code)),
                                                  type.empty() ? what : type + ": " + what);
      },
      &status);
  return status;
}
#endif

// What the threads of a QueueRunner share. Each of them owns it, as the runner may be
// gone before they are.
//
// Invariants
//   1. `ending_` is stopped, and stays so, before anybody can notice a stop of the
//      coordinator (it is its child, and never cleared): an op that is CANCELLED by the
//      stop is never taken for one that has failed.
//   2. No function of the user's is called, and no stop requested, under mutex_.
//   3. threads_ counts a thread from before it is created until all is done that it does
//      here; an op is among ops_ until what it captured is destroyed.
class QueueRunnerState {
 public:
  // `coord` may hold nothing; `ending` is its child, or stands alone.
  QueueRunnerState(BoundedQueue queue, QueueRunnerOptions options, std::size_t ops,
                   Coordinator coord, Coordinator ending)
      : queue_(std::move(queue)),
        options_(std::move(options)),
        coord_(std::move(coord)),
        ending_(std::move(ending)),
        ops_(ops),
        unattempted_(ops) {}

  const BoundedQueue& queue() const { return queue_; }
  const QueueRunnerOptions& options() const { return options_; }
  bool has_coordinator() const { return static_cast<bool>(coord_); }
  // Which the threads are registered with.
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
    return !has_begun_ || threads_ > 0;
  }

  // A thread: before it is created, on itself, and when it is done or never came to be.
  void AddThread() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++threads_;
  }
  void Enter() {
    const std::lock_guard<std::mutex> lock(mutex_);
    inside_.push_back(std::this_thread::get_id());
  }
  void Leave() {
    const std::lock_guard<std::mutex> lock(mutex_);
    inside_.erase(std::remove(inside_.begin(), inside_.end(), std::this_thread::get_id()),
                  inside_.end());
    --threads_;
    changed_.notify_all();
  }
  bool IsInside() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return std::find(inside_.begin(), inside_.end(), std::this_thread::get_id()) != inside_.end();
  }

  void FirstAttempt(const Status& status) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (first_attempts_.ok()) first_attempts_ = status;
    --unattempted_;
    changed_.notify_all();
  }

  // True: it is an error. The first one is what Join comes to.
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

  void EndOp() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (--ops_ > 0) return;
    }
    CallLast(options_.close_op);
    {
      // Only now: if close_op blocks, a stop cancels it.
      const std::lock_guard<std::mutex> lock(mutex_);
      has_closed_unstopped_ = !ShouldEnd();
    }
    ending_.RequestStop();  // wakes CancelOnStop
  }

  void CancelOnStop() {
    ending_.WaitForStop();
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (has_closed_unstopped_) return;
    }
    CallLast(options_.cancel_op);
  }

  // For a runner that goes, or cannot start: ends what is still running.
  void Cancel() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (threads_ == 0) return;
    }
    ending_.RequestStop();
    if (!coord_) CallLast(options_.cancel_op);  // there is no CancelOnStop
    queue_.Close(true);                         // cancel_op may do something else
  }

  Status AwaitFirstAttempts(Milliseconds timeout) {
    constexpr Milliseconds kAlmostForever = std::chrono::hours(24 * 365);  // no overflow
    const auto until = std::chrono::steady_clock::now() +
                       std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                           (std::min)(timeout, kAlmostForever));
    std::unique_lock<std::mutex> lock(mutex_);
    if (!changed_.wait_until(lock, until, [this] { return unattempted_ == 0; })) {
      return Status(ALLSTOP_DEADLINE_EXCEEDED, "The queue was not fed before the timeout");
    }
    return first_attempts_;
  }

  Status status() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return status_;
  }
  Status AwaitEnd() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return threads_ == 0; });
    return status_;
  }

  void AddErrorCallback(std::function<void(const Status&)> callback) {
    const std::lock_guard<std::mutex> lock(mutex_);
    callbacks_.push_back(std::move(callback));
  }
  void ClearErrorCallbacks() {
    std::vector<std::function<void(const Status&)>> callbacks;  // destroyed without the lock
    const std::lock_guard<std::mutex> lock(mutex_);
    callbacks.swap(callbacks_);
  }

 private:
  // Of close_op and cancel_op: what they fail with is told, and stops nobody.
  void CallLast(const QueueOp& op) {
    const Status status = Call(op);
    if (Report(status) && coord_) coord_.ReportError(view::ErrorOf(status));
  }

  Status Call(const QueueOp& op) const {
#if ALLSTOP_QUEUE_RUNNER_HPP_CATCHES
    try {
      return op(queue_);
    } catch (...) {
      return StatusOfCaught();
    }
#else
    return op(queue_);
#endif
  }

  const BoundedQueue queue_;
  const QueueRunnerOptions options_;
  const Coordinator coord_;
  const Coordinator ending_;  // stopped by a stop, by the last op's end, or by Cancel

  mutable std::mutex mutex_;  // guards what follows; taken last
  std::condition_variable changed_;
  bool has_begun_ = false;
  bool has_closed_unstopped_ = false;
  std::size_t threads_ = 0;
  std::size_t ops_;
  std::size_t unattempted_;
  std::vector<std::thread::id> inside_;
  Status first_attempts_;  // the first that failed
  Status status_;
  std::vector<std::function<void(const Status&)>> callbacks_;
};

// A thread's part in the state; as it moves with the thread's function, it is given back
// however the thread ends or fails to begin.
class QueueRunnerThread {
 public:
  explicit QueueRunnerThread(std::shared_ptr<QueueRunnerState> state) : state_(std::move(state)) {
    state_->AddThread();
  }
  QueueRunnerThread(QueueRunnerThread&&) noexcept = default;
  QueueRunnerThread& operator=(QueueRunnerThread&&) = delete;
  ~QueueRunnerThread() {
    if (state_) state_->Leave();
  }

 protected:
  std::shared_ptr<QueueRunnerState> state_;  // null: moved from
};

class CloseOnStopThread : private QueueRunnerThread {
 public:
  using QueueRunnerThread::QueueRunnerThread;

  void operator()() const {
    state_->Enter();
    state_->CancelOnStop();
  }
};

// The same for an op, which is called somewhere else.
class OpThreadPart : public QueueRunnerThread {
 public:
  using QueueRunnerThread::QueueRunnerThread;
  OpThreadPart(OpThreadPart&&) noexcept = default;
  OpThreadPart& operator=(OpThreadPart&&) = delete;
  ~OpThreadPart() {
    if (!state_) return;
    HasAttempted(Status(ALLSTOP_CANCELLED, "The QueueRunner ended before the first attempt"));
    state_->EndOp();
  }

  QueueRunnerState& state() { return *state_; }
  void HasAttempted(const Status& status) {
    if (!std::exchange(has_attempted_, true)) state_->FirstAttempt(status);
  }

 private:
  bool has_attempted_ = false;
};

class OpThread {
 public:
  OpThread(std::shared_ptr<QueueRunnerState> state, QueueOp op)
      : part_(std::move(state)), op_(std::move(op)) {}

  // A failure requests the stop before the queue is closed: consumers must be able to
  // tell a stream that broke off from one that has ended.
  void operator()(const Coordinator& coord) {
    part_.state().Enter();
#if ALLSTOP_QUEUE_RUNNER_HPP_CATCHES
    StopOnException(coord, [&] {
      try {
        Run(coord);
#if defined(__GLIBCXX__)
      } catch (const abi::__forced_unwind&) {
        throw;
#endif
      } catch (...) {
        const Status status = StatusOfCaught();
        part_.HasAttempted(status);
        if (part_.state().Report(status) && part_.state().has_coordinator()) throw;
      }
    });
#else
    Run(coord);
#endif
  }

 private:
  void Run(const Coordinator& coord) {
    QueueRunnerState& state = part_.state();
    Status status;
    while (status.ok() && !state.ShouldEnd()) {
      status = op_(state.queue());
      part_.HasAttempted(status);
    }
    if (state.Report(status) && state.has_coordinator()) coord.RequestStop(view::ErrorOf(status));
  }

  // In this order: what the op captured, which may be the runner itself, is destroyed
  // while the thread still counts as one of the runner's.
  OpThreadPart part_;
  QueueOp op_;
};

}  // namespace internal

// Keeps a queue filled: each op is called again and again, on a thread of its own.
//
//   std::unique_ptr<allstop::QueueRunner> runner;
//   allstop::Status status = allstop::QueueRunner::New(queue, {ReadLine}, {}, coord, &runner);
//   if (status.ok()) status = runner->Start();
//
//   - A status of `queue_closed_statuses` ends that thread, quietly; so does (ours)
//     CANCELLED once a stop was requested. The others go on.
//   - Any other status but OK, and what an op throws, is an error: the first is what Join
//     comes to (of an exception: STOPPED_BY_ERROR, with the type and what()). Without a
//     coordinator the others go on. With one each requests a stop, ours with the error.
//     (TensorFlow's reports it, and requests a plain stop.)
//   - When the last op has ended, close_op is called. Ours: by whatever cause, so that
//     consumers never hang; after an error, when its stop has been requested.
//   - A stop of the coordinator ends the threads, even if it is cleared at once, and
//     cancel_op is called, on a thread for that, so that nobody is held up by a full
//     queue. Ours: that thread ends with the last op. (TensorFlow's waits on for a stop,
//     and a join for it.)
//   - What close_op and cancel_op fail with is an error for Join. To the coordinator it is
//     reported (ReportError), and requests no stop.
//
// The threads are registered with the coordinator, so its joins wait for them. Every
// method may be called on any thread, but for the destructor. The ops, close_op,
// cancel_op and the error callbacks are called with no lock held, and may call anything
// here; the last three must not own the runner, and a callback must not throw.
class QueueRunner final : public Runner {
 public:
  using Op = QueueOp;
  using Options = QueueRunnerOptions;

  // Without a coordinator. A runner like that ends with its ops alone: whoever else
  // joins it, as a tensorflow::Coordinator, closes its queue first.
  // INVALID_ARGUMENT: no ops, an empty function among them, or a queue that holds
  // nothing. UNAVAILABLE and RESOURCE_EXHAUSTED as from allstop_create. Nothing is
  // created then.
  static Status New(BoundedQueue queue, std::vector<Op> enqueue_ops, Options options,
                    std::unique_ptr<QueueRunner>* created) {
    if (!queue) return Status(ALLSTOP_INVALID_ARGUMENT, kNoQueue);
    allstop_coordinator ending = {};
    const allstop_status status = allstop_create(queue.handle()->table, nullptr, &ending);
    if (status != ALLSTOP_OK) return Status(status, "A QueueRunner cannot be made");
    return Make(std::move(queue), std::move(enqueue_ops), std::move(options), Coordinator(),
                Coordinator(ending), created);
  }
  // On the stop of `coord` (of a tensorflow::Coordinator: shared()). A stop that comes
  // from now on counts, also before Start. INVALID_ARGUMENT, too: `coord` holds nothing.
  // The others as from allstop_child.
  static Status New(BoundedQueue queue, std::vector<Op> enqueue_ops, Options options,
                    const Coordinator& coord, std::unique_ptr<QueueRunner>* created) {
    if (!coord) {
      return Status(ALLSTOP_INVALID_ARGUMENT, "The coordinator of a QueueRunner holds nothing");
    }
    allstop_coordinator ending = {};
    const allstop_status status = allstop_child(coord.handle(), nullptr, &ending);
    if (status != ALLSTOP_OK) return Status(status, "A QueueRunner cannot be made");
    return Make(std::move(queue), std::move(enqueue_ops), std::move(options), coord,
                Coordinator(ending), created);
  }
  QueueRunner(const QueueRunner&) = delete;
  QueueRunner& operator=(const QueueRunner&) = delete;
  // Ours: ends what is still running as a stop would, but for this runner only, closes
  // the queue as by Close(true), and joins. (TensorFlow's only joins.) Blocks until the
  // ops return: one that waits for anything else than the queue is for cancel_op to
  // wake. On one of its own threads it does not wait.
  ~QueueRunner() override {
    state_->Cancel();
    if (state_->IsInside()) {
      for (Thread& thread : threads_) thread.Detach();
    } else {
      Join().IgnoreError();
    }
  }

  // Starts a thread for each op, `QueueRunnerThread-NAME-OP`, and with a coordinator
  // `QueueRunnerThread-NAME-close_on_stop`. With a time to wait it blocks until each op
  // has returned for the first time, and is the first failure of those, also one of
  // `queue_closed_statuses`; CANCELLED: an op was never called, because of a stop.
  // DEADLINE_EXCEEDED: it took longer, and all go on.
  // FAILED_PRECONDITION: it was started before. RESOURCE_EXHAUSTED: a thread cannot be
  // created (without exceptions, the process ends); those that were have been told to
  // end.
  Status Start(Milliseconds wait_for_first_attempts = Milliseconds(0)) {
    const Status status = StartThreads();
    if (!status.ok() || !(wait_for_first_attempts > Milliseconds(0))) return status;
    return state_->AwaitFirstAttempts(wait_for_first_attempts);
  }

  // Blocks until all threads have ended; at once if it was never started. The first
  // error. Does not ask them to end. SELF_JOIN (ours): on one of its own threads.
  Status Join() override {
    if (state_->IsInside()) {
      return Status(ALLSTOP_SELF_JOIN,
                    "A thread cannot join its QueueRunner: it would wait for its own end");
    }
    Status status = state_->AwaitEnd();
    const std::lock_guard<std::mutex> lock(threads_mutex_);
    for (Thread& thread : threads_) thread.Join();  // which has nothing left to do
    return status;
  }

  // The first error until now.
  Status GetStatus() const { return state_->status(); }

  // From construction until all threads have ended. (TensorFlow: until cancel_op has
  // returned; without a coordinator for ever.)
  bool IsRunning() const override { return state_->IsRunning(); }

  // Called once, with the first error that comes from now on if there was none before,
  // on the thread that has it.
  void AddErrorCallback(std::function<void(const Status&)> callback) {
    state_->AddErrorCallback(std::move(callback));
  }
  void ClearErrorCallbacks() { state_->ClearErrorCallbacks(); }

  const std::string& name() const noexcept { return state_->options().name; }

 private:
  static constexpr const char* kNoQueue = "The queue of a QueueRunner holds nothing";

  QueueRunner(std::shared_ptr<internal::QueueRunnerState> state, std::vector<Op> ops)
      : state_(std::move(state)), ops_(std::move(ops)) {}

  static Status Make(BoundedQueue queue, std::vector<Op> ops, Options options, Coordinator coord,
                     Coordinator ending, std::unique_ptr<QueueRunner>* created) {
    if (!queue) return Status(ALLSTOP_INVALID_ARGUMENT, kNoQueue);
    if (ops.empty()) return Status(ALLSTOP_INVALID_ARGUMENT, "A QueueRunner needs an op at least");
    if (std::any_of(ops.begin(), ops.end(), [](const Op& op) { return !op; })) {
      return Status(ALLSTOP_INVALID_ARGUMENT, "An op of a QueueRunner must not be empty");
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
#if ALLSTOP_QUEUE_RUNNER_HPP_CATCHES
    try {
      return CreateThreads();
    } catch (const std::exception& error) {
      state_->Cancel();
      return Status(ALLSTOP_RESOURCE_EXHAUSTED,
                    "A thread of a QueueRunner cannot be created: " + std::string(error.what()));
    }
#else
    return CreateThreads();
#endif
  }

  Status CreateThreads() {
    std::vector<internal::OpThread> ops;  // those that are left end here, without the lock
    const std::lock_guard<std::mutex> lock(threads_mutex_);
    if (state_->has_begun()) {
      return Status(ALLSTOP_FAILED_PRECONDITION, "The QueueRunner was started before");
    }
    ops.reserve(ops_.size());
    threads_.reserve(ops_.size() + 1);
    for (Op& op : ops_) ops.emplace_back(state_, std::move(op));  // counted from here on
    ops_.clear();
    state_->Begin();  // only now, or for a moment it would not be running
    const Coordinator& registry = state_->registry();
    const std::string prefix = "QueueRunnerThread-" + name() + "-";
    if (state_->has_coordinator()) {
      threads_.emplace_back(registry, prefix + "close_on_stop",
                            internal::CloseOnStopThread(state_));
    }
    for (std::size_t i = 0; i < ops.size(); ++i) {
      threads_.emplace_back(registry, prefix + state_->options().op_names[i], std::move(ops[i]));
    }
    return Status();
  }

  const std::shared_ptr<internal::QueueRunnerState> state_;
  std::mutex threads_mutex_;  // guards what follows; taken before the state's
  std::vector<Op> ops_;       // until it is started
  std::vector<Thread> threads_;
};

}  // inline namespace catching or not_catching
}  // namespace allstop

#undef ALLSTOP_QUEUE_RUNNER_HPP_CATCHES

#endif  // ALLSTOP_ALLSTOP_QUEUE_RUNNER_HPP_
