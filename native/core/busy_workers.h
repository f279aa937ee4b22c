// What the workers of this process's clusters run, and which bodies of Coordinator.run have not
// returned, as the end of the process says it (exit_report.h).
#ifndef ALLSTOP_CORE_BUSY_WORKERS_H_
#define ALLSTOP_CORE_BUSY_WORKERS_H_

#include <chrono>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace allstop::core {

// A function that a worker runs, or a body of Coordinator.run.
struct BusyWorker {
  std::string text;  // "worker:0 (thread 5) runs 'resize'"
  std::chrono::steady_clock::time_point started_at;
  std::uint64_t kernel_id = 0;  // of the thread or of the process; 0: unknown
};

// One list for the process: its end concerns the workers of all clusters. Its mutex is the last in
// the lock order.
class BusyWorkers {
 public:
  static BusyWorkers& Get();  // never destroyed: a native thread may end the process late

  // Replaces what `owner` has said before.
  void Set(const void* owner, std::vector<BusyWorker> workers);
  void Remove(const void* owner) noexcept;
  std::vector<BusyWorker> All() const;

 private:
  mutable std::mutex mutex_;
  std::map<const void*, std::vector<BusyWorker>> by_owner_;  // guarded by mutex_
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_BUSY_WORKERS_H_
