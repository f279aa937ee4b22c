/* The C interface from plain C11, as an addon in C would use it. */
#include <math.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>

#include "allstop/allstop.h"

const char *allstop_c_story(const allstop_coordinator *coord);

/* Returns from allstop_c_story at the first expectation that fails. */
#define EXPECT(condition)                \
  do {                                   \
    if (!(condition)) return #condition; \
  } while (0)

static int Is(allstop_string string, const char *text) {
  return string.size == strlen(text) && memcmp(string.data, text, string.size) == 0;
}

static void Count(void *context) { ++*(int *)context; }

typedef struct Worker {
  const allstop_coordinator *coord;
  allstop_thread *token;
} Worker;

static void *Work(void *context) {
  const Worker *worker = context;
  allstop_error error = {.size = sizeof(error)};
  allstop_thread_enter(worker->coord, worker->token);
  while (!allstop_should_stop(worker->coord)) {
    if (allstop_wait_for_stop(worker->coord, 10) == ALLSTOP_OK) break;
  }
  error.name = allstop_str("LateError");
  allstop_thread_done(worker->coord, worker->token, &error);
  return NULL;
}

static const char *Strings(void) {
  EXPECT(allstop_str(NULL).data == NULL && allstop_str(NULL).size == 0);
  EXPECT(allstop_str("").data != NULL && allstop_str("").size == 0);
  EXPECT(Is(allstop_str("stop"), "stop"));
  return NULL;
}

static const char *Waits(const allstop_coordinator *coord) {
  EXPECT(!allstop_should_stop(coord));
  EXPECT(allstop_wait_for_stop(coord, 0) == ALLSTOP_DEADLINE_EXCEEDED);
  EXPECT(allstop_wait_for_stop(coord, (double)NAN) == ALLSTOP_INVALID_ARGUMENT);
  return NULL;
}

static const char *StopsAndTells(const allstop_coordinator *coord) {
  allstop_error error = {0};
  allstop_record *record = NULL;
  allstop_record_info info = {0};

  EXPECT(allstop_request_stop(coord, &error) == ALLSTOP_INVALID_ARGUMENT);
  error.size = sizeof(error);
  error.name = allstop_str("RangeError");
  error.message = allstop_str("too far");
  EXPECT(allstop_request_stop(coord, &error) == ALLSTOP_OK);
  EXPECT(allstop_should_stop(coord));
  EXPECT(allstop_wait_for_stop(coord, (double)INFINITY) == ALLSTOP_OK);

  EXPECT(allstop_stop_record(coord, &record) == ALLSTOP_OK);
  EXPECT(record != NULL);
  info.size = sizeof(info);
  EXPECT(allstop_record_read(coord, record, &info) == ALLSTOP_OK);
  EXPECT(info.kind == ALLSTOP_STOP_ERROR);
  EXPECT(info.language == ALLSTOP_LANGUAGE_NATIVE);
  EXPECT(Is(info.name, "RangeError"));
  EXPECT(Is(info.message, "too far"));
  EXPECT(info.stack.data == NULL);
  allstop_record_release(coord, record);
  return NULL;
}

static const char *CallsBack(const allstop_coordinator *coord) {
  int runs = 0;
  allstop_callback *kept = NULL;
  allstop_callback *released = NULL;
  EXPECT(allstop_on_stop(coord, Count, &runs, &kept) == ALLSTOP_OK);
  EXPECT(allstop_on_stop(coord, Count, &runs, &released) == ALLSTOP_OK);
  allstop_callback_release(coord, released);
  EXPECT(allstop_request_stop(coord, NULL) == ALLSTOP_OK);
  EXPECT(runs == 1);
  allstop_callback_release(coord, kept);
  return NULL;
}

static const char *Joins(const allstop_coordinator *coord) {
  Worker worker = {coord, NULL};
  pthread_t thread;
  allstop_status status;
  EXPECT(allstop_thread_register(coord, allstop_str("worker"), 0, &worker.token) == ALLSTOP_OK);
  if (pthread_create(&thread, NULL, Work, &worker) != 0) return "pthread_create";
  EXPECT(allstop_request_stop(coord, NULL) == ALLSTOP_OK);
  status = allstop_join(coord, (double)INFINITY, 0);
  pthread_join(thread, NULL);
  EXPECT(status == ALLSTOP_OK);
  return NULL;
}

const char *allstop_c_story(const allstop_coordinator *coord) {
  const char *failure = NULL;
  EXPECT(ALLSTOP_HAS(coord->table, callback_release));
  EXPECT(coord->table->major == ALLSTOP_ABI_MAJOR);
  allstop_retain(coord);
  if (!failure) failure = Strings();
  if (!failure) failure = Waits(coord);
  if (!failure) failure = StopsAndTells(coord);
  EXPECT(allstop_clear_stop(coord) == ALLSTOP_OK);
  if (!failure) failure = CallsBack(coord);
  EXPECT(allstop_clear_stop(coord) == ALLSTOP_OK);
  if (!failure) failure = Joins(coord);
  allstop_release(coord);
  return failure;
}
