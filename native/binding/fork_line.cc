#include "fork_line.h"

#include <map>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "../core/background_thread.h"
#include "../core/condition_variable.h"
#include "../core/coordinator.h"
#include "../core/identity.h"
#include "../core/unseen_errors.h"
#include "convert.h"
#include "environment.h"
#include "fork_frame.h"
#include "fork_pipe.h"
#include "native_attachment.h"
#include "parent_watch.h"
#include "word_mirror.h"

namespace allstop::binding {
namespace {

using Kind = ForkFrame::Kind;

// Empty: the pipe has ended, or what comes is no frame, or there is no memory for it.
std::optional<ForkFrame> ReadFrame(const ChildsEnd& input) {
  constexpr std::size_t kMostBytes = std::size_t{1} << 30;
  std::string length(4, '\0');
  if (!input.Read(length)) return std::nullopt;
  std::size_t size = 0;
  for (int i = 3; i >= 0; --i) size = size << 8 | static_cast<unsigned char>(length[i]);
  if (size > kMostBytes) return std::nullopt;
  try {
    std::string body(size, '\0');
    if (!input.Read(body)) return std::nullopt;
    return ForkFrame::Decode(body);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
}

ForkFrame StopFrame(const core::StopRecord& record) {
  ForkFrame frame;
  frame.kind = Kind::kStop;
  frame.id = record.id;
  frame.error = record.error;
  frame.requester = record.RequesterWithin(10);  // the stop does not wait for its stack
  return frame;
}

core::StopRequest ToRequest(ForkFrame frame) {
  core::StopRequest request;
  request.error = std::move(frame.error);
  request.requester = std::move(frame.requester);
  request.record_id = std::move(frame.id);
  request.has_caller = false;
  return request;
}

class ParentEnd final : public core::Observer, public Closable {
 public:
  explicit ParentEnd(std::shared_ptr<core::Coordinator> coordinator)
      : coordinator_(std::move(coordinator)) {}

  // The thread holds `self`: the stop reaches the child also when the JavaScript thread that has
  // forked it has ended.
  static void Start(const std::shared_ptr<ParentEnd>& self) {
    self->coordinator_->AddObserver(self, nullptr);
    self->coordinator_->SetInterested(*self, true);
    try {
      core::StartBackgroundThread([self] { self->Run(); });
    } catch (...) {
      self->coordinator_->RemoveObserver(*self);
      throw;
    }
  }

  void OnStop() override { down_.Wake(); }
  Napi::Value ChildsEnd(Napi::Env env) const { return down_.ChildsEnd(env); }
  void CloseChildsEnd() { down_.CloseChildsEnd(); }

  // From now on the line outlives the environment.
  void Keep() {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_kept_ = true;
  }

  void RefuseAnswer() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_refused_ = true;
    }
    down_.Wake();
  }
  void Cancel(std::uint64_t call, std::shared_ptr<const core::EncodedError> reason) {
    ForkFrame frame;
    frame.kind = Kind::kCancel;
    frame.id = std::to_string(call);
    frame.error = std::move(reason);
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      cancels_.push_back(std::move(frame));
    }
    down_.Wake();
  }
  void End() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_ended_ = true;
    }
    down_.Wake();
  }
  bool has_stopped() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return has_stopped_;
  }

  // The environment ends: nothing reads the child's stops any more. Frees the line's id. The line
  // ends now; one that is kept, with the stop.
  void Close() override;

  std::uint64_t id = 0;
  std::uint64_t token = 0;

 private:
  void Run() {
    try {
      Serve();
    } catch (const std::bad_alloc&) {  // the child is told by the end of the line
    }
    coordinator_->RemoveObserver(*this);
    down_.Close();
  }

  void Serve() {
    bool said_hello = false;
    bool said_none = false;
    for (bool is_open = true; is_open;) {
      // TakeUnseen: a stop that was cleared at once. View: a stop from before the line.
      auto record = coordinator_->TakeUnseen(*this);
      if (!record) record = coordinator_->View().record;
      bool is_refused = false;
      bool is_last = false;
      std::vector<ForkFrame> cancels;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (is_ended_) break;
        if (has_stopped_) record = nullptr;
        if (record) has_stopped_ = true;
        is_refused = is_refused_ && !has_stopped_ && !said_none;
        is_last = is_closed_ && (has_stopped_ || !is_kept_);
        cancels.swap(cancels_);
      }
      ForkFrame frame;
      if (record) {
        is_open = down_.Write(StopFrame(*record).Encode());
      } else if (!said_hello) {
        is_open = down_.Write(frame.Encode());
      }
      said_hello = true;
      if (is_refused) {
        frame.kind = Kind::kNone;
        is_open = down_.Write(frame.Encode());
        said_none = true;
      }
      for (const ForkFrame& cancel : cancels) is_open = is_open && down_.Write(cancel.Encode());
      is_open = is_open && !is_last && down_.Wait();
    }
  }

  const std::shared_ptr<core::Coordinator> coordinator_;
  PipeDown down_;
  std::mutex mutex_;
  // Guarded by mutex_.
  std::vector<ForkFrame> cancels_;  // not sent yet
  bool is_refused_ = false;
  bool is_kept_ = false;
  bool is_closed_ = false;
  bool is_ended_ = false;
  bool has_stopped_ = false;
};

// The lines that this process has opened, by id. Never destroyed.
struct Lines {
  std::mutex mutex;
  std::uint64_t next = 1;
  std::map<std::uint64_t, std::shared_ptr<ParentEnd>> open;

  static Lines& Get() {
    static auto* const lines = new Lines;
    return *lines;
  }
  std::shared_ptr<ParentEnd> Find(std::uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = open.find(id);
    return found == open.end() ? nullptr : found->second;
  }
  void Remove(std::uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex);
    open.erase(id);
  }
};

void ParentEnd::Close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_closed_ = true;
  }
  RefuseAnswer();
  Lines::Get().Remove(id);  // the thread holds this object
}

class ChildEnd final : public core::Observer, public Closable {
 public:
  ChildEnd(std::shared_ptr<core::Coordinator> coordinator, ChildsEnd input, ChildsEnd output,
           std::int64_t parent)
      : coordinator_(std::move(coordinator)), input_(input), output_(output), parent_(parent) {}

  void OnStop() override { Wake(); }
  void OnError() override { Wake(); }

  static void Start(const std::shared_ptr<ChildEnd>& self) {
    self->coordinator_->AddObserver(self, nullptr);
    self->coordinator_->SetInterested(*self, true);
    if (!Listen(self)) return;
    core::StartBackgroundThread([self] {
      for (;;) {
        self->AwaitWake();
        if (self->coordinator_->ShouldStop()) self->SendAll();
      }
    });
  }

  // Called before Listen, in a worker process: from then on `has_cancelled` is set when
  // TakeCancelled has something new, and the process ends `orphan_grace_ms` after the line.
  void ServeCluster(std::shared_ptr<WordMirror> has_cancelled, std::uint64_t orphan_grace_ms) {
    has_cancelled_ = std::move(has_cancelled);
    orphan_grace_ms_ = orphan_grace_ms;
  }
  // The cancelled calls that this method has not returned before.
  std::vector<ForkFrame> TakeCancelled() {
    std::vector<ForkFrame> taken;
    const std::lock_guard<std::mutex> lock(mutex_);
    taken.swap(cancelled_);
    return taken;
  }

  // The environment ends, and with it the memory of the word.
  void Close() override {
    if (has_cancelled_) has_cancelled_->End();
  }

  // Serves the parent's frames on a thread, the first of them here. False: the parent of a forked
  // process has ended.
  static bool Listen(const std::shared_ptr<ChildEnd>& self) {
    self->coordinator_->AwaitAnswer();
    if (!self->Receive() && !self->has_cancelled_) return false;
    core::StartBackgroundThread([self] {
      while (self->Receive()) {
      }
      if (self->has_cancelled_) EndProcessAfter(self->orphan_grace_ms_);
    });
    return true;
  }

  // Sends this process's own stop, unless it was sent, or the parent has answered.
  void SendStop() {
    const auto record = coordinator_->View().record;
    if (!record || !record->IsProvisional()) return;
    Send(StopFrame(*record));
  }

  // Sends what the parent has not been told: the stop, and the errors beside it.
  void SendAll() {
    SendStop();
    const core::StopView view = coordinator_->View();
    if (view.reported.error) SendError(Kind::kReported, view.reported);
    for (const core::SuppressedError& each : view.suppressed) {
      const core::Via via = each.origin->Get().via;
      const bool is_reported = !view.record || via == core::Via::kHook || via == core::Via::kDefer;
      SendError(is_reported ? Kind::kReported : Kind::kLate, each);
    }
  }

  void Send(const ForkFrame& frame) {
    bool is_sent = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const bool is_new = sent_.insert(frame.id).second;
      is_sent = (!is_new && frame.kind != Kind::kDying) || output_.Write(frame.Encode());
      if (!is_sent) sent_.erase(frame.id);
    }
    // The parent has the error now: it sees to it that the program is given it.
    if (is_sent && frame.error) core::UnseenErrors::Give(frame.id);
    if (!is_sent) coordinator_->AnswerNone();
  }

 private:
  // Serves one frame of the parent's. False: the parent has ended.
  bool Receive() {
    auto frame = ReadFrame(input_);
    if (!frame) {
      Orphaned();
      return false;
    }
    if (frame->kind == Kind::kNone) coordinator_->AnswerNone();
    if (frame->kind == Kind::kCancel && has_cancelled_) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        cancelled_.push_back(std::move(*frame));
      }
      has_cancelled_->Store();
      return true;
    }
    if (frame->kind == Kind::kStop) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        sent_.insert(frame->id);
      }
      coordinator_->AnswerStop(ToRequest(std::move(*frame)));
    }
    return true;
  }

  void SendError(Kind kind, const core::SuppressedError& kept) {
    Send({kind, kept.error->fields().id, kept.error, kept.origin->Get()});
  }

  void Wake() {
    const std::lock_guard<std::mutex> lock(wake_mutex_);
    is_woken_ = true;
    wakes_.notify_one();
  }

  void AwaitWake() {
    std::unique_lock<std::mutex> lock(wake_mutex_);
    wakes_.wait(lock, [this] { return is_woken_; });
    is_woken_ = false;
  }

  void Orphaned() {
    core::ErrorFields fields;
    fields.name = "UnavailableError";
    fields.message = "The parent process " + std::to_string(parent_) +
                     (has_cancelled_ ? ", or its thread that made this cluster," : "") +
                     " has ended: nothing stops or joins this process any more";
    core::EncodedError::Complete(fields);
    core::StopRequest request;
    request.error = core::EncodedError::Encode(std::move(fields));
    request.requester = core::ThisNativeThread(core::Via::kClose);
    request.has_caller = false;
    if (!coordinator_->ShouldStop()) coordinator_->RequestStop(request);
    coordinator_->AnswerNone();
  }

  const std::shared_ptr<core::Coordinator> coordinator_;
  const ChildsEnd input_;
  const ChildsEnd output_;  // of no pipe: this end only listens
  const std::int64_t parent_;
  std::mutex wake_mutex_;  // last in the lock order
  core::ConditionVariable wakes_;
  bool is_woken_ = false;  // guarded by wake_mutex_: OnStop was called since the last AwaitWake
  std::mutex mutex_;
  // Guarded by mutex_.
  std::set<std::string> sent_;  // ids that the parent has
  std::vector<ForkFrame> cancelled_;
  // Set once, by ServeCluster.
  std::shared_ptr<WordMirror> has_cancelled_;  // null in a forked process
  std::uint64_t orphan_grace_ms_ = 0;
};

// The line to the parent of this process; null if there is none. Set once, by the main thread, and
// never destroyed.
std::shared_ptr<ChildEnd>& ToParent() {
  static auto* const line = new std::shared_ptr<ChildEnd>;
  return *line;
}

}  // namespace

Napi::Value OpenForkLine(const Napi::CallbackInfo& info) {
  const auto environment = Environment::Of(info);
  const auto* attachment = NativeAttachment::Unwrap(ObjectArgument(info, 0));
  auto line = std::make_shared<ParentEnd>(attachment->coordinator());
  // Before the line is open: this may throw.
  Napi::Object opened = Napi::Object::New(info.Env());
  Define(opened, "end", line->ChildsEnd(info.Env()));
  auto& lines = Lines::Get();
  {
    const std::lock_guard<std::mutex> lock(lines.mutex);
    line->id = lines.next++;
  }
  Define(opened, "id", static_cast<double>(line->id));
  line->token = environment->Add(*line);
  try {
    {
      const std::lock_guard<std::mutex> lock(lines.mutex);
      lines.open.emplace(line->id, line);
    }
    ParentEnd::Start(line);
  } catch (...) {  // the system has no thread left
    environment->Remove(line->token);
    lines.Remove(line->id);
    throw;
  }
  return opened;
}

Napi::Value CloseForkDescriptor(const Napi::CallbackInfo& info) {
  if (const auto line = Lines::Get().Find(IdArgument(info, 0))) line->CloseChildsEnd();
  return info.Env().Undefined();
}

Napi::Value IdentityOfDescriptor(const Napi::CallbackInfo& info) {
  return Napi::String::New(info.Env(), IdentityOf(static_cast<int>(IdArgument(info, 0))));
}

Napi::Value KeepForkLine(const Napi::CallbackInfo& info) {
  if (const auto line = Lines::Get().Find(IdArgument(info, 0))) line->Keep();
  return info.Env().Undefined();
}

Napi::Value ForkLineHasStopped(const Napi::CallbackInfo& info) {
  const auto line = Lines::Get().Find(IdArgument(info, 0));
  return Napi::Boolean::New(info.Env(), line && line->has_stopped());
}

Napi::Value RefuseForkAnswer(const Napi::CallbackInfo& info) {
  if (const auto line = Lines::Get().Find(IdArgument(info, 0))) line->RefuseAnswer();
  return info.Env().Undefined();
}

Napi::Value CancelForkedCall(const Napi::CallbackInfo& info) {
  if (const auto line = Lines::Get().Find(IdArgument(info, 0))) {
    line->Cancel(IdArgument(info, 1), ErrorArgument(info, 2));
  }
  return info.Env().Undefined();
}

Napi::Value CloseForkLine(const Napi::CallbackInfo& info) {
  const auto line = Lines::Get().Find(IdArgument(info, 0));
  if (!line) return info.Env().Undefined();
  Environment::Of(info)->Remove(line->token);
  Lines::Get().Remove(line->id);
  line->End();
  return info.Env().Undefined();
}

Napi::Value AttachToParent(const Napi::CallbackInfo& info) {
  const auto* attachment = NativeAttachment::Unwrap(ObjectArgument(info, 0));
  const auto input = ChildsEnd::OfDown(info[1]);
  const auto output = ChildsEnd::OfUp(static_cast<int>(IdArgument(info, 2)));
  const auto parent = static_cast<std::int64_t>(IdArgument(info, 3));
  ToParent() = std::make_shared<ChildEnd>(attachment->coordinator(), input, output, parent);
  ChildEnd::Start(ToParent());
  return info.Env().Undefined();
}

Napi::Value ListenToParent(const Napi::CallbackInfo& info) {
  const auto* attachment = NativeAttachment::Unwrap(ObjectArgument(info, 0));
  const auto input = ChildsEnd::OfDown(info[1]);
  const auto parent = static_cast<std::int64_t>(IdArgument(info, 2));
  const auto line =
      std::make_shared<ChildEnd>(attachment->coordinator(), input, ChildsEnd(), parent);
  line->ServeCluster(std::make_shared<WordMirror>(info[3], 0, 1), IdArgument(info, 4));
  ToParent() = line;
  Environment::Of(info)->Add(*line);
  ChildEnd::Listen(line);
  return info.Env().Undefined();
}

Napi::Value TakeCancelledCalls(const Napi::CallbackInfo& info) {
  Napi::Array taken = Napi::Array::New(info.Env());
  for (const ForkFrame& frame : ToParent()->TakeCancelled()) {
    Napi::Object call = Napi::Object::New(info.Env());
    Define(call, "id", static_cast<double>(std::stoull(frame.id)));
    Define(call, "reason", ErrorBytes(info.Env(), frame.error));
    taken.Set(taken.Length(), call);
  }
  return taken;
}

Napi::Value SendToParent(const Napi::CallbackInfo& info) {
  const auto line = ToParent();
  line->SendAll();
  if (const auto error = ErrorArgument(info, 0)) {
    const auto requester = Environment::Of(info)->ThisThread(core::Via::kUncaught);
    line->Send({Kind::kDying, error->fields().id, error, requester});
  }
  return info.Env().Undefined();
}

Napi::Value SendExitCode(const Napi::CallbackInfo& info) {
  ForkFrame frame;
  frame.kind = Kind::kExiting;
  frame.id = std::to_string(IdArgument(info, 0));
  ToParent()->Send(frame);
  return info.Env().Undefined();
}

Napi::Value ReadForkFrame(const Napi::CallbackInfo& info) {
  auto frame = ForkFrame::Decode(BytesArgument(info, 0));
  if (!frame) return info.Env().Null();
  core::StopRecord record;
  record.id = std::move(frame->id);
  record.error = std::move(frame->error);
  record.own_origin.Begin(std::move(frame->requester));
  record.own_origin.Complete({});
  Napi::Object object = ToJs(info.Env(), record).As<Napi::Object>();
  Define(object, "frame", static_cast<double>(frame->kind));
  return object;
}

}  // namespace allstop::binding
