// References to an object from owners that cannot hold a C++ shared_ptr.
#ifndef ALLSTOP_CORE_FOREIGN_REFERENCES_H_
#define ALLSTOP_CORE_FOREIGN_REFERENCES_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

namespace allstop::core {

// The base of the classes whose objects other addons own through the C functions of
// abi/: `allstop_table::retain` and `release` are these methods. Any thread.
template <typename Object>
class ForeignReferences : public std::enable_shared_from_this<Object> {
 public:
  void Retain() {
    const std::lock_guard<std::mutex> lock(Mutex());
    if (references_++ == 0) self_ = this->shared_from_this();
  }

  void Release() {
    std::shared_ptr<Object> last;  // destroyed after the lock is released, perhaps with this object
    const std::lock_guard<std::mutex> lock(Mutex());
    if (--references_ == 0) last = std::move(self_);
  }

  bool IsRetained() const {
    const std::lock_guard<std::mutex> lock(Mutex());
    return references_ > 0;
  }

 protected:
  ~ForeignReferences() = default;

 private:
  // One for all objects of a class, which a thread holds for a few instructions: a mutex in each
  // would take 40 bytes of every coordinator and queue. Taken with no other lock held. Never
  // destroyed, since threads outlive process.exit().
  static std::mutex& Mutex() {
    static std::mutex* const mutex = new std::mutex;
    return *mutex;
  }

  std::uint32_t references_ = 0;  // guarded by Mutex()
  std::shared_ptr<Object> self_;  // guarded by Mutex(); null while references_ is 0
};

}  // namespace allstop::core

#endif  // ALLSTOP_CORE_FOREIGN_REFERENCES_H_
