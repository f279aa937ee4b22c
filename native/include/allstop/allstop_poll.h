/*
 * allstop_poll.h - a stop as a file descriptor, for poll and epoll loops.
 *
 * C11 and C++, POSIX. Nothing is linked.
 *
 *   allstop_stop_fd stop;
 *   allstop_stop_fd_open(&coord, &stop);
 *   struct pollfd fds[2] = {{socket, POLLIN, 0}, {stop.fd, POLLIN, 0}};
 *   while (fds[1].revents == 0) {
 *     if (poll(fds, 2, -1) > 0 && fds[0].revents != 0) serve(socket);
 *   }
 *   allstop_stop_fd_close(&coord, &stop);
 */
#ifndef ALLSTOP_ALLSTOP_POLL_H_
#define ALLSTOP_ALLSTOP_POLL_H_

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/eventfd.h>
#endif

#include "allstop.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Plain data; moved nowhere while it is open. */
typedef struct allstop_stop_fd {
  int fd;       /* readable from the first stop on; do not read from it */
  int write_fd; /* the other end, or the same */
  allstop_callback *callback;
} allstop_stop_fd;

static inline void allstop_stop_fd_write(void *context) {
  const uint64_t one = 1;
  /* It cannot fail: one write of 8 bytes goes into an empty pipe or eventfd. */
  ssize_t written;
  do {
    written = write(((allstop_stop_fd *)context)->write_fd, &one, sizeof(one));
  } while (written < 0 && errno == EINTR);
}

/*
 * Opens `stop->fd`: readable from the first stop on, at once if the stop is there
 * already, and for good: also after allstop_clear_stop, as a wait would be over. For
 * another life of the coordinator, close it and open it again. Any thread; does not
 * block. ALLSTOP_RESOURCE_EXHAUSTED: no file descriptor or memory is left.
 */
static inline allstop_status allstop_stop_fd_open(const allstop_coordinator *coord,
                                                  allstop_stop_fd *stop) {
  allstop_status status;
  stop->callback = NULL;
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

/* Closes it. Any thread that does not poll it any longer; blocks for a moment if a
 * stop is just writing to it. */
static inline void allstop_stop_fd_close(const allstop_coordinator *coord, allstop_stop_fd *stop) {
  allstop_callback_release(coord, stop->callback);
  close(stop->fd);
  if (stop->write_fd != stop->fd) close(stop->write_fd);
}

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* ALLSTOP_ALLSTOP_POLL_H_ */
