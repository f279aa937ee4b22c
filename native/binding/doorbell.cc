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

void Doorbell::Ring(const std::shared_ptr<Button>& button) {
  const std::lock_guard<std::mutex> function_lock(function_mutex_);
  if (function_ == nullptr) return;
  {
    const std::lock_guard<std::mutex> lock(news_mutex_);
    if (!button->is_dirty_) dirty_.push_back(button);
    button->is_dirty_ = true;
    if (rung_ || Quiet::here_ == this) return;
    rung_ = true;
  }
  if (napi_call_threadsafe_function(function_, nullptr, napi_tsfn_nonblocking) == napi_ok) return;
  const std::lock_guard<std::mutex> lock(news_mutex_);
  rung_ = false;
}

std::vector<std::uint32_t> Doorbell::TakeDirty() {
  const std::lock_guard<std::mutex> lock(news_mutex_);
  std::vector<std::uint32_t> tokens;
  tokens.reserve(dirty_.size());
  for (const auto& button : dirty_) {
    tokens.push_back(button->token_);
    button->is_dirty_ = false;
  }
  dirty_.clear();
  return tokens;
}

void Doorbell::SetReferenced(napi_env env, bool referenced) {
  const std::lock_guard<std::mutex> lock(function_mutex_);
  if (function_ == nullptr) return;
  if (referenced) {
    napi_ref_threadsafe_function(env, function_);
  } else {
    napi_unref_threadsafe_function(env, function_);
  }
}

void Doorbell::Close() {
  const std::lock_guard<std::mutex> lock(function_mutex_);
  if (function_ == nullptr) return;
  napi_release_threadsafe_function(std::exchange(function_, nullptr), napi_tsfn_abort);
}

void Doorbell::Answer(napi_env env, napi_value on_ring, void* context, void* /*data*/) {
  if (env == nullptr) return;
  const auto& bell = *static_cast<std::shared_ptr<Doorbell>*>(context);
  std::uint32_t token = 0;
  std::size_t count = 0;
  {
    // Before JavaScript reads the state: a change from now on rings again.
    const std::lock_guard<std::mutex> lock(bell->news_mutex_);
    bell->rung_ = false;
    if (bell->dirty_.size() == 1) {  // nearly always, and saves it a call
      bell->dirty_.front()->is_dirty_ = false;
      token = bell->dirty_.front()->token_;
      count = 1;
      bell->dirty_.clear();
    }
  }
  napi_value receiver;
  napi_value argument;
  napi_value exception;
  if (napi_get_undefined(env, &receiver) != napi_ok) return;
  if (napi_create_uint32(env, token, &argument) != napi_ok) return;
  if (napi_call_function(env, receiver, on_ring, count, &argument, nullptr) ==
          napi_pending_exception &&
      napi_get_and_clear_last_exception(env, &exception) == napi_ok) {
    napi_fatal_exception(env, exception);
  }
}

void Doorbell::Finalize(napi_env /*env*/, void* data, void* /*context*/) {
  delete static_cast<std::shared_ptr<Doorbell>*>(data);
}

}  // namespace allstop::binding
