// A word of shared memory that the program has chosen, in which each stop stores a value.
#ifndef ALLSTOP_BINDING_WORD_MIRROR_H_
#define ALLSTOP_BINDING_WORD_MIRROR_H_

#include <napi.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "../core/coordinator.h"
#include "convert.h"

namespace allstop::binding {

// The core calls OnStop on the thread that requested the stop, with no lock held: maybe when
// RemoveObserver has returned already. So the word has a mutex of its own, and no call writes it
// when End has returned; the memory may be freed then.
class WordMirror final : public core::Observer {
 public:
  // `words` must be over a SharedArrayBuffer, whose memory does not move. Throws a TypeError unless
  // it is an Int32Array that has an element `index`. JavaScript thread only.
  WordMirror(const Napi::Value& words, std::uint64_t index, std::int32_t value) : value_(value) {
    if (!words.IsTypedArray() ||
        words.As<Napi::TypedArray>().TypedArrayType() != napi_int32_array ||
        words.As<Napi::TypedArray>().ElementLength() <= index) {
      throw Napi::TypeError::New(words.Env(),
                                 InternalError("a mirror needs a word of an Int32Array"));
    }
    word_ = words.As<Napi::Int32Array>().Data() + index;
    words_ = Napi::Persistent(words.As<Napi::Object>());
  }

  void OnStop() override { Store(); }

  // Any thread.
  void Store() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (word_ == nullptr) return;
    // JavaScript reads the word by Atomics.load, WebAssembly by an atomic or a plain load.
    reinterpret_cast<std::atomic<std::int32_t>*>(word_)->store(value_, std::memory_order_seq_cst);
  }

  // JavaScript thread only.
  void End() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      word_ = nullptr;
    }
    words_.Reset();
  }

 private:
  const std::int32_t value_;
  std::mutex mutex_;             // last in the lock order
  std::int32_t* word_;           // guarded by mutex_; null once ended
  Napi::ObjectReference words_;  // keeps the memory; JavaScript thread only
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_WORD_MIRROR_H_
