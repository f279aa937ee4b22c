#ifndef ALLSTOP_CORE_MADE_ONCE_H_
#define ALLSTOP_CORE_MADE_ONCE_H_

#include <atomic>

namespace allstop::core {

// An object that is made when it is first used, and lives as long as the process. The compiler
// makes a static of a function under a lock, and a process that is forked meanwhile waits for that
// lock for ever. MadeOnce takes no lock: each of the threads that come first together makes an
// object, and one object stays. A static MadeOnce is constant initialized, and so needs none
// either. Any thread.
template <typename T>
class MadeOnce {
 public:
  // Throws what `make` throws. It returns a pointer from `new`.
  template <typename Make>
  T& Get(Make make) {
    T* known = made_.load(std::memory_order_acquire);
    if (known != nullptr) return *known;
    T* const own = make();
    if (made_.compare_exchange_strong(known, own, std::memory_order_acq_rel)) return *own;
    delete own;
    return *known;
  }

 private:
  std::atomic<T*> made_{nullptr};
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_MADE_ONCE_H_
