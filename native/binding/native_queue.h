// One queue in one JavaScript environment.
#ifndef ALLSTOP_BINDING_NATIVE_QUEUE_H_
#define ALLSTOP_BINDING_NATIVE_QUEUE_H_

#include <napi.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../core/bounded_queue.h"
#include "environment.h"

namespace allstop::binding {

// The native half of the class BoundedQueue in lib/queue/bounded-queue.ts. The interface
// NativeQueue in lib/native/binding.ts documents the methods. JavaScript thread only.
//
// Life: until JavaScript collects the object, or the environment closes, whichever comes first.
// Then Detach returns the items in held_ to the queue, and ends the object's waits.
class NativeQueue final : public Napi::ObjectWrap<NativeQueue>, public Closable {
 public:
  static Napi::Function Class(Napi::Env env, Environment& environment);
  static Napi::Value Make(Environment& environment, std::shared_ptr<core::BoundedQueue> queue);

  explicit NativeQueue(const Napi::CallbackInfo& info);
  ~NativeQueue() override;

  // Called when the environment ends.
  void Close() override;

 private:
  using Info = Napi::CallbackInfo;

  template <Napi::Value (NativeQueue::*method)(const Info&)>
  Napi::Value Checked(const Info& info);

  Napi::Value BeginWait(const Info& info);
  Napi::Value BeginEnqueue(const Info& info);
  Napi::Value EndEnqueue(const Info& info);
  Napi::Value Enqueue(const Info& info);
  Napi::Value Dequeue(const Info& info);
  Napi::Value DequeueMany(const Info& info);
  Napi::Value Received(const Info& info);
  Napi::Value NotReceived(const Info& info);
  Napi::Value Await(const Info& info);
  Napi::Value Forget(const Info& info);
  Napi::Value CloseQueue(const Info& info);
  Napi::Value Size(const Info& info);
  Napi::Value Closed(const Info& info);
  Napi::Value Coordinator(const Info& info);
  Napi::Value Publish(const Info& info);
  Napi::Value BindCapsule(const Info& info);

  // Dequeues up to `max` items into held_.
  core::Status Take(const core::BoundedQueue::Wait& wait, std::size_t max,
                    const core::Deadline& deadline);
  Napi::Value OneToJs(Napi::Env env);
  Napi::Value BytesToJs(Napi::Env env);
  Napi::Value ValuesToJs(Napi::Env env);
  template <typename HandOver>
  Napi::Value OrGiveBack(HandOver hand_over);
  void GiveBack();
  void Detach();

  std::shared_ptr<Environment> environment_;
  std::shared_ptr<core::BoundedQueue> queue_;
  std::shared_ptr<core::QueueWaiter> producer_;  // null once detached
  std::shared_ptr<core::QueueWaiter> consumer_;  // null once detached
  std::uint64_t token_ = 0;
  std::uint32_t waiting_enqueues_ = 0;  // BeginEnqueue without EndEnqueue yet
  // The items that were dequeued and that JavaScript has not acknowledged by received(). If the
  // thread is terminated before that, they are returned for other consumers.
  std::vector<core::QueueItem> held_;  // keeps its size for the next call
  std::size_t held_count_ = 0;         // the items are the first held_count_ elements
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_NATIVE_QUEUE_H_
