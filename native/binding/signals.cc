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
#include <optional>
#include <system_error>
#include <thread>

#include "../core/fault_point.h"
#include "../core/identity.h"

namespace allstop::binding {
namespace {

// The handlers of one signal form a chain: a new one is put on top, and most call the one that was
// there before. Others install handlers, too: Node, addons, further copies of this addon. Nothing
// tells which handlers the one on top leads to.
//
//  1. Handle<level> is a handler of its own for each level, and has its own handler before it. A
//     level is installed above all levels to which the handler on top may lead. So a level leads
//     only to lower ones, and a chain ends. Another's handler that calls the one before it leads to
//     the level that it has replaced, also if it puts this level back on top later.
//  2. The handler on top may lead to each level in use. It leads to none if it is no function, and
//     to none from level N on if it is the handler before level N.
//  3. When all levels are in use, the handler on top is taken for one that leads to them.
//  4. One signal counts once: at the first level that it enters, the highest of its chain. Lower
//     ones know it by `passing` of the higher ones. (While the handlers change, a signal may enter
//     a lower level as another thread passes one on. It is then one with it, as two pending signals
//     are.)
//  5. A level that is not on top when the last link ends stays in the chain, and passes signals on.
//  6. Handle takes no lock, allocates nothing, and touches only what is atomic or constant.

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

// One for the first link, and one for each handler that takes the signal and calls none before it.
constexpr int kLevels = 4;

using PlainHandler = void (*)(int);
using InfoHandler = void (*)(int, siginfo_t*, void*);

struct Level {
  // The handler before this one. Both null: the default one, or none.
  std::atomic<PlainHandler> plain{nullptr};
  std::atomic<InfoHandler> with_info{nullptr};
  std::atomic<int> passing{0};  // the threads that are in that handler
};

Level levels[NSIG][kLevels];

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

bool HasCounted(int signal, int level) {
  return std::any_of(levels[signal] + level + 1, levels[signal] + kLevels,
                     [](const Level& higher) { return higher.passing.load() > 0; });
}

// False: it is a second signal.
bool Count(int signal) {
  if (!TakeFirst(signal)) return false;
  const auto byte = static_cast<unsigned char>(signal);
  // Each link causes at most one byte until its stop is cleared, so the pipe is never full.
  [[maybe_unused]] const ssize_t written = write(pipe_in.load(), &byte, 1);
  return true;
}

void PassOn(Level& level, int signal, siginfo_t* info, void* context) {
  ++level.passing;
  if (const InfoHandler with_info = level.with_info.load()) {
    with_info(signal, info, context);
  } else if (const PlainHandler plain = level.plain.load()) {
    plain(signal);
  }
  --level.passing;
}

template <int level>
void Handle(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  if (HasCounted(signal, level) || Count(signal)) {
    PassOn(levels[signal][level], signal, info, context);
  } else {
    struct sigaction action = {};
    action.sa_handler = SIG_DFL;
    sigaction(signal, &action, nullptr);
    raise(signal);  // the signal is pending until this handler has returned
  }
  errno = saved_errno;
}

constexpr InfoHandler kHandlers[kLevels] = {Handle<0>, Handle<1>, Handle<2>, Handle<3>};

bool HasInfo(const struct sigaction& action) { return (action.sa_flags & SA_SIGINFO) != 0; }

// sa_handler and sa_sigaction are one word.
bool IsNone(const struct sigaction& action) {
  return action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN;
}

bool IsSame(const struct sigaction& one, const struct sigaction& other) {
  return HasInfo(one) == HasInfo(other) && one.sa_handler == other.sa_handler;
}

struct sigaction OnTop(int signal) {
  struct sigaction top = {};
  sigaction(signal, nullptr, &top);
  return top;
}

// Which levels of one signal are in use. Guarded by SignalHub::mutex_.
class Chain {
 public:
  // Puts a level on top, unless one is there or (3) applies.
  void Install(int signal) {
    const struct sigaction top = OnTop(signal);
    if (const auto level = LevelOf(top)) {
      used_ = *level + 1;
      return;
    }
    const bool is_none = IsNone(top);
    if (is_none) used_ = 0;
    used_ = static_cast<int>(
        std::find_if(previous_, previous_ + used_,
                     [&top](const struct sigaction& each) { return IsSame(each, top); }) -
        previous_);
    if (used_ == kLevels) return;
    const int level = used_++;
    previous_[level] = top;
    levels[signal][level].with_info.store(is_none || !HasInfo(top) ? nullptr : top.sa_sigaction);
    levels[signal][level].plain.store(is_none || HasInfo(top) ? nullptr : top.sa_handler);
    struct sigaction action = {};
    action.sa_sigaction = kHandlers[level];
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
    sigfillset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }

  // Takes a level from the top, if one is there.
  void Restore(int signal) {
    const auto level = LevelOf(OnTop(signal));
    if (!level) return;
    sigaction(signal, &previous_[*level], nullptr);
    used_ = *level;
  }

  int links = 0;

 private:
  static std::optional<int> LevelOf(const struct sigaction& action) {
    if (!HasInfo(action)) return std::nullopt;
    const auto* const found = std::find(kHandlers, kHandlers + kLevels, action.sa_sigaction);
    if (found == kHandlers + kLevels) return std::nullopt;
    return static_cast<int>(found - kHandlers);
  }

  int used_ = 0;  // how many levels, from 0 on
  struct sigaction previous_[kLevels] = {};
};

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
      Chain& chain = chains_[signal];
      ++chain.links;
      // Again for each link: Node takes the handler away when JavaScript has removed its last
      // listener of the signal, and others may have installed theirs.
      chain.Install(signal);
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
        Chain& chain = chains_[signal];
        if (--chain.links == 0) chain.Restore(signal);
      }
    }
    removed.coordinator->RemoveObserver(*removed.rearm);
    const std::lock_guard<std::mutex> lock(mutex_);
    // After RemoveObserver: until then OnClear may still change the entry.
    unused_entries_.push_back(removed.entry);
  }

  void Reinstall() {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [signal, chain] : chains_) {
      if (chain.links > 0) chain.Install(signal);
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
  std::map<int, Chain> chains_;  // by signal
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
