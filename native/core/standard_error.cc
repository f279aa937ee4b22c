#include "standard_error.h"

#include <cstddef>

#if defined(_WIN32)
#include <windows.h>
#else
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace allstop::core {

#if defined(_WIN32)

void WriteToStandardError(std::string_view text, int /*patience_ms*/) noexcept {
  DWORD written = 0;
  WriteFile(GetStdHandle(STD_ERROR_HANDLE), text.data(), static_cast<DWORD>(text.size()), &written,
            nullptr);
}

bool AwaitWritable(int /*descriptor*/, int /*patience_ms*/) noexcept { return true; }

#else

bool AwaitWritable(int descriptor, int patience_ms) noexcept {
  pollfd end{descriptor, POLLOUT, 0};
  int ready = 0;
  while ((ready = poll(&end, 1, patience_ms)) == -1 && errno == EINTR) {
  }
  return ready == 1 && (end.revents & POLLOUT) != 0;
}

void WriteToStandardError(std::string_view text, int patience_ms) noexcept {
  constexpr std::size_t kAtOnce = 512;  // POSIX: a pipe that polls writable takes that many bytes
  while (!text.empty()) {
    if (!AwaitWritable(STDERR_FILENO, patience_ms)) return;
    const ssize_t written =
        write(STDERR_FILENO, text.data(), text.size() < kAtOnce ? text.size() : kAtOnce);
    if (written == -1 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

#endif

}  // namespace allstop::core
