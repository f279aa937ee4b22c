// allstop_bridges.hpp - a stop as others know it: std::stop_token, a file descriptor.
// Part of allstop.hpp, which includes it.
#ifndef ALLSTOP_ALLSTOP_BRIDGES_HPP_
#define ALLSTOP_ALLSTOP_BRIDGES_HPP_

#if __has_include(<stop_token>)
#include <stop_token>
#endif

#include "allstop.hpp"
#if !defined(_WIN32)
#include "allstop_poll.h"
#endif

namespace allstop {
// As in allstop.hpp: other types in a file compiled without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
inline namespace catching {
#else
inline namespace not_catching {
#endif

#if defined(__cpp_lib_jthread)
// A std::stop_token that a stop of the coordinator stops, for code that knows those
// only. It stays stopped after a ClearStop, as they do. For the other way:
// std::stop_callback(token, [coord] { coord.RequestStop(); }).
class StopSource {
 public:
  explicit StopSource(const Coordinator& coord) : callback_(coord, Request{source_}) {}
  std::stop_token get_token() const noexcept { return source_.get_token(); }

 private:
  struct Request {
    std::stop_source source;
    void operator()() { source.request_stop(); }
  };
  std::stop_source source_;
  StopCallback<Request> callback_;
};
#endif

#if !defined(_WIN32)
// A file descriptor for poll and epoll loops; see allstop_poll.h.
class StopFd {
 public:
  explicit StopFd(const Coordinator& coord) : coord_(coord) {
    if (allstop_stop_fd_open(coord_.handle(), &stop_fd_) != ALLSTOP_OK) internal::OutOfMemory();
  }
  StopFd(const StopFd&) = delete;
  StopFd& operator=(const StopFd&) = delete;
  ~StopFd() { allstop_stop_fd_close(coord_.handle(), &stop_fd_); }

  // Readable from the first stop on, also when that is cleared. Do not read from it.
  int get() const noexcept { return stop_fd_.fd; }

 private:
  const Coordinator coord_;
  allstop_stop_fd stop_fd_ = {};
};
#endif

}  // inline namespace catching or not_catching
}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_BRIDGES_HPP_
