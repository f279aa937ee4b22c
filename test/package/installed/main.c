#include <allstop/allstop.h>

/* Exits with 0: a coordinator of the library stops. */
int main(void) {
  allstop_coordinator coord;
  int is_stopped;
  if (allstop_create(allstop_library_table(), NULL, &coord) != ALLSTOP_OK) return 1;
  is_stopped = allstop_should_stop(&coord);
  allstop_request_stop(&coord, NULL);
  is_stopped = !is_stopped && allstop_should_stop(&coord);
  allstop_release(&coord);
  return is_stopped ? 0 : 1;
}
