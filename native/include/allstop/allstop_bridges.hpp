/// @file allstop_bridges.hpp
/// A stop for code that does not know allstop: as a std::stop_token, and as a file descriptor.
///
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
// allstop.hpp says why these types have other names in a file without exceptions.
#if defined(__cpp_exceptions) || defined(_CPPUNWIND)
inline namespace catching {
#else
inline namespace not_catching {
#endif

#if defined(__cpp_lib_jthread)
/// Gives a std::stop_token on which the coordinator's stop requests a stop. The token stays
/// stopped after ClearStop, as every std::stop_token does. When this object is destroyed, its
/// tokens stay valid, but a later stop of the coordinator no longer reaches them. C++20 only.
///
/// For the opposite direction, use
/// `std::stop_callback callback(token, [coord] { coord.RequestStop(); });`
///
/// @throws std::bad_alloc, from the constructor, if there is no memory
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
/// A file descriptor for loops around poll() or epoll; see allstop_poll.h.
///
/// The destructor closes the descriptor: no thread may poll it any more. It blocks for a
/// moment if a stop on another thread is writing to the descriptor.
///
/// @throws std::bad_alloc, from the constructor, if no memory or no file descriptor is left.
///   Without exceptions, the process ends.
class StopFd {
 public:
  explicit StopFd(const Coordinator& coord) : coord_(coord) {
    if (allstop_stop_fd_open(coord_.handle(), &stop_fd_) != ALLSTOP_OK) internal::OutOfMemory();
  }
  StopFd(const StopFd&) = delete;
  StopFd& operator=(const StopFd&) = delete;
  ~StopFd() { allstop_stop_fd_close(coord_.handle(), &stop_fd_); }

  /// The descriptor: readable from the first stop on, also after ClearStop. Poll it; do not
  /// read from it. Valid as long as this object.
  int get() const noexcept { return stop_fd_.fd; }

 private:
  const Coordinator coord_;
  allstop_stop_fd stop_fd_ = {};
};
#endif

}  // inline namespace catching or not_catching
}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_BRIDGES_HPP_
