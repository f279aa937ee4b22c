// The two pipes of a fork line (fork_line.h), as the operating system has them.
//
// The pipe down is made here, before the child starts. POSIX: the child inherits a descriptor.
// Windows: the child opens the pipe by its name, since an inherited handle would go to every other
// process that happens to be started at the same time.
// The pipe up is Node's: an entry 'pipe' of `stdio`, of which the child has a descriptor.
#ifndef ALLSTOP_BINDING_FORK_PIPE_H_
#define ALLSTOP_BINDING_FORK_PIPE_H_

#include <napi.h>

#include <memory>
#include <string>

namespace allstop::binding {

// The parent's end of the pipe down. Only this process has it, so its end is the parent's end.
class PipeDown {
 public:
  // Throws std::system_error.
  PipeDown();
  // No thread uses the object any more.
  ~PipeDown();
  PipeDown(const PipeDown&) = delete;
  PipeDown& operator=(const PipeDown&) = delete;

  // What the child needs to reach its end: a descriptor, which the object closes at its end at the
  // latest; on Windows a name.
  Napi::Value ChildsEnd(Napi::Env env) const;
  // JavaScript thread only: the child has been started, and has inherited the descriptor.
  void CloseChildsEnd();

  // The line's thread only. False: the child's end is closed. Windows: while the child has not
  // opened its end, the bytes are kept.
  bool Write(const std::string& bytes);
  // The line's thread only. Waits until Wake was called since the last Wait. False: the child's
  // end is closed.
  bool Wait();
  // The line's thread only; nothing but Wake follows. The child may still read what was written.
  void Close();
  // Any thread, with any lock held.
  void Wake();

 private:
  struct State;
  const std::unique_ptr<State> state_;
};

// What tells the open file of `descriptor` from all others, in each process that has inherited it.
// Throws std::system_error: there is no such descriptor. Windows, where a pipe has a name: empty.
std::string IdentityOf(int descriptor);

// An end of a pipe in the child, that blocks. Never closed: it is the process's own until it ends.
class ChildsEnd {
 public:
  // Of the pipe down. `end`: what PipeDown::ChildsEnd has returned. If the parent has ended, Read
  // returns false.
  static ChildsEnd OfDown(const Napi::Value& end);
  // Of the pipe up.
  static ChildsEnd OfUp(int descriptor);
  // Of no pipe: Read and Write return false.
  ChildsEnd() = default;

  // Fills `bytes`. False: the pipe has ended.
  bool Read(std::string& bytes) const;
  // False: the parent has ended.
  bool Write(const std::string& bytes) const;

 private:
#if defined(_WIN32)
  void* handle_ = nullptr;
#else
  int descriptor_ = -1;
#endif
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_FORK_PIPE_H_
