// Invariants, cited below by number.
//
//  1. The coordinator alone decides whether a countdown runs, and since when: Ring reads the
//  current
//     stop (View). OnStop and OnClear carry no state, they only have Ring called. This matters
//     because observers are called with no lock held: a stop and the clear that followed it may
//     arrive here in the wrong order, and both may arrive after the end of the watch.
//  2. A ring that is set for too early a time does no harm: Ring asks the clock.
//  3. The way to the end of the process allocates nothing that it could not do without: a report
//     that finds no memory is left out, the end comes all the same.
//  4. The helper thread waits for nobody: it writes to standard error only what the other end has
//     room for, and reads the requester as far as it is known. This matters because the program
//     that hangs may be the reader of standard error, or the formatter of the stack.
#include "exit_timer.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

#include "alarm.h"
#include "exit_report.h"
#include "of_this_process.h"

namespace allstop::core {
namespace {

struct Watch final : Observer, Alarm {
  Watch(std::shared_ptr<Coordinator> watched, double span, std::optional<int> code,
        std::string description)
      : coordinator(std::move(watched)),
        ms(span),
        exit_code(code),
        link(coordinator->AddLink(std::move(description))) {}
  ~Watch() override { Alarm::End(); }

  void OnStop() override { RingAt(Clock::now()); }
  void OnClear() override { RingAt(Clock::now()); }

  void Ring() noexcept override {
    const std::optional<Clock::time_point> end = CountdownEnd();
    if (!end) return;
    if (Clock::now() >= *end) EndProcess(*coordinator, ms, exit_code);
    RingAt(*end);
  }

  // As the coordinator is now; empty: it is not stopped.
  std::optional<Clock::time_point> CountdownEnd() const noexcept {
    try {
      const auto record = coordinator->View().record;
      if (!record) return std::nullopt;
      return Deadline::After(ms, std::max(record->requested_at, began)).at();
    } catch (...) {  // no memory
      return Clock::now() + std::chrono::milliseconds(50);
    }
  }

  // Breaks the circle of references between the watch and the coordinator.
  void Detach() {
    Alarm::End();
    coordinator->RemoveObserver(*this);
    coordinator->RemoveLink(link);
  }

  const std::shared_ptr<Coordinator> coordinator;
  const double ms;
  const std::optional<int> exit_code;
  const std::uint64_t link;
  const Clock::time_point began = Clock::now();
};

// The watches of this process, by id.
class Watches {
 public:
  std::uint64_t Add(std::shared_ptr<Watch> watch) {
    // Not an id of a parent process, which may still be cancelled in a forked one.
    static std::atomic<std::uint64_t> next_id{1};
    const std::uint64_t id = next_id++;
    const std::lock_guard<std::mutex> lock(mutex_);
    watches_.emplace(id, std::move(watch));
    return id;
  }

  // Null if the process has none with this id.
  std::shared_ptr<Watch> Take(std::uint64_t id) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto taken = watches_.extract(id);
    return taken.empty() ? nullptr : taken.mapped();
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::shared_ptr<Watch>> watches_;  // guarded by mutex_
};

}  // namespace

std::uint64_t ExitAfterStop(const std::shared_ptr<Coordinator>& coordinator, double ms,
                            std::optional<int> exit_code, std::string description) {
  if (Deadline::After(ms).IsNever()) return 0;
  const auto watch = std::make_shared<Watch>(coordinator, ms, exit_code, std::move(description));
  try {
    coordinator->AddObserver(watch, nullptr);
    coordinator->SetInterested(*watch, true);
    watch->RingAt(Clock::now());  // the coordinator may be stopped
    return OfThisProcess<Watches>::Get().Add(watch);
  } catch (...) {
    watch->Detach();
    throw;
  }
}

void CancelExitAfterStop(std::uint64_t id) {
  Watches* const watches = OfThisProcess<Watches>::Find();
  if (const auto watch = watches ? watches->Take(id) : nullptr) watch->Detach();
}

}  // namespace allstop::core
