#include "doorbell.h"

#include <algorithm>
#include <utility>

#include "../core/fault_point.h"

namespace allstop::binding {

thread_local const Doorbell* Doorbell::Quiet::here_ = nullptr;

std::shared_ptr<Doorbell> Doorbell::Create(napi_env env, napi_value on_ring) {
  std::shared_ptr<Doorbell> bell(new Doorbell);
  bell->function_ = ThreadsafeFunction::Create(env, on_ring, "allstop", Serve, bell);
  return bell->function_ ? bell : nullptr;
}

// Frees the list in a loop: the destructor of a long linked list would recurse.
Doorbell::~Doorbell() {
  while (dirty_) dirty_ = std::exchange(dirty_->next_, nullptr);
}

void Doorbell::Ring(const std::shared_ptr<Button>& button, bool even_if_quiet) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!button->is_dirty_) {
      button->is_dirty_ = true;
      button->next_ = std::exchange(dirty_, button);
    }
    if (rung_ || (Quiet::here_ == this && !even_if_quiet)) return;
    rung_ = true;
  }
  ALLSTOP_FAULT_POINT(kBellIsMarked);
  // Not under mutex_: the JavaScript thread may run Serve, which takes mutex_, before Call
  // returns.
  if (function_->Call(nullptr)) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  rung_ = false;
}

std::vector<std::uint64_t> Doorbell::TakeDirty() {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::uint64_t> tokens;
  while (dirty_) {
    tokens.push_back(dirty_->token_);
    dirty_->is_dirty_ = false;
    dirty_ = std::exchange(dirty_->next_, nullptr);
  }
  std::reverse(tokens.begin(), tokens.end());
  return tokens;
}

void Doorbell::SetReferenced(napi_env env, bool referenced) {
  function_->SetReferenced(env, referenced);
}

void Doorbell::Close() { function_->Close(); }

void Doorbell::Serve(napi_env env, napi_value on_ring, void* context, void* /*data*/) {
  if (env == nullptr) return;
  auto& bell = *static_cast<Doorbell*>(context);
  std::uint64_t token = 0;
  std::size_t count = 0;
  {
    // rung_ is cleared before JavaScript reads the state, so that a later change rings again.
    const std::lock_guard<std::mutex> lock(bell.mutex_);
    bell.rung_ = false;
    // Nearly always one token is dirty. Passing it here saves JavaScript a call of TakeDirty.
    if (bell.dirty_ && !bell.dirty_->next_) {
      bell.dirty_->is_dirty_ = false;
      token = bell.dirty_->token_;
      count = 1;
      bell.dirty_ = nullptr;
    }
  }
  ALLSTOP_FAULT_POINT(kBellIsServed);
  napi_value receiver;
  napi_value argument;
  napi_value exception;
  if (napi_get_undefined(env, &receiver) != napi_ok) return;
  if (napi_create_double(env, static_cast<double>(token), &argument) != napi_ok) return;
  if (napi_call_function(env, receiver, on_ring, count, &argument, nullptr) ==
          napi_pending_exception &&
      napi_get_and_clear_last_exception(env, &exception) == napi_ok) {
    napi_fatal_exception(env, exception);
  }
}

}  // namespace allstop::binding
