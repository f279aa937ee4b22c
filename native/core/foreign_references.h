// References to an object from owners that cannot hold a C++ shared_ptr.
#ifndef ALLSTOP_CORE_FOREIGN_REFERENCES_H_
#define ALLSTOP_CORE_FOREIGN_REFERENCES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

namespace allstop::core {

// The base of the classes whose objects other addons own through the C functions of
// abi/: `allstop_table::retain` and `release` are these methods. Any thread.
template <typename Object>
class ForeignReferences : public std::enable_shared_from_this<Object> {
 public:
  void Retain() {
    const std::lock_guard lock(lock_);
    if (references_++ == 0) self_ = this->shared_from_this();
  }

  void Release() {
    std::shared_ptr<Object> last;  // destroyed after the lock is released, perhaps with this object
    const std::lock_guard lock(lock_);
    if (--references_ == 0) last = std::move(self_);
  }

  bool IsRetained() const {
    const std::lock_guard lock(lock_);
    return references_ > 0;
  }

 protected:
  ~ForeignReferences() = default;

 private:
  // Held for a few instructions. A std::mutex would take 40 bytes of every coordinator and queue;
  // one for all objects of a class might be held, for ever, in a process that is forked.
  class Lock {
   public:
    void lock() {
      while (is_locked_.exchange(true, std::memory_order_acquire)) std::this_thread::yield();
    }
    void unlock() { is_locked_.store(false, std::memory_order_release); }

   private:
    std::atomic<bool> is_locked_{false};
  };

  mutable Lock lock_;             // taken with no other lock held
  std::uint32_t references_ = 0;  // guarded by lock_
  std::shared_ptr<Object> self_;  // guarded by lock_; null while references_ is 0
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_FOREIGN_REFERENCES_H_
