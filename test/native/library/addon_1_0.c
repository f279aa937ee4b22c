/* Stands for an addon that was compiled with allstop.h 1.0. Its copy of the header must
 * not be changed. */
#include <string.h>

#include "allstop_1_0_frozen.h"

/* The sizes of its structs: the test checks that they differ from today's. */
size_t addon_1_0_error_size(void) { return sizeof(allstop_error); }
size_t addon_1_0_table_size(void) { return sizeof(allstop_table); }

/* Fails a thread with the message "from an old addon". Returns the message that it then
 * reads from the record, or what went wrong. */
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
