// The name of an errno, as Node's errors have it in `code`.
#ifndef ALLSTOP_CORE_ERRNO_NAME_H_
#define ALLSTOP_CORE_ERRNO_NAME_H_

namespace allstop::core {

// "ENOENT"; "" for 0, and for a number without a name here.
const char* ErrnoName(int number);

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_ERRNO_NAME_H_
