#include "signals.h"

#if defined(_WIN32)

namespace allstop::binding {

std::uint64_t LinkSignals(std::shared_ptr<core::Coordinator>,
                          std::vector<std::pair<int, std::string>>, std::string) {
  return 0;
}

void UnlinkSignals(std::uint64_t, bool) {}

void ReinstallSignals() {}

}  // namespace allstop::binding

#else

#include <fcntl.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <exception>
#include <map>
#include <mutex>
#include <optional>

#include "../core/background_thread.h"
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
//     So does one that is on top while a press lasts. Once that is over it is as if it were not
//     there.
//  6. Handle takes no lock, allocates nothing, and touches only what is atomic or constant.

// How long what follows a first signal is taken for the same press of a key, or the same request. A
// launcher (npm, nodemon, tsx) passes on the Ctrl-C that the terminal has sent to the program, too,
// and some send SIGTERM after it. A person does not press twice in this time and mean it.
constexpr std::int64_t kOnePressNs = 500'000'000;

// A launcher on a busy machine takes longer. What a process of the same session sends within this
// time of the terminal's own signal is the launcher's copy. The second press of a person comes from
// the terminal.
constexpr std::int64_t kLateCopyNs = 2'000'000'000;

// The state that the signal handler touches. It is lock-free, and static or never freed, since a
// signal handler must not take locks and may run at any time.

// One link, as the handler sees it. Reused for another link when its Rearm is gone.
struct HandlerEntry {
  std::atomic<std::uint64_t> signals{0};  // bit N-1: signal N is linked; 0: the link has ended
  std::atomic<bool> delivered{false};     // the link has had its first signal
  std::atomic<bool> is_used{true};        // a Rearm has it
  HandlerEntry* next = nullptr;           // constant once the entry is in handler_entries
};

std::atomic<HandlerEntry*> handler_entries{nullptr};  // grows at the front and never shrinks
std::atomic<int> pipe_in{-1};
// The process that has made the links. A child that an addon makes by fork() has the handlers, too.
std::atomic<pid_t> own_process{0};
// By signal, on the clock of Now(). What comes before press_ends belongs to the press that has
// counted. So does a launcher's copy that comes before copies_end.
std::atomic<std::int64_t> press_ends[NSIG];
std::atomic<std::int64_t> copies_end[NSIG];

static_assert(std::atomic<std::uint64_t>::is_always_lock_free &&
                  std::atomic<pid_t>::is_always_lock_free,
              "a signal handler uses them");

// One for the first link, and one for each handler that takes the signal and calls none before it.
constexpr int kLevels = 4;

using PlainHandler = void (*)(int);
using InfoHandler = void (*)(int, siginfo_t*, void*);

struct Level {
  // The handler before this one. With no `with_info`, `plain` may be SIG_DFL (null) or SIG_IGN.
  std::atomic<PlainHandler> plain{SIG_DFL};
  std::atomic<InfoHandler> with_info{nullptr};
  std::atomic<int> passing{0};  // the threads that are in that handler
};

Level levels[NSIG][kLevels];

std::uint64_t BitOf(int signal) { return std::uint64_t{1} << (signal - 1); }

// Nanoseconds of the monotonic clock. std::chrono is not promised to be safe in a handler.
std::int64_t Now() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

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

template <int level>
void Handle(int signal, siginfo_t* info, void* context);

constexpr InfoHandler kHandlers[kLevels] = {Handle<0>, Handle<1>, Handle<2>, Handle<3>};

// Whether `info` may be read. A handler above that was installed without SA_SIGINFO may call this
// one with the number only; then `info` is what happens to be in a register.
bool IsReadable([[maybe_unused]] int signal, const siginfo_t* info) {
#if defined(__linux__)
  // The kernel reads eight bytes before it refuses -1, as in absl's AddressIsReadable.
  const auto is_readable = [](const void* word) {
    return syscall(SYS_rt_sigprocmask, -1, word, nullptr, 8) != 0 && errno != EFAULT;
  };
  return info != nullptr && is_readable(&info->si_signo) && is_readable(&info->si_pid);
#else
  const InfoHandler top = OnTop(signal).sa_sigaction;
  return info != nullptr && std::find(kHandlers, kHandlers + kLevels, top) != kHandlers + kLevels;
#endif
}

// The process that has sent the signal. 0: the kernel, for a terminal; or unknown.
pid_t SenderOf(int signal, const siginfo_t* info) {
  if (!IsReadable(signal, info) || info->si_signo != signal) return 0;
  switch (info->si_code) {
    case SI_USER:
    case SI_QUEUE:
#ifdef SI_TKILL
    case SI_TKILL:  // raise(), pthread_kill()
#endif
      return info->si_pid;
    default: return 0;
  }
}

// Whether `sender` may be a launcher, or a process by which that has sent the signal.
bool IsOfOurSession(pid_t sender) {
  if (sender <= 0) return false;
  const pid_t session = getsid(sender);
  return session == -1 || session == getsid(0);  // -1: it has ended
}

enum class Verdict {
  kFirst,     // of a link: the link's coordinator stops, and the handler before is called
  kCounted,   // a level above has judged it, and passed it on
  kUnlinked,  // as if there were no handler of ours
  kNothing,   // it belongs to a signal that has counted
  kDefault,   // what the system does where no handler is
};

// Marks the links of `signal` that have had none as delivered.
Verdict Judge(int signal, const siginfo_t* info) {
  // Else the child would write into the pipe that it shares with its parent, and stop the parent.
  if (getpid() != own_process.load()) return Verdict::kDefault;
  const std::int64_t now = Now();
  const pid_t sender = SenderOf(signal, info);
  bool is_linked = false;
  bool is_first = false;
  for (HandlerEntry* entry = handler_entries.load(); entry != nullptr; entry = entry->next) {
    const std::uint64_t linked = entry->signals.load();
    if ((linked & BitOf(signal)) == 0) continue;
    is_linked = true;
    if (entry->delivered.load()) continue;
    // Before `delivered` is set: another thread that finds it set must find the press, too.
    for (int each = 1; each < NSIG; ++each) {
      if ((linked & BitOf(each)) == 0) continue;
      press_ends[each].store(now + kOnePressNs);
      copies_end[each].store(sender == 0 ? now + kLateCopyNs : 0);
    }
    if (!entry->delivered.exchange(true)) is_first = true;
  }
  if (is_first) return Verdict::kFirst;
  if (now < press_ends[signal].load()) return Verdict::kNothing;
  if (!is_linked) return Verdict::kUnlinked;
  // A framework sends the signal that it has handled to its own process when it has finished.
  if (sender == getpid()) return Verdict::kNothing;
  const bool is_copy = now < copies_end[signal].load() && IsOfOurSession(sender);
  return is_copy ? Verdict::kNothing : Verdict::kDefault;
}

void Report(int signal) {
  const auto byte = static_cast<unsigned char>(signal);
  // Each link causes at most one byte until its stop is cleared, so the pipe is never full.
  [[maybe_unused]] const ssize_t written = write(pipe_in.load(), &byte, 1);
}

bool HasCounted(int signal, int level) {
  return std::any_of(levels[signal] + level + 1, levels[signal] + kLevels,
                     [](const Level& higher) { return higher.passing.load() > 0; });
}

void PassOn(Level& level, int signal, siginfo_t* info, void* context) {
  ++level.passing;
  const PlainHandler plain = level.plain.load();
  if (const InfoHandler with_info = level.with_info.load()) {
    with_info(signal, info, context);
  } else if (plain != SIG_DFL && plain != SIG_IGN) {
    plain(signal);
  }
  --level.passing;
}

bool IsBeforeDefault(const Level& level) {
  return level.with_info.load() == nullptr && level.plain.load() == SIG_DFL;
}

void ActByDefault(int signal) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
  raise(signal);  // the signal is pending until the handler has returned
}

template <int level>
void Handle(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  Level& own = levels[signal][level];
  switch (HasCounted(signal, level) ? Verdict::kCounted : Judge(signal, info)) {
    case Verdict::kFirst: Report(signal); [[fallthrough]];
    case Verdict::kCounted: PassOn(own, signal, info, context); break;
    case Verdict::kUnlinked:
      // If this level is not on top, the handler that has called it has acted by itself.
      if (IsBeforeDefault(own) && OnTop(signal).sa_sigaction == kHandlers[level]) {
        ActByDefault(signal);
      } else {
        PassOn(own, signal, info, context);
      }
      break;
    case Verdict::kNothing: break;
    case Verdict::kDefault: ActByDefault(signal); break;
  }
  errno = saved_errno;
}

// Node ignores these. Where JavaScript has removed its last listener of one, the runtime leaves the
// default behind, and the next write to a pipe without a reader would end the process.
void IgnoreAgain(int signal) {
  if (signal != SIGPIPE && signal != SIGXFSZ) return;
  struct sigaction top = OnTop(signal);
  if (HasInfo(top) || top.sa_handler != SIG_DFL) return;
  top.sa_handler = SIG_IGN;
  sigaction(signal, &top, nullptr);
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
    if (IsNone(top)) used_ = 0;
    used_ = static_cast<int>(
        std::find_if(previous_, previous_ + used_,
                     [&top](const struct sigaction& each) { return IsSame(each, top); }) -
        previous_);
    if (used_ == kLevels) return;
    const int level = used_++;
    previous_[level] = top;
    levels[signal][level].with_info.store(HasInfo(top) ? top.sa_sigaction : nullptr);
    levels[signal][level].plain.store(HasInfo(top) ? SIG_DFL : top.sa_handler);
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

// Has a link's HandlerEntry. When the link's stop is cleared, makes its next signal a first one
// again. A thread that has begun to clear the stop may call OnClear after RemoveObserver: the entry
// is no other link's until the last reference is gone.
class Rearm final : public core::Observer {
 public:
  explicit Rearm(std::uint64_t signals) : entry_(TakeEntry()) {
    entry_.delivered.store(false);
    entry_.signals.store(signals);
  }
  ~Rearm() override {
    End();
    entry_.is_used.store(false);
  }
  Rearm(const Rearm&) = delete;
  Rearm& operator=(const Rearm&) = delete;

  void OnClear() override { entry_.delivered.store(false); }
  void End() { entry_.signals.store(0); }

 private:
  static HandlerEntry& TakeEntry() {
    for (HandlerEntry* entry = handler_entries.load(); entry != nullptr; entry = entry->next) {
      if (!entry->is_used.exchange(true)) return *entry;
    }
    auto* const entry = new HandlerEntry;
    entry->next = handler_entries.load();
    while (!handler_entries.compare_exchange_weak(entry->next, entry)) {
    }
    return *entry;
  }

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
    std::uint64_t bits = 0;
    for (const auto& [signal, name] : signals) bits |= BitOf(signal);
    auto rearm = std::make_shared<Rearm>(bits);
    coordinator->AddObserver(rearm, nullptr);
    coordinator->SetInterested(*rearm, true);
    for (const auto& [signal, name] : signals) {
      Chain& chain = chains_[signal];
      ++chain.links;
      // Again for each link: Node takes the handler away when JavaScript has removed its last
      // listener of the signal, and others may have installed theirs.
      chain.Install(signal);
    }
    links_.emplace(next_id_, Link{std::move(coordinator), std::move(rearm), std::move(signals),
                                  std::move(stack)});
    return next_id_++;
  }

  void Remove(std::uint64_t id, bool ends_press) {
    Link removed;  // destroyed after the lock is released: it may be the coordinator's last owner
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = links_.find(id);
      if (found == links_.end()) return;
      removed = std::move(found->second);
      links_.erase(found);
      removed.rearm->End();
      for (const auto& [signal, name] : removed.signals) {
        Chain& chain = chains_[signal];
        if (--chain.links > 0) continue;
        IgnoreAgain(signal);
        if (ends_press) press_ends[signal].store(0);
        if (Now() < press_ends[signal].load()) {
          // Again: the runtime has taken the handler away, if JavaScript listens no more.
          chain.Install(signal);
        } else {
          chain.Restore(signal);
        }
      }
    }
    removed.coordinator->RemoveObserver(*removed.rearm);
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
  };

  bool Start() {
    if (pipe_in.load() != -1) return true;
    int ends[2];
    if (pipe(ends) != 0) return false;
    for (const int end : ends) fcntl(end, F_SETFD, FD_CLOEXEC);
    try {
      core::StartBackgroundThread([this, out = ends[0]] { Run(out); });
    } catch (const std::exception&) {  // no thread: Add returns 0, and JavaScript listens
      for (const int end : ends) close(end);
      return false;
    }
    own_process.store(getpid());
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
};

}  // namespace

std::uint64_t LinkSignals(std::shared_ptr<core::Coordinator> coordinator,
                          std::vector<std::pair<int, std::string>> signals, std::string stack) {
  return SignalHub::Get().Add(std::move(coordinator), std::move(signals), std::move(stack));
}

void UnlinkSignals(std::uint64_t link, bool ends_press) {
  SignalHub::Get().Remove(link, ends_press);
}

void ReinstallSignals() { SignalHub::Get().Reinstall(); }

}  // namespace allstop::binding

#endif
