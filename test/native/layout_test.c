/* No struct of the C interface ends with padding: a field that a later version appends must not
 * lie where an older caller has garbage. Compiled for this machine, and with clang, if it is
 * installed, for the targets that CMakeLists.txt names. The test is that it compiles. */
#include "allstop/allstop.h"

#define ENDS_WITH(type, field)                                                          \
  _Static_assert(sizeof(type) == offsetof(type, field) + sizeof(((type *)NULL)->field), \
                 #type " must end with its field " #field ", without padding")

ENDS_WITH(allstop_string, size);
ENDS_WITH(allstop_error, encoded);
ENDS_WITH(allstop_options, clean_stop_type_count);
ENDS_WITH(allstop_record_info, native_type);
ENDS_WITH(allstop_coordinator, stop_word);
ENDS_WITH(allstop_capsule, state);
ENDS_WITH(allstop_queue, state);
ENDS_WITH(allstop_item, in_place);
ENDS_WITH(allstop_queue_options, capacity);
ENDS_WITH(allstop_queue_info, name);
ENDS_WITH(allstop_variable, state);
ENDS_WITH(allstop_variable_info, name);
