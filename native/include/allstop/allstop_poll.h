/**
 * @file allstop_poll.h
 * A stop as a file descriptor, for loops around poll() or epoll.
 *
 * C11 and C++, on POSIX systems. Your code links nothing of allstop.
 *
 * @code
 *   allstop_stop_fd stop;
 *   allstop_stop_fd_open(&coord, &stop);
 *   struct pollfd fds[2] = {{socket, POLLIN, 0}, {stop.fd, POLLIN, 0}};
 *   while (fds[1].revents == 0) {
 *     if (poll(fds, 2, -1) > 0 && fds[0].revents != 0) serve(socket);
 *   }
 *   allstop_stop_fd_close(&coord, &stop);
 * @endcode
 */
#ifndef ALLSTOP_ALLSTOP_POLL_H_
#define ALLSTOP_ALLSTOP_POLL_H_

#if defined(_WIN32)
#error "allstop_poll.h needs a POSIX system: on Windows, register a callback by allstop_on_stop"
#endif

#include <errno.h>
#include <fcntl.h>
#include <sys/types.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#endif

#include "allstop.h"

#ifdef __cplusplus
extern "C" {
#endif

/** An open stop descriptor. Do not move or copy it while it is open: the stop callback holds
 * its address. */
typedef struct allstop_stop_fd {
  int fd;       /**< readable from the first stop on. Poll it; do not read from it. */
  int write_fd; /**< the write end of the pipe; with an eventfd, the same as `fd` */
  allstop_callback *callback;
  pid_t process; /**< that opened it: a process that was forked shares the descriptor */
} allstop_stop_fd;

/** The stop callback of an allstop_stop_fd. Not for you to call. */
static inline void allstop_stop_fd_write(void *context) {
  const uint64_t one = 1;
  if (((allstop_stop_fd *)context)->process != getpid()) return; /* it would wake the parent */
  /* Only a signal can interrupt this write: the pipe or eventfd is empty and takes 8 bytes. */
  ssize_t written;
  do {
    written = write(((allstop_stop_fd *)context)->write_fd, &one, sizeof(one));
  } while (written < 0 && errno == EINTR);
}

/**
 * Opens `stop->fd`. It becomes readable at the first stop (at once, if the coordinator is
 * stopped already) and stays readable, also after allstop_clear_stop. To watch for the next
 * stop, close it and open it again. A stop in a process that was forked meanwhile is that process's
 * alone, and makes no descriptor readable that was opened before. Any thread; does not block.
 *
 * @param[out] stop to be closed with allstop_stop_fd_close, if ALLSTOP_OK
 * @retval ALLSTOP_OK
 * @retval ALLSTOP_RESOURCE_EXHAUSTED no file descriptor or no memory is left
 */
static inline allstop_status allstop_stop_fd_open(const allstop_coordinator *coord,
                                                  allstop_stop_fd *stop) {
  allstop_status status;
  stop->callback = NULL;
  stop->process = getpid();
#if defined(__linux__)
  stop->fd = stop->write_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop->fd < 0) return ALLSTOP_RESOURCE_EXHAUSTED;
#else
  int ends[2];
  if (pipe(ends) != 0) return ALLSTOP_RESOURCE_EXHAUSTED;
  stop->fd = ends[0];
  stop->write_fd = ends[1];
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
#endif
  status = allstop_on_stop(coord, allstop_stop_fd_write, stop, &stop->callback);
  if (status != ALLSTOP_OK) {
    close(stop->fd);
    if (stop->write_fd != stop->fd) close(stop->write_fd);
  }
  return status;
}

/** Closes the descriptor. Any thread, once no thread polls the descriptor any more. Blocks
 * for a moment if a stop on another thread is writing to the descriptor. */
static inline void allstop_stop_fd_close(const allstop_coordinator *coord, allstop_stop_fd *stop) {
  allstop_callback_release(coord, stop->callback);
  close(stop->fd);
  if (stop->write_fd != stop->fd) close(stop->write_fd);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ALLSTOP_ALLSTOP_POLL_H_ */
