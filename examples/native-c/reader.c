/*
 * An addon in plain C: a POSIX thread that reads bytes from a pipe, and stops when
 * the coordinator that it shares with JavaScript does. It includes allstop's headers
 * and links nothing of allstop.
 *
 *   const reader = start(coord, name)  the thread, and an object that stands for it
 *   write(reader, bytes)               work for it; returns how many bytes it took
 *   served(reader)                     how many it has read
 *   seen(reader)                       "name: message" of the error that stopped it
 */
#if !defined(__APPLE__) /* there it would hide what allstop_node.h needs */
#define _POSIX_C_SOURCE 200809L
#endif

#include <allstop/allstop_node.h>
#include <allstop/allstop_poll.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The thread fails when it reads this byte. */
#define BAD_BYTE '!'

/*
 * What the thread and the JavaScript object share. Whoever lets go last frees it:
 * either may be the one that lives longer, as the thread outlives the environment
 * that started it.
 */
typedef struct reader {
  atomic_int owners;
  allstop_coordinator coord; /* owns one reference */
  allstop_thread *thread;    /* given back by the thread, as its last step */
  int read_fd;
  int write_fd;
  pthread_mutex_t mutex; /* guards what follows */
  size_t served;
  char seen[256];
} reader;

/* Marks the objects that carry a reader; any number that nobody else uses. */
static const napi_type_tag reader_tag = {UINT64_C(0x3d1f5a6b8c2e4790),
                                         UINT64_C(0xa1b2c3d4e5f60718)};

/* Takes over the reference of `coord`, also if it fails: NULL, with errno. One owner. */
static reader *reader_new(allstop_coordinator coord) {
  int ends[2];
  reader *self = calloc(1, sizeof(*self));
  if (self == NULL) {
    allstop_release(&coord);
    errno = ENOMEM;
    return NULL;
  }
  if (pipe(ends) != 0) {
    const int error = errno;
    free(self);
    allstop_release(&coord);
    errno = error;
    return NULL;
  }
  for (int i = 0; i < 2; ++i) {
    fcntl(ends[i], F_SETFD, FD_CLOEXEC);
    fcntl(ends[i], F_SETFL, O_NONBLOCK); /* a full pipe must not block JavaScript */
  }
  atomic_init(&self->owners, 1);
  pthread_mutex_init(&self->mutex, NULL);
  self->coord = coord;
  self->read_fd = ends[0];
  self->write_fd = ends[1];
  return self;
}

static void reader_release(reader *self) {
  if (atomic_fetch_sub(&self->owners, 1) != 1) return;
  close(self->read_fd);
  close(self->write_fd);
  pthread_mutex_destroy(&self->mutex);
  allstop_release(&self->coord);
  free(self);
}

/* ------------------------------------------------------------ the thread */

/* Reads what there is. False: a bad byte was among it. */
static int serve(reader *self) {
  char bytes[4096];
  const ssize_t size = read(self->read_fd, bytes, sizeof(bytes));
  if (size <= 0) return 1; /* nothing there after all; poll will say when there is */
  const char *const bad = memchr(bytes, BAD_BYTE, (size_t)size);
  pthread_mutex_lock(&self->mutex);
  self->served += bad != NULL ? (size_t)(bad - bytes) : (size_t)size;
  pthread_mutex_unlock(&self->mutex);
  return bad == NULL;
}

/* What a thread can learn of a stop: here, the error that somebody else had. */
static void note_stop(reader *self) {
  allstop_record *record = NULL;
  allstop_record_info info = {.size = sizeof(info)};
  if (allstop_stop_record(&self->coord, &record) != ALLSTOP_OK || record == NULL) return;
  if (allstop_record_read(&self->coord, record, &info) == ALLSTOP_OK && info.name.size > 0) {
    pthread_mutex_lock(&self->mutex);
    /* The strings need not end in NUL. */
    snprintf(self->seen, sizeof(self->seen), "%.*s: %.*s", (int)info.name.size, info.name.data,
             (int)info.message.size, info.message.data);
    pthread_mutex_unlock(&self->mutex);
  }
  allstop_record_release(&self->coord, record);
}

/* Serves until a stop (1) or a bad byte (0). A failing system call is errno, negative. */
static int poll_loop(reader *self, const allstop_stop_fd *stop) {
  struct pollfd fds[2] = {{self->read_fd, POLLIN, 0}, {stop->fd, POLLIN, 0}};
  for (;;) {
    if (poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      return -errno;
    }
    if (fds[1].revents != 0) return 1;
    if (fds[0].revents != 0 && !serve(self)) return 0;
  }
}

static void *run(void *argument) {
  reader *const self = argument;
  allstop_error error = {.size = sizeof(error)};
  const allstop_error *failure = NULL;
  allstop_stop_fd stop;

  allstop_thread_enter(&self->coord, self->thread);
  if (allstop_stop_fd_open(&self->coord, &stop) != ALLSTOP_OK) {
    error.message = allstop_str("no file descriptor is left");
    error.code = allstop_str("EMFILE");
    failure = &error;
  } else {
    const int ended = poll_loop(self, &stop);
    allstop_stop_fd_close(&self->coord, &stop);
    if (ended == 1) {
      note_stop(self);
    } else {
      error.name = allstop_str("ReaderError");
      error.message = allstop_str(ended == 0 ? "a bad byte was read" : strerror(-ended));
      error.code = allstop_str("E_READER");
      failure = &error;
    }
  }
  /* A join may be over from here on. Our own reference keeps the handle valid. */
  allstop_thread_done(&self->coord, self->thread, failure);
  reader_release(self);
  return NULL;
}

/* errno's of pthread_create; the thread is not registered any longer then. */
static int start_thread(reader *self, allstop_string name) {
  pthread_attr_t attributes;
  pthread_t thread;
  int error;
  /* Before the thread is created, so that a join which begins next waits for it. */
  if (allstop_thread_register(&self->coord, name, 0, &self->thread) != ALLSTOP_OK) return ENOMEM;
  error = pthread_attr_init(&attributes);
  if (error == 0) {
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    atomic_fetch_add(&self->owners, 1);
    error = pthread_create(&thread, &attributes, run, self);
    pthread_attr_destroy(&attributes);
    if (error != 0) reader_release(self); /* for the thread that there is none of */
  }
  if (error != 0) allstop_thread_done(&self->coord, self->thread, NULL);
  return error;
}

/* ------------------------------------------------------------ JavaScript */

/* Whether the call went well; else a JavaScript exception is pending. */
static bool check(napi_env env, napi_status status) {
  const napi_extended_error_info *info = NULL;
  bool pending = false;
  if (status == napi_ok) return true;
  napi_get_last_error_info(env, &info); /* first: any other call overwrites it */
  const char *const message =
      info != NULL && info->error_message != NULL ? info->error_message : "Node-API failed";
  if (napi_is_exception_pending(env, &pending) != napi_ok || !pending) {
    napi_throw_error(env, "ERR_READER", message);
  }
  return false;
}

static void finalize(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  reader_release(data); /* the thread goes on, until a stop */
}

/* The reader that is the first argument; NULL: an exception is pending. */
static reader *take_reader(napi_env env, napi_value value) {
  napi_valuetype type;
  bool tagged = false;
  void *data = NULL;
  if (!check(env, napi_typeof(env, value, &type))) return NULL;
  if (type == napi_object &&
      !check(env, napi_check_object_type_tag(env, value, &reader_tag, &tagged)))
    return NULL;
  if (!tagged) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "The first argument must be a reader");
    return NULL;
  }
  return check(env, napi_unwrap(env, value, &data)) ? data : NULL;
}

/* An object that lets go of `self` when it is collected, also if this fails: NULL. */
static napi_value wrap(napi_env env, reader *self) {
  napi_value object;
  if (!check(env, napi_create_object(env, &object)) ||
      !check(env, napi_wrap(env, object, self, finalize, NULL, NULL))) {
    reader_release(self);
    return NULL;
  }
  /* From here on it is the object's. */
  return check(env, napi_type_tag_object(env, object, &reader_tag)) ? object : NULL;
}

static napi_value start(napi_env env, napi_callback_info info) {
  size_t count = 2;
  size_t size = 0;
  napi_value arguments[2];
  char name[64];
  allstop_coordinator coord;
  if (!check(env, napi_get_cb_info(env, info, &count, arguments, NULL, NULL)) ||
      !check(env, napi_get_value_string_utf8(env, arguments[1], name, sizeof(name), &size))) {
    return NULL;
  }
  const allstop_status status = allstop_from_napi(env, arguments[0], &coord);
  if (status != ALLSTOP_OK) {
    allstop_throw_status(env, status);
    return NULL;
  }
  reader *const self = reader_new(coord);
  if (self == NULL) {
    napi_throw_error(env, "ERR_READER", strerror(errno));
    return NULL;
  }
  const napi_value object = wrap(env, self);
  if (object == NULL) return NULL;
  /* `object` is on our stack, so that `self` cannot be freed before this returns. */
  const int error = start_thread(self, (allstop_string){name, size});
  if (error != 0) {
    napi_throw_error(env, "ERR_READER", strerror(error));
    return NULL;
  }
  return object;
}

static napi_value write_bytes(napi_env env, napi_callback_info info) {
  size_t count = 2;
  size_t size = 0;
  void *bytes = NULL;
  napi_value arguments[2];
  napi_value result;
  bool is_buffer = false;
  if (!check(env, napi_get_cb_info(env, info, &count, arguments, NULL, NULL))) return NULL;
  reader *const self = take_reader(env, arguments[0]);
  if (self == NULL) return NULL;
  if (!check(env, napi_is_buffer(env, arguments[1], &is_buffer))) return NULL;
  if (!is_buffer) {
    napi_throw_type_error(env, "ERR_INVALID_ARG_TYPE", "The second argument must be a Buffer");
    return NULL;
  }
  if (!check(env, napi_get_buffer_info(env, arguments[1], &bytes, &size))) return NULL;
  /* Both ends are open as long as there is an owner, so that there is no SIGPIPE. */
  ssize_t written = size > 0 ? write(self->write_fd, bytes, size) : 0;
  if (written < 0 && errno != EAGAIN && errno != EINTR) {
    napi_throw_error(env, "ERR_READER", strerror(errno));
    return NULL;
  }
  if (written < 0) written = 0;
  return check(env, napi_create_int64(env, written, &result)) ? result : NULL;
}

static napi_value served(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument;
  napi_value result;
  if (!check(env, napi_get_cb_info(env, info, &count, &argument, NULL, NULL))) return NULL;
  reader *const self = take_reader(env, argument);
  if (self == NULL) return NULL;
  pthread_mutex_lock(&self->mutex);
  const size_t total = self->served;
  pthread_mutex_unlock(&self->mutex);
  return check(env, napi_create_int64(env, (int64_t)total, &result)) ? result : NULL;
}

static napi_value seen(napi_env env, napi_callback_info info) {
  size_t count = 1;
  napi_value argument;
  napi_value result;
  char text[sizeof(((reader *)NULL)->seen)];
  if (!check(env, napi_get_cb_info(env, info, &count, &argument, NULL, NULL))) return NULL;
  reader *const self = take_reader(env, argument);
  if (self == NULL) return NULL;
  pthread_mutex_lock(&self->mutex);
  memcpy(text, self->seen, sizeof(text));
  pthread_mutex_unlock(&self->mutex);
  return check(env, napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &result)) ? result : NULL;
}

/* NAPI_MODULE_INIT, unlike NAPI_MODULE, lets several environments load the addon. */
NAPI_MODULE_INIT() {
  const napi_property_attributes flags = napi_enumerable;
  const napi_property_descriptor functions[] = {
      {"start", NULL, start, NULL, NULL, NULL, flags, NULL},
      {"write", NULL, write_bytes, NULL, NULL, NULL, flags, NULL},
      {"served", NULL, served, NULL, NULL, NULL, flags, NULL},
      {"seen", NULL, seen, NULL, NULL, NULL, flags, NULL},
  };
  const size_t count = sizeof(functions) / sizeof(functions[0]);
  return check(env, napi_define_properties(env, exports, count, functions)) ? exports : NULL;
}
