// What allstop.h promises of one coordinator, told again in the simplest way: no threads, no
// locks, no sharing. abi_fuzz.cc compares it with the library after each call.
#ifndef ALLSTOP_TEST_FUZZ_MODEL_H_
#define ALLSTOP_TEST_FUZZ_MODEL_H_

#include <allstop/allstop.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "errors.h"

namespace allstop::fuzz {

struct ErrorModel {
  std::string id;  // empty: the library has made one, which differs from all ids of inputs
  std::string name;
  std::string message;
  std::size_t causes = 0;
};

struct ThreadModel {
  bool is_alive = true;
  bool is_entered = false;
  bool is_forgotten = false;  // by a join
};

struct CallbackModel {
  bool is_pending = true;
  int expected_runs = 0;
  int runs = 0;
  allstop_coordinator coordinator = {};
};

struct CoordinatorModel {
  std::shared_ptr<CoordinatorModel> parent;
  std::vector<std::weak_ptr<CoordinatorModel>> children;
  std::string clean_type = "OutOfRangeError";  // empty: no error is a clean stop
  std::vector<std::shared_ptr<ThreadModel>> threads;
  std::vector<std::shared_ptr<CallbackModel>> callbacks;
  int stops = 0;

  bool is_stopped = false;
  std::optional<ErrorModel> error;     // of the stop
  std::optional<ErrorModel> reported;  // the first error that was reported
  std::vector<ErrorModel> suppressed;
  bool is_joined = false;

  bool IsClean(const ErrorModel& of) const { return !clean_type.empty() && of.name == clean_type; }

  int Kind() const {
    if (!error) return ALLSTOP_STOP_PLAIN;
    return IsClean(*error) ? ALLSTOP_STOP_CLEAN : ALLSTOP_STOP_ERROR;
  }

  const std::optional<ErrorModel>& FirstError() const {
    return is_stopped && Kind() == ALLSTOP_STOP_ERROR ? error : reported;
  }

  bool IsKnown(const ErrorModel& of) const {
    const auto is = [&](const std::optional<ErrorModel>& known) {
      return known && !of.id.empty() && known->id == of.id;
    };
    return (is_stopped && (is(error) || is(reported)));
  }

  // A stop of this coordinator, and of all its descendants.
  void Latch(const std::optional<ErrorModel>& with) {
    if (is_stopped) return;
    is_stopped = true;
    ++stops;
    error = with;
    if (Kind() == ALLSTOP_STOP_ERROR && reported) {
      suppressed.push_back(*reported);
      reported.reset();
    }
    for (const auto& callback : callbacks) {
      if (callback->is_pending) ++callback->expected_runs;
      callback->is_pending = false;
    }
    for (const auto& child : children) {
      if (const auto living = child.lock()) living->Latch(with);
    }
  }

  allstop_status RequestStop(const std::optional<ErrorModel>& with, bool has_caller, int* made) {
    *made = 0;
    const bool is_failure = with && !IsClean(*with);
    if (is_joined && is_failure && has_caller) return ALLSTOP_FAILED_PRECONDITION;
    if (is_stopped && with && IsKnown(*with)) return ALLSTOP_OK;
    if (is_stopped || (is_joined && is_failure)) {
      if (with) suppressed.push_back(*with);
      return ALLSTOP_OK;
    }
    *made = 1;
    Latch(with);
    return ALLSTOP_OK;
  }

  void Report(const ErrorModel& with) {
    if (IsClean(with) || IsKnown(with)) return;
    if (reported && !with.id.empty() && reported->id == with.id) return;
    if (FirstError()) {
      suppressed.push_back(with);
    } else {
      reported = with;
    }
  }

  allstop_status Clear() {
    if (parent && parent->is_stopped) return ALLSTOP_FAILED_PRECONDITION;
    is_stopped = is_joined = false;
    error.reset();
    reported.reset();
    suppressed.clear();
    return ALLSTOP_OK;
  }

  bool WaitsForThreads() const {
    for (const auto& thread : threads) {
      if (thread->is_alive && !thread->is_forgotten) return true;
    }
    return false;
  }

  // A join without a grace period, which must not have to wait: see WaitsForThreads.
  allstop_status Join(bool ignore_live_threads) {
    for (const auto& thread : threads) {
      if (thread->is_alive && thread->is_entered && !thread->is_forgotten) return ALLSTOP_SELF_JOIN;
    }
    const bool has_stragglers = WaitsForThreads();
    for (const auto& thread : threads) thread->is_forgotten = true;
    is_joined = true;
    if (is_stopped && FirstError()) return ALLSTOP_STOPPED_BY_ERROR;
    return has_stragglers && !ignore_live_threads ? ALLSTOP_STRAGGLERS : ALLSTOP_OK;
  }
};

}  // namespace allstop::fuzz

#endif  // ALLSTOP_TEST_FUZZ_MODEL_H_
