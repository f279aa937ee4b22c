// Calls that block for ever unless a signal ends them (Linux). For the tests of Interruptible, and
// for bench/native/interruptible.cc.
#ifndef ALLSTOP_TEST_NATIVE_LIBRARY_BLOCKING_CALLS_H_
#define ALLSTOP_TEST_NATIVE_LIBRARY_BLOCKING_CALLS_H_

#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

namespace allstop::test {

struct BlockingCall {
  const char* name;
  std::function<long()> block;  // returns what the call returns, and leaves its errno
};

// What the calls block on. The destructor ends the child process and removes the files.
class BlockingCalls {
 public:
  BlockingCalls() {
    if (mkdtemp(folder_) == nullptr || pipe(empty_) != 0 || pipe(full_) != 0) std::abort();
    fcntl(full_[1], F_SETFL, O_NONBLOCK);
    const std::vector<char> block(65536);
    while (write(full_[1], block.data(), block.size()) > 0) {
    }
    while (write(full_[1], block.data(), 1) > 0) {
    }
    fcntl(full_[1], F_SETFL, 0);
    if (mkfifo(In("fifo").c_str(), 0600) != 0) std::abort();

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair_) != 0) std::abort();
    sockaddr_un address = {};
    address.sun_family = AF_UNIX;
    std::snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder_);
    address_ = address;
    listener_ = Listen();
    std::snprintf(address_.sun_path, sizeof(address_.sun_path), "%s/crowded", folder_);
    crowded_ = Listen();
    // A listener with a backlog of 0 takes one connection that nobody accepts.
    waiting_ = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(waiting_, reinterpret_cast<sockaddr*>(&address_), sizeof(address_)) != 0) {
      std::abort();
    }
    epoll_ = epoll_create1(0);
    event_ = eventfd(0, 0);
    locked_ = open(In("locked").c_str(), O_CREAT | O_RDWR, 0600);
    flock(locked_, LOCK_EX);
    lock_ = open(In("locked").c_str(), O_RDWR);
    sem_init(&semaphore_, 0, 0);
    messages_ = msgget(IPC_PRIVATE, IPC_CREAT | 0600);
    semaphores_ = semget(IPC_PRIVATE, 1, IPC_CREAT | 0600);

    // The child has the lock of the process: fcntl locks exclude other processes only.
    int ready[2];
    if (pipe(ready) != 0) std::abort();
    child_ = fork();
    if (child_ == 0) {
      struct flock whole = {};
      whole.l_type = F_WRLCK;
      fcntl(locked_, F_SETLK, &whole);
      if (write(ready[1], "x", 1) == 1) {
        for (;;) pause();
      }
      _exit(1);
    }
    char byte;
    while (read(ready[0], &byte, 1) < 0) {
    }
    close(ready[0]);
    close(ready[1]);
  }
  ~BlockingCalls() {
    kill(child_, SIGKILL);
    while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR) {
    }
    for (const int fd : {empty_[0], empty_[1], full_[0], full_[1], pair_[0], pair_[1], listener_,
                         crowded_, waiting_, epoll_, event_, locked_, lock_}) {
      close(fd);
    }
    sem_destroy(&semaphore_);
    msgctl(messages_, IPC_RMID, nullptr);
    semctl(semaphores_, 0, IPC_RMID);
    for (const char* const name : {"fifo", "socket", "crowded", "locked"}) {
      unlink(In(name).c_str());
    }
    rmdir(folder_);
  }
  BlockingCalls(const BlockingCalls&) = delete;
  BlockingCalls& operator=(const BlockingCalls&) = delete;

  // The write end of the pipe from which `read` reads.
  int ReleaseRead() const { return empty_[1]; }

  std::vector<BlockingCall> All() {
    return {
        {"read() of a pipe", [this] { return Read(empty_[0]); }},
        {"read() of an eventfd", [this] { return Read(event_); }},
        {"write() to a full pipe", [this]() -> long { return write(full_[1], "x", 1); }},
        {"open() of a FIFO", [this]() -> long { return open(In("fifo").c_str(), O_RDONLY); }},
        {"accept()", [this]() -> long { return accept(listener_, nullptr, nullptr); }},
        {"connect()", [this] { return Connect(); }},
        {"recv()",
         [this]() -> long {
           char byte;
           return recv(pair_[0], &byte, 1, 0);
         }},
        {"recvmsg()",
         [this]() -> long {
           msghdr message = {};
           return recvmsg(pair_[0], &message, 0);
         }},
        {"poll()",
         [this]() -> long {
           pollfd polled = {empty_[0], POLLIN, 0};
           return poll(&polled, 1, -1);
         }},
        {"select()",
         [this]() -> long {
           fd_set set;
           FD_ZERO(&set);
           FD_SET(empty_[0], &set);
           return select(empty_[0] + 1, &set, nullptr, nullptr, nullptr);
         }},
        {"epoll_wait()",
         [this]() -> long {
           epoll_event event;
           return epoll_wait(epoll_, &event, 1, -1);
         }},
        {"nanosleep()",
         []() -> long {
           const timespec hour = {3600, 0};
           return nanosleep(&hour, nullptr);
         }},
        {"usleep()", []() -> long { return usleep(999'999'999); }},
        {"waitpid()", [this]() -> long { return waitpid(child_, nullptr, 0); }},
        {"flock()", [this]() -> long { return flock(lock_, LOCK_EX); }},
        {"fcntl(F_SETLKW)",
         [this]() -> long {
           struct flock whole = {};
           whole.l_type = F_WRLCK;
           return fcntl(lock_, F_SETLKW, &whole);
         }},
        {"sem_wait()", [this]() -> long { return sem_wait(&semaphore_); }},
        {"msgrcv()",
         [this]() -> long {
           struct {
             long type;
             char text[1];
           } message;
           return msgrcv(messages_, &message, 1, 0, 0);
         }},
        {"semop()",
         [this]() -> long {
           sembuf down = {0, -1, 0};
           return semop(semaphores_, &down, 1);
         }},
        {"futex(FUTEX_WAIT)",
         []() -> long {
           std::uint32_t word = 0;
           return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, nullptr, nullptr, 0);
         }},
        {"pause()", []() -> long { return pause(); }},
        {"sigsuspend()",
         []() -> long {
           sigset_t mask;
           pthread_sigmask(SIG_SETMASK, nullptr, &mask);
           return sigsuspend(&mask);
         }},
        {"sigwaitinfo()",
         []() -> long {
           sigset_t set;
           sigemptyset(&set);
           sigaddset(&set, SIGUSR2);
           return sigwaitinfo(&set, nullptr);
         }},
    };
  }

 private:
  std::string In(const char* name) const { return std::string(folder_) + "/" + name; }
  static long Read(int fd) {
    std::uint64_t value;
    return read(fd, &value, sizeof(value));
  }
  int Listen() {
    const int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    if (bind(listener, reinterpret_cast<sockaddr*>(&address_), sizeof(address_)) != 0 ||
        listen(listener, 0) != 0) {
      std::abort();
    }
    return listener;
  }
  long Connect() {
    const int client = socket(AF_UNIX, SOCK_STREAM, 0);
    const long result = connect(client, reinterpret_cast<sockaddr*>(&address_), sizeof(address_));
    const int error = errno;
    close(client);
    errno = error;
    return result;
  }

  char folder_[32] = "/tmp/allstop-calls-XXXXXX";
  int empty_[2], full_[2], pair_[2];
  sockaddr_un address_;  // of crowded_
  int listener_, crowded_, waiting_, epoll_, event_, locked_, lock_, messages_, semaphores_;
  sem_t semaphore_;
  pid_t child_;
};

}  // namespace allstop::test

#endif  // ALLSTOP_TEST_NATIVE_LIBRARY_BLOCKING_CALLS_H_
