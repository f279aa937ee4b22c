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

#else

void WriteToStandardError(std::string_view text, int patience_ms) noexcept {
  constexpr std::size_t kAtOnce = 512;  // POSIX: a pipe that polls writable takes that many bytes
  while (!text.empty()) {
    pollfd descriptor{STDERR_FILENO, POLLOUT, 0};
    const int ready = poll(&descriptor, 1, patience_ms);
    if (ready == -1 && errno == EINTR) continue;
    if (ready != 1 || (descriptor.revents & POLLOUT) == 0) return;
    const ssize_t written =
        write(STDERR_FILENO, text.data(), text.size() < kAtOnce ? text.size() : kAtOnce);
    if (written == -1 && (errno == EINTR || errno == EAGAIN)) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

#endif

}  // namespace allstop::core
