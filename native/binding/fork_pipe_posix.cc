#if !defined(_WIN32)

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "fork_pipe.h"

namespace allstop::binding {
namespace {

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

}  // namespace

struct PipeDown::State {
  Pipe down;
  Pipe wakes;  // Wake makes its read end readable
};

PipeDown::PipeDown() : state_(std::make_unique<State>()) {
  state_->wakes = OpenPipe();
  for (const int end : {state_->wakes.read_end, state_->wakes.write_end}) {
    fcntl(end, F_SETFL, O_NONBLOCK);
  }
  try {
    state_->down = OpenPipe();
  } catch (...) {
    close(state_->wakes.read_end);
    close(state_->wakes.write_end);
    throw;
  }
}

PipeDown::~PipeDown() {
  Close();
  CloseChildsEnd();
  for (const int end : {state_->wakes.read_end, state_->wakes.write_end}) close(end);
}

Napi::Value PipeDown::ChildsEnd(Napi::Env env) const {
  return Napi::Number::New(env, state_->down.read_end);
}

void PipeDown::CloseChildsEnd() {
  if (state_->down.read_end != -1) close(state_->down.read_end);
  state_->down.read_end = -1;
}

bool PipeDown::Write(const std::string& bytes) { return WriteAll(state_->down.write_end, bytes); }

bool PipeDown::Wait() {
  pollfd ends[] = {{state_->wakes.read_end, POLLIN, 0}, {state_->down.write_end, 0, 0}};
  while (poll(ends, 2, -1) == -1 && errno == EINTR) {
  }
  char drained[64];
  while (read(state_->wakes.read_end, drained, sizeof drained) > 0) {
  }
  return ends[1].revents == 0;
}

void PipeDown::Close() {
  if (state_->down.write_end != -1) close(state_->down.write_end);
  state_->down.write_end = -1;
}

void PipeDown::Wake() {
  if (write(state_->wakes.write_end, "", 1) < 0) return;  // full: the thread will wake anyway
}

// The child's descriptor is of the same end of the pipe as the parent's, so that both have one
// inode also where the two ends of a pipe have different ones (macOS).
std::string IdentityOf(int descriptor) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0) {
    throw std::system_error(errno, std::generic_category(), "no such descriptor");
  }
  return std::to_string(status.st_dev) + ":" + std::to_string(status.st_ino);
}

ChildsEnd ChildsEnd::OfDown(const Napi::Value& end) {
  return OfUp(end.As<Napi::Number>().Int32Value());
}

ChildsEnd ChildsEnd::OfUp(int descriptor) {
  ChildsEnd own;
  own.descriptor_ = descriptor;
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  return own;
}

bool ChildsEnd::Read(std::string& bytes) const {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t count = read(descriptor_, bytes.data() + done, bytes.size() - done);
    if (count > 0) {
      done += static_cast<std::size_t>(count);
    } else if (count == 0 || errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool ChildsEnd::Write(const std::string& bytes) const { return WriteAll(descriptor_, bytes); }

}  // namespace allstop::binding

#endif
