#include "signals.h"

#if defined(_WIN32)

namespace allstop::binding {

std::uint64_t LinkSignals(std::shared_ptr<core::Coordinator>,
                          std::vector<std::pair<int, std::string>>, std::string) {
  return 0;
}

void UnlinkSignals(std::uint64_t) {}

void ReinstallSignals() {}

}  // namespace allstop::binding

#else

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>

#include "../core/fault_point.h"
#include "../core/identity.h"

namespace allstop::binding {
namespace {

// The state that the signal handler touches. It is lock-free, and static or never freed, since a
// signal handler must not take locks and may run at any time.

// One link, as the handler sees it. Reused for another link after UnlinkSignals.
struct HandlerEntry {
  std::atomic<std::uint64_t> signals{0};  // bit N-1: signal N is linked; 0: unused
  std::atomic<bool> delivered{false};     // the link has had its first signal
  HandlerEntry* next = nullptr;           // constant once the entry is in handler_entries
};

std::atomic<HandlerEntry*> handler_entries{nullptr};  // grows at the front and never shrinks
std::atomic<int> pipe_in{-1};
struct sigaction previous[NSIG];  // written before the handler is installed

std::uint64_t BitOf(int signal) { return std::uint64_t{1} << (signal - 1); }

// Marks all links of `signal` as delivered. Returns whether it is the first of one of them.
bool TakeFirst(int signal) {
  bool linked = false;
  bool first = false;
  for (HandlerEntry* entry = handler_entries.load(); entry != nullptr; entry = entry->next) {
    if ((entry->signals.load() & BitOf(signal)) == 0) continue;
    linked = true;
    if (!entry->delivered.exchange(true)) first = true;
  }
  return first || !linked;  // if no link is left, only the previous handler acts
}

void Handle(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  if (!TakeFirst(signal)) {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
    raise(signal);  // the signal is pending until this handler has returned
    errno = saved_errno;
    return;
  }
  const auto byte = static_cast<unsigned char>(signal);
  // Each link causes at most one byte until its stop is cleared, so the pipe is never full.
  [[maybe_unused]] const ssize_t written = write(pipe_in.load(), &byte, 1);
  const struct sigaction& next = previous[signal];
  if ((next.sa_flags & SA_SIGINFO) != 0) {
    next.sa_sigaction(signal, info, context);
  } else if (next.sa_handler != SIG_DFL && next.sa_handler != SIG_IGN) {
    next.sa_handler(signal);
  }
  errno = saved_errno;
}

// When a link's stop is cleared, makes the link's next signal a first one again.
class Rearm final : public core::Observer {
 public:
  explicit Rearm(HandlerEntry& entry) : entry_(entry) {}
  void OnClear() override { entry_.delivered.store(false); }

 private:
  HandlerEntry& entry_;
};

class SignalHub {
 public:
  // Never destroyed, since its thread never ends.
  static SignalHub& Get() {
    static SignalHub* const hub = new SignalHub;
    return *hub;
  }

  std::uint64_t Add(std::shared_ptr<core::Coordinator> coordinator,
                    std::vector<std::pair<int, std::string>> signals, std::string stack) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!Start()) return 0;
    HandlerEntry& entry = UnusedEntry();
    auto rearm = std::make_shared<Rearm>(entry);
    coordinator->AddObserver(rearm, nullptr);
    coordinator->SetInterested(*rearm, true);
    std::uint64_t bits = 0;
    for (const auto& [signal, name] : signals) {
      bits |= BitOf(signal);
      ++users_[signal];
      Install(signal);
    }
    entry.delivered.store(false);
    entry.signals.store(bits);
    links_.emplace(next_id_, Link{std::move(coordinator), std::move(rearm), std::move(signals),
                                  std::move(stack), &entry});
    return next_id_++;
  }

  void Remove(std::uint64_t id) {
    Link removed;  // destroyed after the lock is released: it may be the coordinator's last owner
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = links_.find(id);
      if (found == links_.end()) return;
      removed = std::move(found->second);
      links_.erase(found);
      removed.entry->signals.store(0);
      for (const auto& [signal, name] : removed.signals) {
        if (--users_[signal] == 0) Restore(signal);
      }
    }
    removed.coordinator->RemoveObserver(*removed.rearm);
    const std::lock_guard<std::mutex> lock(mutex_);
    // After RemoveObserver: until then OnClear may still change the entry.
    unused_entries_.push_back(removed.entry);
  }

  void Reinstall() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [signal, users] : users_) {
      if (users > 0) Install(signal);
    }
  }

 private:
  struct Link {
    std::shared_ptr<core::Coordinator> coordinator;
    std::shared_ptr<Rearm> rearm;
    std::vector<std::pair<int, std::string>> signals;
    std::string stack;
    HandlerEntry* entry = nullptr;
  };

  HandlerEntry& UnusedEntry() {
    if (!unused_entries_.empty()) {
      HandlerEntry& entry = *unused_entries_.back();
      unused_entries_.pop_back();
      return entry;
    }
    auto* const entry = new HandlerEntry;
    entry->next = handler_entries.load();
    handler_entries.store(entry);
    return *entry;
  }

  bool Start() {
    if (pipe_in.load() != -1) return true;
    int ends[2];
    if (pipe(ends) != 0) return false;
    for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
    try {
      std::thread([this, out = ends[0]] { Run(out); }).detach();
    } catch (const std::system_error&) {  // no thread: Add returns 0, and JavaScript listens
      for (const int end : ends) close(end);
      return false;
    }
    pipe_in.store(ends[1]);  // set last, when nothing can fail: -1 means that Start must try again
    return true;
  }

  static bool IsOurs(const struct sigaction& action) {
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == Handle;
  }

  // Called for each new link, since Node removes this handler when JavaScript has removed its
  // last listener of the signal.
  void Install(int signal) {
    struct sigaction current = {};
    sigaction(signal, nullptr, &current);
    if (IsOurs(current)) return;
    previous[signal] = current;
    struct sigaction action = {};
    action.sa_sigaction = Handle;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }

  void Restore(int signal) {
    struct sigaction current = {};
    sigaction(signal, nullptr, &current);
    if (IsOurs(current)) sigaction(signal, &previous[signal], nullptr);
  }

  void Run(int out) {
    for (;;) {
      unsigned char signal = 0;
      const ssize_t got = read(out, &signal, 1);
      if (got == 1) {
        Deliver(signal);
      } else if (errno != EINTR) {
        return;  // the program has closed the pipe: end, rather than loop on the error
      }
    }
  }

  void Deliver(int signal) {
    ALLSTOP_FAULT_POINT(kSignalTaken);
    std::vector<std::pair<std::shared_ptr<core::Coordinator>, core::StopRequest>> stops;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      for (const auto& [id, link] : links_) {
        for (const auto& [linked, name] : link.signals) {
          if (linked != signal) continue;
          core::StopRequest request;
          request.requester = core::ThisNativeThread(core::Via::kSignal);
          request.requester.thread_name = "signal";
          request.requester.signal = name;
          request.requester.stack = link.stack;
          request.has_caller = false;
          stops.emplace_back(link.coordinator, std::move(request));
        }
      }
    }
    for (auto& [coordinator, request] : stops) coordinator->RequestStop(request);
  }

  // Taken with no lock of the core held; Add takes the coordinator's mutex_ while it holds this
  // one. The signal handler does not take it.
  std::mutex mutex_;
  // Guarded by mutex_.
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Link> links_;
  std::map<int, int> users_;  // the number of links of each signal
  std::vector<HandlerEntry*> unused_entries_;
};

}  // namespace

std::uint64_t LinkSignals(std::shared_ptr<core::Coordinator> coordinator,
                          std::vector<std::pair<int, std::string>> signals, std::string stack) {
  return SignalHub::Get().Add(std::move(coordinator), std::move(signals), std::move(stack));
}

void UnlinkSignals(std::uint64_t link) { SignalHub::Get().Remove(link); }

void ReinstallSignals() { SignalHub::Get().Reinstall(); }

}  // namespace allstop::binding

#endif
