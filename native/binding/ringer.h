// The observer by which the core rings the doorbell of a JavaScript thread.
#ifndef ALLSTOP_BINDING_RINGER_H_
#define ALLSTOP_BINDING_RINGER_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "../core/bounded_queue.h"
#include "../core/coordinator.h"
#include "doorbell.h"

namespace allstop::binding {

// Rings for one NativeAttachment or NativeQueue, named by its token. The core may call
// it on any thread, also after the environment has ended: the doorbell is silent then.
class Ringer final : public core::Observer, public core::QueueWaiter {
 public:
  Ringer(std::shared_ptr<Doorbell> doorbell, std::uint64_t token)
      : doorbell_(std::move(doorbell)), button_(std::make_shared<Doorbell::Button>(token)) {}

  void OnStop() override { doorbell_->Ring(button_); }
  void OnJoinProgress() override { doorbell_->Ring(button_); }
  void OnError() override { doorbell_->Ring(button_); }
  // Rings also for an event of a call from this JavaScript thread: few calls that note one are
  // followed by a `drain`.
  void OnEvents() override { doorbell_->Ring(button_, /*even_if_quiet=*/true); }
  void OnProgress() override { doorbell_->Ring(button_); }

 private:
  const std::shared_ptr<Doorbell> doorbell_;
  const std::shared_ptr<Doorbell::Button> button_;
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_RINGER_H_
