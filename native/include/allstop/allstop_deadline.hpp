/// @file allstop_deadline.hpp
/// allstop::Deadline and Coordinator::StopAfter. Part of allstop.hpp, which includes it.
#ifndef ALLSTOP_ALLSTOP_DEADLINE_HPP_
#define ALLSTOP_ALLSTOP_DEADLINE_HPP_

#include <utility>

#include "allstop_coordinator.hpp"

namespace allstop {

/// A deadline that Coordinator::StopAfter has set. The destructor calls it off, if its stop has not
/// been requested yet. Any thread may move or destroy it; no method blocks.
class Deadline {
 public:
  /// Holds no deadline.
  Deadline() noexcept = default;
  Deadline(Deadline&& other) noexcept
      : coord_(std::move(other.coord_)), deadline_(std::exchange(other.deadline_, nullptr)) {}
  /// Calls off the deadline that this object held.
  Deadline& operator=(Deadline&& other) noexcept {
    CallOff();
    coord_ = std::move(other.coord_);
    deadline_ = std::exchange(other.deadline_, nullptr);
    return *this;
  }
  ~Deadline() { CallOff(); }

  /// False if this object holds no deadline: none was set, or it was moved, or called off.
  explicit operator bool() const noexcept { return deadline_ != nullptr; }

  /// Calls the deadline off now, as the destructor does. A stop that the deadline is about to
  /// request on another thread may still come for a moment after this.
  void CallOff() noexcept {
    allstop_deadline_release(coord_.handle(), std::exchange(deadline_, nullptr));
  }

 private:
  friend class Coordinator;
  Deadline(const Coordinator& coord, allstop_deadline* deadline) noexcept
      : coord_(coord), deadline_(deadline) {}

  Coordinator coord_;
  allstop_deadline* deadline_ = nullptr;
};

inline Deadline Coordinator::StopAfter(Milliseconds timeout) const noexcept {
  allstop_deadline* deadline = nullptr;
  allstop_stop_after(&handle_, view::NotNegative(timeout), &deadline);
  return Deadline(*this, deadline);
}

}  // namespace allstop

#endif  // ALLSTOP_ALLSTOP_DEADLINE_HPP_
