#if defined(_WIN32)

#include <windows.h>
// After windows.h.
#include <sddl.h>

#include <algorithm>
#include <cstring>
#include <system_error>

#include "../core/identity.h"
#include "fork_pipe.h"

namespace allstop::binding {
namespace {

constexpr DWORD kPipeBytes = 64 * 1024;

std::system_error LastError(const char* what) {
  return {static_cast<int>(GetLastError()), std::system_category(), what};
}

HANDLE MakeEvent(bool is_manual) {
  const HANDLE event = CreateEventW(nullptr, is_manual ? TRUE : FALSE, FALSE, nullptr);
  if (event == nullptr) throw LastError("cannot make an event");
  return event;
}

// Only this user may open the pipe: by default everybody may read it.
HANDLE MakePipe(const std::string& name) {
  SECURITY_ATTRIBUTES security{sizeof security, nullptr, FALSE};
  if (!ConvertStringSecurityDescriptorToSecurityDescriptorA(
          "D:P(A;;GA;;;OW)", SDDL_REVISION_1, &security.lpSecurityDescriptor, nullptr)) {
    throw LastError("cannot make the permissions of a pipe");
  }
  const HANDLE pipe = CreateNamedPipeA(
      name.c_str(), PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | FILE_FLAG_FIRST_PIPE_INSTANCE,
      PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS, 1, kPipeBytes,
      kPipeBytes, 0, &security);
  const std::system_error error = LastError("cannot open a pipe");
  LocalFree(security.lpSecurityDescriptor);
  if (pipe == INVALID_HANDLE_VALUE) throw error;
  return pipe;
}

// The handle of a descriptor with which this process was started, or null. The C run-time library
// in the addon is not Node's and does not know Node's descriptors, so this looks where every such
// library looks: at the count, the flags and the handles that the parent has handed over.
HANDLE InheritedHandle(int descriptor) {
  STARTUPINFOW info{};
  GetStartupInfoW(&info);
  int count = 0;
  if (info.lpReserved2 == nullptr || info.cbReserved2 < sizeof count) return nullptr;
  std::memcpy(&count, info.lpReserved2, sizeof count);
  const std::size_t at = sizeof count + count + sizeof(HANDLE) * descriptor;
  if (descriptor < 0 || descriptor >= count || at + sizeof(HANDLE) > info.cbReserved2) {
    return nullptr;
  }
  HANDLE handle = nullptr;
  std::memcpy(&handle, info.lpReserved2 + at, sizeof handle);
  return handle == INVALID_HANDLE_VALUE ? nullptr : handle;
}

}  // namespace

// The child opens the pipe once. From then on a read is pending, which ends with the child's end,
// as the child never writes. The line's thread begins what is pending: Windows cancels it when that
// thread ends.
struct PipeDown::State {
  std::string name;
  HANDLE pipe = nullptr;
  HANDLE wakes = nullptr;  // set by Wake
  // The line's thread only, as are those below: the connection, then the read.
  OVERLAPPED pending{};
  OVERLAPPED writing{};
  bool is_begun = false;
  bool is_open = false;  // the child has opened its end
  bool is_broken = false;
  char read = 0;
  std::string kept;  // what was written before the child has opened its end

  void Connect() {
    if (is_begun) return;
    is_begun = true;
    if (ConnectNamedPipe(pipe, &pending)) return;
    if (GetLastError() == ERROR_PIPE_CONNECTED)
      Open();
    else if (GetLastError() != ERROR_IO_PENDING)
      is_broken = true;
  }

  void Open() {
    is_open = true;
    Read();
    if (!kept.empty()) Write(kept);
    kept.clear();
  }

  void Read() {
    if (!ReadFile(pipe, &read, 1, nullptr, &pending) && GetLastError() != ERROR_IO_PENDING) {
      is_broken = true;
    }
  }

  bool Write(const std::string& bytes) {
    for (std::size_t done = 0; done < bytes.size() && !is_broken;) {
      DWORD written = 0;
      const auto size = static_cast<DWORD>(std::min<std::size_t>(bytes.size() - done, 1 << 30));
      const bool has_begun = WriteFile(pipe, bytes.data() + done, size, nullptr, &writing) != 0 ||
                             GetLastError() == ERROR_IO_PENDING;
      if (!has_begun || !GetOverlappedResult(pipe, &writing, &written, TRUE)) is_broken = true;
      done += written;
    }
    return !is_broken;
  }

  // `pending` has ended.
  void Advance() {
    DWORD count = 0;
    if (!GetOverlappedResult(pipe, &pending, &count, FALSE))
      is_broken = true;
    else if (is_open)
      Read();
    else
      Open();
  }

  void ClosePipe() {
    if (pipe == nullptr) return;
    DWORD count = 0;
    if (CancelIoEx(pipe, &pending)) GetOverlappedResult(pipe, &pending, &count, TRUE);
    CloseHandle(pipe);
    pipe = nullptr;
  }

  void Close() {
    ClosePipe();
    for (const HANDLE event : {wakes, pending.hEvent, writing.hEvent}) {
      if (event != nullptr) CloseHandle(event);
    }
  }
};

PipeDown::PipeDown() : state_(std::make_unique<State>()) {
  try {
    state_->wakes = MakeEvent(false);
    state_->pending.hEvent = MakeEvent(true);
    state_->writing.hEvent = MakeEvent(true);
    state_->name = "\\\\.\\pipe\\allstop-" + core::NextIdentity();
    state_->pipe = MakePipe(state_->name);
  } catch (...) {
    state_->Close();
    throw;
  }
}

PipeDown::~PipeDown() { state_->Close(); }

Napi::Value PipeDown::ChildsEnd(Napi::Env env) const {
  return Napi::String::New(env, state_->name);
}

bool PipeDown::Write(const std::string& bytes) {
  state_->Connect();
  if (state_->is_open) return state_->Write(bytes);
  state_->kept += bytes;
  return !state_->is_broken;
}

bool PipeDown::Wait() {
  state_->Connect();
  while (!state_->is_broken) {
    const HANDLE ends[] = {state_->wakes, state_->pending.hEvent};
    if (WaitForMultipleObjects(2, ends, FALSE, INFINITE) == WAIT_OBJECT_0) return true;
    state_->Advance();
  }
  return false;
}

void PipeDown::Close() { state_->ClosePipe(); }

void PipeDown::Wake() { SetEvent(state_->wakes); }

void PipeDown::CloseChildsEnd() {}

std::string IdentityOf(int) { return ""; }

ChildsEnd ChildsEnd::OfDown(const Napi::Value& end) {
  const std::string name = end.As<Napi::String>().Utf8Value();
  ChildsEnd own;
  const HANDLE handle = CreateFileA(name.c_str(), GENERIC_READ, 0, nullptr, OPEN_EXISTING,
                                    SECURITY_SQOS_PRESENT | SECURITY_IDENTIFICATION, nullptr);
  if (handle != INVALID_HANDLE_VALUE) own.handle_ = handle;
  return own;
}

ChildsEnd ChildsEnd::OfUp(int descriptor) {
  ChildsEnd own;
  own.handle_ = InheritedHandle(descriptor);
  if (own.handle_ != nullptr) SetHandleInformation(own.handle_, HANDLE_FLAG_INHERIT, 0);
  return own;
}

bool ChildsEnd::Read(std::string& bytes) const {
  for (std::size_t done = 0; done < bytes.size();) {
    DWORD count = 0;
    const auto size = static_cast<DWORD>(bytes.size() - done);
    if (!ReadFile(handle_, bytes.data() + done, size, &count, nullptr) || count == 0) return false;
    done += count;
  }
  return true;
}

bool ChildsEnd::Write(const std::string& bytes) const {
  for (std::size_t done = 0; done < bytes.size();) {
    DWORD count = 0;
    const auto size = static_cast<DWORD>(bytes.size() - done);
    if (!WriteFile(handle_, bytes.data() + done, size, &count, nullptr)) return false;
    done += count;
  }
  return true;
}

}  // namespace allstop::binding

#endif
