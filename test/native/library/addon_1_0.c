/* Code as in an addon that was compiled against version 1.0 of allstop.h: the frozen copy of
 * that header never changes. versions_test.cc runs it on today's table. */
#include <string.h>

#include "allstop_1_0_frozen.h"

/* The sizes in 1.0, with which the test makes sure that 1.0 differs from today's header. */
size_t addon_1_0_error_size(void) { return sizeof(allstop_error); }
size_t addon_1_0_table_size(void) { return sizeof(allstop_table); }

/* Ends a registered thread with the error "from an old addon".
 * Returns the message that it then reads from the record, or the step that failed. */
const char *addon_1_0_run(const void *table, void *state) {
  allstop_coordinator coord;
  allstop_thread *thread = NULL;
  allstop_error error = {.size = sizeof(error)};
  allstop_record *record = NULL;
  allstop_record_info info = {.size = sizeof(info)};
  static char message[64];

  coord.table = (const allstop_table *)table;
  coord.state = (allstop_state *)state;
  coord.stop_word = coord.table->stop_word(coord.state);
  if (coord.table->major != ALLSTOP_ABI_MAJOR) return "another major version";
  if (coord.table->size < sizeof(allstop_table)) return "a shorter table";
  if (allstop_should_stop(&coord)) return "stopped too early";
  if (allstop_thread_register(&coord, "old", 0, &thread) != ALLSTOP_OK) return "no thread";
  error.message = allstop_str("from an old addon");
  allstop_thread_done(&coord, thread, &error);
  if (!allstop_should_stop(&coord)) return "not stopped";
  if (allstop_wait_for_stop(&coord, 0) != ALLSTOP_OK) return "the wait";
  if (allstop_join(&coord, 0, 0) != ALLSTOP_STOPPED_BY_ERROR) return "the join";
  if (allstop_stop_record(&coord, &record) != ALLSTOP_OK || record == NULL) return "no record";
  if (allstop_record_read(&coord, record, &info) != ALLSTOP_OK) return "an unread record";
  if (info.message.size < sizeof(message)) memcpy(message, info.message.data, info.message.size);
  allstop_record_release(&coord, record);
  return message;
}
