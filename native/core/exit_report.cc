#include "exit_report.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "busy_workers.h"
#include "identity.h"
#include "js_threads.h"
#include "registry.h"
#include "standard_error.h"
#include "unseen_errors.h"

#if defined(_WIN32)
#include <windows.h>
#else
#include <unistd.h>
#endif

namespace allstop::core {
namespace {

// The number of a signal by its name, as Node has it in os.constants.signals; 0: unknown.
int SignalNumber(std::string_view name) {
  static constexpr std::pair<std::string_view, int> kSignals[] = {
#if defined(_WIN32)
    {"SIGHUP", 1},
    {"SIGINT", 2},
    {"SIGTERM", 15},
    {"SIGBREAK", 21},
#else
    {"SIGHUP", SIGHUP},
    {"SIGINT", SIGINT},
    {"SIGQUIT", SIGQUIT},
    {"SIGTRAP", SIGTRAP},
    {"SIGUSR1", SIGUSR1},
    {"SIGUSR2", SIGUSR2},
    {"SIGPIPE", SIGPIPE},
    {"SIGALRM", SIGALRM},
    {"SIGTERM", SIGTERM},
    {"SIGCHLD", SIGCHLD},
    {"SIGCONT", SIGCONT},
    {"SIGTSTP", SIGTSTP},
    {"SIGTTIN", SIGTTIN},
    {"SIGTTOU", SIGTTOU},
    {"SIGURG", SIGURG},
    {"SIGXCPU", SIGXCPU},
    {"SIGXFSZ", SIGXFSZ},
    {"SIGPROF", SIGPROF},
    {"SIGIO", SIGIO},
    {"SIGSYS", SIGSYS},
    {"SIGVTALRM", SIGVTALRM},
    {"SIGWINCH", SIGWINCH},
#endif
  };
  for (const auto& [known, number] : kSignals) {
    if (known == name) return number;
  }
  return 0;
}

// "2.5 s", "340 ms"
std::string Span(double ms) {
  char text[32];
  if (ms < 1000) {
    std::snprintf(text, sizeof(text), "%.0f ms", ms);
  } else {
    std::snprintf(text, sizeof(text), "%.1f s", ms / 1000);
  }
  return text;
}

std::string SpanSince(Clock::time_point start) {
  return Span(std::chrono::duration<double, std::milli>(Clock::now() - start).count());
}

#if defined(__linux__)
// The first line of a file of /proc; empty if it cannot be read. By C's streams: those of C++ would
// make the published binaries, which contain their library, a quarter of a megabyte larger.
std::string FirstLine(const std::string& path) {
  char line[512] = "";
  std::FILE* const file = std::fopen(path.c_str(), "re");
  if (file == nullptr) return {};
  const bool is_read = std::fgets(line, sizeof(line), file) != nullptr;
  std::fclose(file);
  if (!is_read) return {};
  std::string text = line;
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}
#endif

// Where the kernel has the thread with this OS thread id, or the main thread of the process with
// this id: ", is computing", ", is blocked in futex_wait_queue", ", waits for events (ep_poll)".
// Empty for 0, and except on Linux.
std::string WaitState(std::uint64_t kernel_id) {
#if defined(__linux__)
  const std::string task = "/proc/" + std::to_string(kernel_id);
  const std::string stat = FirstLine(task + "/stat");
  const std::string channel = FirstLine(task + "/wchan");
  const std::size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= stat.size()) return {};
  const char state = stat[name_end + 2];
  if (state == 'R') return ", is computing";
  if (state == 'Z') return ", has ended";
  if (state == 'T') return ", is stopped by a signal";
  if (channel.empty() || channel == "0") return ", is blocked";
  // An event loop that has nothing to do waits there.
  if (channel == "do_epoll_wait" || channel == "ep_poll")
    return ", waits for events (" + channel + ")";
  return ", is blocked in " + channel;
#else
  static_cast<void>(kernel_id);
  return {};
#endif
}

const char* KindName(ThreadKind kind) {
  switch (kind) {
    case ThreadKind::kWorker: return "worker";
    case ThreadKind::kProcess: return "process";
    case ThreadKind::kTask: return "task";
    case ThreadKind::kLooper: return "looper";
    case ThreadKind::kNative: return "native";
    case ThreadKind::kHook: return "hook";
    case ThreadKind::kCustom: return "custom";
  }
  return "thread";
}

// The id by which the kernel knows a thread that has a stack of its own; 0: it has none, or is not
// known. A worker is known once it has loaded the addon.
std::uint64_t KernelId(const ThreadInfo& thread) {
  if (!thread.has_thread_id) return 0;
  if (thread.is_os_thread || thread.kind == ThreadKind::kProcess) return thread.thread_id;
  if (thread.kind != ThreadKind::kWorker) return 0;
  return JsThreads::Get().Find(static_cast<std::uint32_t>(thread.thread_id));
}

// A name, or a line of a message, cannot steer the terminal, nor forge a line: control characters,
// also those of two bytes (U+0080 to U+009F), become escapes.
std::string Printable(std::string_view name) {
  std::string text;
  unsigned char before = 0;
  for (const char each : name) {
    const auto code = static_cast<unsigned char>(each);
    const bool is_second = std::exchange(before, code) == 0xc2 && (code & 0xe0) == 0x80;
    if (is_second) text.pop_back();
    if ((code >= 0x20 && code != 0x7f && !is_second) || each == '\t') {
      text += each;
    } else {
      char escape[8];
      std::snprintf(escape, sizeof(escape), "\\x%02x", code);
      text += escape;
    }
  }
  return text;
}

std::string ThreadLine(const ThreadInfo& thread) {
  std::string line = "  - '" + Printable(thread.name) + "' (" + KindName(thread.kind);
  if (thread.has_thread_id) line += ' ' + std::to_string(thread.thread_id);
  const std::string span = SpanSince(thread.started_at);
  // Hooks of one thread run one after the other, when its event loop turns.
  if (!thread.has_begun) return line + "): has not begun, " + span + " after the stop\n";
  line += "): running for " + span + WaitState(KernelId(thread));
  return line + '\n';
}

std::string BusyLine(const BusyWorker& worker) {
  std::string line = "  - " + Printable(worker.text);
  line += " for " + SpanSince(worker.started_at);
  line += WaitState(worker.kernel_id);
  return line + '\n';
}

std::string RequesterLine(const StopRecord& record, const Requester& requester) {
  std::string line;
  if (requester.via == Via::kSignal) {
    line = "the process received " + requester.signal;
  } else if (requester.via == Via::kTimeout) {
    line = "a deadline had passed (stopAfter)";
  } else if (requester.via == Via::kWorkerExit && requester.thread_id == 0) {
    line = "the process '" + Printable(requester.thread_name) + "' (" +
           std::to_string(requester.pid) + ") died";  // no main thread dies alone
  } else {
    line = std::string("the ") +
           (requester.language == Language::kNative ? "native" : "JavaScript") + " thread '" +
           Printable(requester.thread_name) + "' (" + std::to_string(requester.thread_id) +
           ") requested the stop";
  }
  if (record.inherited_from) line += ", which stopped a parent coordinator";
  if (record.error) {
    const ErrorFields& error = record.error->fields();
    const std::string_view message = error.message;
    line +=
        ", with " + Printable(error.name) + ": " + Printable(message.substr(0, message.find('\n')));
  }
  return line + '\n';
}

// Of each list of the report, and of the stacks: a longer text keeps a slow reader too long.
constexpr std::size_t kMostBytes = 16'384;

// The stack of the error and of its causes, each line indented. The process ends before anybody
// else could show them.
std::string StackLines(const EncodedError* error) {
  std::string text;
  for (const char* title = ""; error != nullptr && text.size() < kMostBytes; title = "Caused by ") {
    const ErrorFields& fields = error->fields();
    const std::string type =
        fields.native_type.empty() ? std::string() : " [" + fields.native_type + ']';
    const std::string headline = fields.name + type + ": " + fields.message;
    // The stack of an error of JavaScript begins with its name and message.
    std::string_view stack = fields.stack;
    if (stack.substr(0, headline.size()) == headline) stack.remove_prefix(headline.size());
    std::string lines = title + headline;
    if (!stack.empty() && stack.front() != '\n') lines += '\n';
    lines += stack.substr(0, kMostBytes);
    while (!lines.empty() && lines.back() == '\n') lines.pop_back();
    for (std::size_t at = 0; at <= lines.size();) {
      const std::size_t end = std::min(lines.find('\n', at), lines.size());
      text += "    " + Printable(std::string_view(lines).substr(at, end - at)) + '\n';
      at = end + 1;
    }
    error = fields.cause.get();
  }
  return text;
}

struct Lines {
  std::string text;
  int count = 0;

  void Add(const ThreadInfo& thread) {
    if (text.size() < kMostBytes) {
      text += ThreadLine(thread);
      if (text.size() >= kMostBytes) text += "  - and more\n";
    }
    ++count;
  }
};

// A line for each thread of the coordinator that has not ended. Hooks that wait come after the one
// for which they wait.
Lines ThreadLines(const Coordinator& coordinator) {
  Lines lines;
  const auto live = coordinator.LiveThreads();
  for (const bool has_begun : {true, false}) {
    for (const ThreadInfo& thread : live) {
      if (thread.alive && thread.has_begun == has_begun) lines.Add(thread);
    }
  }
  for (const LeftBehindThread& thread : coordinator.LeftBehindThreads()) {
    lines.Add(thread.info);
  }
  return lines;
}

// The threads of all other coordinators that are stopped: a hook of this one may wait for them.
std::string OtherLines(const Coordinator& coordinator) {
  std::string text;
  for (const auto& other : Registry<Coordinator>::Get().All()) {
    if (other.get() == &coordinator || !other->ShouldStop()) continue;
    const Lines lines = ThreadLines(*other);
    if (lines.count == 0) continue;
    text += "allstop: " + std::to_string(lines.count) + " still running of the coordinator '" +
            Printable(other->name()) + "', which is stopped, too:\n" + lines.text;
    if (text.size() > kMostBytes) return text + "allstop: and more\n";
  }
  return text;
}

std::string Report(const Coordinator& coordinator, const StopRecord& record,
                   const Requester& requester, double ms, int exit_code) {
  std::string text = "allstop: process " + std::to_string(ProcessId()) + " exits with code " +
                     std::to_string(exit_code) + ", " + Span(ms) + " after the stop of '" +
                     Printable(coordinator.name()) + "' (exitAfterStop)\nallstop: ";
  text += RequesterLine(record, requester);
  if (record.error) text += StackLines(record.error.get());
  const std::string main_state = WaitState(static_cast<std::uint64_t>(ProcessId()));
  if (!main_state.empty()) text += "allstop: the main thread" + main_state.substr(1) + '\n';
  const Lines lines = ThreadLines(coordinator);
  const std::string others = OtherLines(coordinator);
  const auto busy = BusyWorkers::Get().All();
  if (lines.count > 0) {
    text += "allstop: " + std::to_string(lines.count) + " still running:\n" + lines.text;
  } else {
    text += "allstop: no registered thread is left";
    const bool is_main_busy = !main_state.empty() && main_state.rfind(", waits for", 0) != 0;
    if (busy.empty() && others.empty()) {
      text += is_main_busy ? ": the main thread does not return to its event loop"
                           : ": what keeps the process alive is not registered (a server, a "
                             "socket, a timer, a Worker)";
    }
    text += '\n';
  }
  text += others;
  if (!busy.empty()) text += "allstop: functions that have not returned:\n";
  for (const BusyWorker& worker : busy) text += BusyLine(worker);
  return text;
}

}  // namespace

void TellUnseen() noexcept {
  try {
    const UnseenErrors::Report unseen = UnseenErrors::Get().Take();
    if (unseen.errors.empty()) return;
    std::string text;
    for (const auto& [error, source, origin] : unseen.errors) {
      text += "allstop: unhandled error of " + Printable(source);
      const std::string thrower = origin ? origin->Get().thread_name : std::string();
      if (!thrower.empty()) text += ", thrown by '" + Printable(thrower) + '\'';
      text += ":\n" + StackLines(error.get());
    }
    if (unseen.dropped > 0) {
      text += "allstop: and " + std::to_string(unseen.dropped) + " older errors\n";
    }
    text += "allstop: the last thread that uses allstop was ended, so the exit code stays\n";
    constexpr int kPatienceMs = 5'000;
    WriteToStandardError(text, kPatienceMs);
  } catch (...) {  // no memory for the text
  }
}

void EndProcess(int exit_code) {
#if defined(_WIN32)
  TerminateProcess(GetCurrentProcess(), static_cast<UINT>(exit_code));
  std::abort();  // not reached
#else
  _exit(exit_code);
#endif
}

void EndProcess(const Coordinator& coordinator, double ms, std::optional<int> exit_code) {
  int code = exit_code.value_or(1);
  try {
    const auto record = coordinator.View().record;
    if (record) {
      const Requester requester = record->RequesterSoFar();
      const int signal = requester.via == Via::kSignal ? SignalNumber(requester.signal) : 0;
      if (!exit_code && signal != 0) code = 128 + signal;
      // A reader that has stopped reading must not keep the process alive.
      constexpr int kPatienceMs = 20;
      WriteToStandardError(Report(coordinator, *record, requester, ms, code), kPatienceMs);
    }
  } catch (...) {  // no memory for the report
  }
  EndProcess(code);
}

}  // namespace allstop::core
