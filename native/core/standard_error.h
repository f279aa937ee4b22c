// Standard error for the last words of a process: nothing may keep them from being written, and
// they may keep nothing waiting for ever.
#ifndef ALLSTOP_CORE_STANDARD_ERROR_H_
#define ALLSTOP_CORE_STANDARD_ERROR_H_

#include <string_view>

namespace allstop::core {

// Writes `text`, also where standard error is a pipe that does not block. Gives up when the reader
// of a full pipe has read nothing for `patience_ms`. Any thread.
void WriteToStandardError(std::string_view text, int patience_ms) noexcept;

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_STANDARD_ERROR_H_
