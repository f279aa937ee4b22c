#include "doorbell.h"

#include <utility>

namespace allstop::binding {

thread_local const Doorbell* Doorbell::Quiet::here_ = nullptr;

std::shared_ptr<Doorbell> Doorbell::Create(napi_env env, napi_value on_ring) {
  std::shared_ptr<Doorbell> bell(new Doorbell);
  napi_value name;
  if (napi_create_string_utf8(env, "allstop", NAPI_AUTO_LENGTH, &name) != napi_ok) return nullptr;
  // The function's finalizer frees this reference, so an answer that is on its
  // way when the environment ends finds the bell still there.
  auto* const context = new std::shared_ptr<Doorbell>(bell);
  if (napi_create_threadsafe_function(env, on_ring, nullptr, name, 0, 1, context, Finalize, context,
                                      Answer, &bell->function_) != napi_ok) {
    delete context;
    return nullptr;
  }
  napi_unref_threadsafe_function(env, bell->function_);
  return bell;
}

void Doorbell::Ring(std::uint32_t token) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (function_ == nullptr) return;
  dirty_.insert(token);
  if (rung_ || Quiet::here_ == this) return;
  rung_ = napi_call_threadsafe_function(function_, nullptr, napi_tsfn_nonblocking) == napi_ok;
}

std::set<std::uint32_t> Doorbell::TakeDirty() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(dirty_, {});
}

void Doorbell::SetReferenced(napi_env env, bool referenced) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (function_ == nullptr) return;
  if (referenced) {
    napi_ref_threadsafe_function(env, function_);
  } else {
    napi_unref_threadsafe_function(env, function_);
  }
}

void Doorbell::Close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (function_ == nullptr) return;
  napi_release_threadsafe_function(std::exchange(function_, nullptr), napi_tsfn_abort);
}

void Doorbell::Answer(napi_env env, napi_value on_ring, void* context, void* /*data*/) {
  if (env == nullptr) return;
  const std::shared_ptr<Doorbell> bell = *static_cast<std::shared_ptr<Doorbell>*>(context);
  {
    // Before JavaScript reads the state: a change from now on rings again.
    const std::lock_guard<std::mutex> lock(bell->mutex_);
    bell->rung_ = false;
  }
  napi_value receiver;
  napi_value exception;
  if (napi_get_undefined(env, &receiver) != napi_ok) return;
  if (napi_call_function(env, receiver, on_ring, 0, nullptr, nullptr) == napi_pending_exception &&
      napi_get_and_clear_last_exception(env, &exception) == napi_ok) {
    napi_fatal_exception(env, exception);
  }
}

void Doorbell::Finalize(napi_env /*env*/, void* data, void* /*context*/) {
  delete static_cast<std::shared_ptr<Doorbell>*>(data);
}

}  // namespace allstop::binding
