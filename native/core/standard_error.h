// Writing to standard output and standard error at once. The last words of a process: nothing may
// keep them from being written, and they may keep nothing waiting for ever.
#ifndef ALLSTOP_CORE_STANDARD_ERROR_H_
#define ALLSTOP_CORE_STANDARD_ERROR_H_

#include <string_view>

namespace allstop::core {

// Writes `text`, also where standard error is a pipe that does not block. Gives up when the reader
// of a full pipe has read nothing for `patience_ms`. Any thread.
void WriteToStandardError(std::string_view text, int patience_ms) noexcept;

// Waits until the pipe, socket or terminal takes bytes, for `patience_ms` at most. False: it takes
// none yet, or never will. Windows, where writes to standard output block: true. Any thread.
bool AwaitWritable(int descriptor, int patience_ms) noexcept;

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_STANDARD_ERROR_H_
