#include "fork_line.h"

#if !defined(_WIN32)

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "../core/coordinator.h"
#include "../core/identity.h"
#include "../core/unseen_errors.h"
#include "convert.h"
#include "environment.h"
#include "fork_frame.h"
#include "native_attachment.h"

namespace allstop::binding {
namespace {

using Kind = ForkFrame::Kind;

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe OpenPipe() {
  int ends[2];
#if defined(__linux__)
  const int result = pipe2(ends, O_CLOEXEC);
#else
  const int result = pipe(ends);
#endif
  if (result != 0) throw std::system_error(errno, std::generic_category(), "cannot open a pipe");
#if !defined(__linux__)
  for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
#endif
  return {ends[0], ends[1]};
}

bool WriteAll(int descriptor, const std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written = write(descriptor, bytes.data() + done, bytes.size() - done);
    if (written > 0) {
      done += static_cast<std::size_t>(written);
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool ReadAll(int descriptor, std::string& bytes) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(descriptor, bytes.data() + done, bytes.size() - done);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

// Empty: the pipe has ended.
std::optional<ForkFrame> ReadFrame(int descriptor) {
  std::string length(4, '\0');
  if (!ReadAll(descriptor, length)) return std::nullopt;
  std::size_t size = 0;
  for (int i = 3; i >= 0; --i) size = size << 8 | static_cast<unsigned char>(length[i]);
  std::string body(size, '\0');
  if (!ReadAll(descriptor, body)) return std::nullopt;
  return ForkFrame::Decode(body);
}

// Starts a thread on which no signal handler runs, and which does not keep the process alive.
template <typename Body>
void StartThread(Body body) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    std::thread(std::move(body)).detach();
  } catch (...) {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    throw;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ForkFrame StopFrame(const core::StopRecord& record) {
  ForkFrame frame;
  frame.kind = Kind::kStop;
  frame.id = record.id;
  frame.error = record.error;
  frame.requester = record.RequesterWithin(10);  // its stack may come late: the stop must not
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

// A descriptor that OnStop and others make readable. Each end of a line has one.
class Waker : public core::Observer {
 public:
  Waker() : pipe_(OpenPipe()) {
    for (const int end : {pipe_.read_end, pipe_.write_end}) fcntl(end, F_SETFL, O_NONBLOCK);
  }
  ~Waker() override {
    close(pipe_.read_end);
    close(pipe_.write_end);
  }

  void OnStop() override { Wake(); }
  void Wake() {
    if (write(pipe_.write_end, "", 1) < 0) return;
  }  // full: the thread will wake anyway

  // Waits until Wake was called. False: nothing reads `output` any more (if it is not -1).
  bool Wait(int output) const {
    pollfd ends[] = {{pipe_.read_end, POLLIN, 0}, {output, 0, 0}};
    while (poll(ends, 2, -1) == -1 && errno == EINTR) {
    }
    char drained[64];
    while (read(pipe_.read_end, drained, sizeof drained) > 0) {
    }
    return ends[1].revents == 0;
  }

 private:
  const Pipe pipe_;
};

class ParentEnd final : public Waker, public Closable {
 public:
  ParentEnd(std::shared_ptr<core::Coordinator> coordinator, int output)
      : coordinator_(std::move(coordinator)), output_(output) {}

  // The thread holds `self`: the stop reaches the child also when the JavaScript thread that has
  // forked it has ended.
  static void Start(const std::shared_ptr<ParentEnd>& self) {
    self->coordinator_->AddObserver(self, nullptr);
    self->coordinator_->SetInterested(*self, true);
    StartThread([self] { self->Run(); });
  }

  void RefuseAnswer() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_refused_ = true;
    }
    Wake();
  }
  void End() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      is_ended_ = true;
    }
    Wake();
  }
  bool has_stopped() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return has_stopped_;
  }

  // The environment ends: nothing reads the child's stops any more. Frees the line's id.
  void Close() override;

  std::uint64_t id = 0;
  std::uint64_t token = 0;

 private:
  void Run() {
    bool said_hello = false;
    bool said_none = false;
    for (bool is_open = true; is_open;) {
      // TakeUnseen: a stop that was cleared at once. View: a stop from before the line.
      auto record = coordinator_->TakeUnseen(*this);
      if (!record) record = coordinator_->View().record;
      bool is_refused = false;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (is_ended_) break;
        if (has_stopped_) record = nullptr;
        if (record) has_stopped_ = true;
        is_refused = is_refused_ && !has_stopped_ && !said_none;
      }
      ForkFrame frame;
      if (record) {
        is_open = WriteAll(output_, StopFrame(*record).Encode());
      } else if (!said_hello) {
        is_open = WriteAll(output_, frame.Encode());
      }
      said_hello = true;
      if (is_refused) {
        frame.kind = Kind::kNone;
        is_open = WriteAll(output_, frame.Encode());
        said_none = true;
      }
      if (is_open) is_open = Wait(output_);
    }
    coordinator_->RemoveObserver(*this);
    close(output_);
  }

  const std::shared_ptr<core::Coordinator> coordinator_;
  const int output_;  // used and closed by the thread
  std::mutex mutex_;
  // Guarded by mutex_.
  bool is_refused_ = false;
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
  RefuseAnswer();
  Lines::Get().Remove(id);  // the thread holds this object
}

class ChildEnd final : public Waker {
 public:
  ChildEnd(std::shared_ptr<core::Coordinator> coordinator, int input, int output,
           std::int64_t parent)
      : coordinator_(std::move(coordinator)), input_(input), output_(output), parent_(parent) {}

  static void Start(const std::shared_ptr<ChildEnd>& self) {
    self->coordinator_->AddObserver(self, nullptr);
    self->coordinator_->SetInterested(*self, true);
    if (!Listen(self)) return;
    StartThread([self] {
      while (self->Wait(-1)) self->SendStop();
    });
  }

  // Serves the parent's frames on a thread, the first of them here. False: the parent has ended.
  static bool Listen(const std::shared_ptr<ChildEnd>& self) {
    self->coordinator_->AwaitAnswer();
    if (!self->Receive()) return false;
    StartThread([self] {
      while (self->Receive()) {
      }
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
    for (const auto& [error, origin] : coordinator_->View().suppressed) {
      Send({Kind::kLate, error->fields().id, error, origin->Get()});
    }
  }

  void Send(const ForkFrame& frame) {
    bool is_sent = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (frame.kind != Kind::kDying && !sent_.insert(frame.id).second) return;
      is_sent = WriteAll(output_, frame.Encode());
    }
    // The parent has the error now: it sees to it that the program is given it.
    if (is_sent && frame.error) core::UnseenErrors::Get().Give(frame.id);
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
    if (frame->kind == Kind::kStop) {
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        sent_.insert(frame->id);
      }
      coordinator_->AnswerStop(ToRequest(std::move(*frame)));
    }
    return true;
  }

  void Orphaned() {
    core::ErrorFields fields;
    fields.name = "UnavailableError";
    fields.message = "The parent process " + std::to_string(parent_) +
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
  const int input_;
  const int output_;  // -1: this end only listens
  const std::int64_t parent_;
  std::mutex mutex_;
  std::set<std::string> sent_;  // guarded by mutex_: ids that the parent has
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
  const Pipe pipe = OpenPipe();
  auto line = std::make_shared<ParentEnd>(attachment->coordinator(), pipe.write_end);
  auto& lines = Lines::Get();
  {
    const std::lock_guard<std::mutex> lock(lines.mutex);
    line->id = lines.next++;
    lines.open.emplace(line->id, line);
  }
  line->token = environment->Add(*line);
  ParentEnd::Start(line);
  Napi::Object opened = Napi::Object::New(info.Env());
  Define(opened, "id", static_cast<double>(line->id));
  Define(opened, "descriptor", pipe.read_end);
  return opened;
}

Napi::Value CloseForkDescriptor(const Napi::CallbackInfo& info) {
  close(static_cast<int>(IdArgument(info, 0)));
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
  const int input = static_cast<int>(IdArgument(info, 1));
  const int output = static_cast<int>(IdArgument(info, 2));
  const auto parent = static_cast<std::int64_t>(IdArgument(info, 3));
  for (const int descriptor : {input, output}) fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  ToParent() = std::make_shared<ChildEnd>(attachment->coordinator(), input, output, parent);
  ChildEnd::Start(ToParent());
  return info.Env().Undefined();
}

Napi::Value ListenToParent(const Napi::CallbackInfo& info) {
  const auto* attachment = NativeAttachment::Unwrap(ObjectArgument(info, 0));
  const int input = static_cast<int>(IdArgument(info, 1));
  const auto parent = static_cast<std::int64_t>(IdArgument(info, 2));
  fcntl(input, F_SETFD, FD_CLOEXEC);
  ChildEnd::Listen(std::make_shared<ChildEnd>(attachment->coordinator(), input, -1, parent));
  return info.Env().Undefined();
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

#endif
