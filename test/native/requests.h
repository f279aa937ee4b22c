// Short functions for the stop requests, options and threads of the tests.
#ifndef ALLSTOP_TEST_NATIVE_REQUESTS_H_
#define ALLSTOP_TEST_NATIVE_REQUESTS_H_

#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/coordinator.h"

namespace allstop::test {

inline constexpr double kForever = std::numeric_limits<double>::infinity();
inline constexpr double kHourMs = 3.6e6;

inline std::shared_ptr<const core::EncodedError> Error(std::string name, std::string message = {}) {
  core::ErrorFields fields;
  fields.chain = {name, "Error"};
  fields.name = std::move(name);
  fields.message = std::move(message);
  return core::EncodedError::Encode(std::move(fields));
}

inline core::StopRequest Plain() {
  core::StopRequest request;
  request.requester = core::ThisNativeThread(core::Via::kCall);
  return request;
}

inline core::StopRequest Failure(std::shared_ptr<const core::EncodedError> error) {
  core::StopRequest request = Plain();
  request.requester.via = core::Via::kException;
  request.echo_ids = {error->fields().id};
  request.error = std::move(error);
  return request;
}

inline core::StopRequest Failure(std::string name = "TypeError") {
  return Failure(Error(std::move(name)));
}

// A request with an error of a clean-stop type of MakeCoordinator's coordinators.
inline core::StopRequest Clean() { return Failure("OutOfRangeError"); }

// A request without a caller that could throw its error, as of a registered thread or a link.
inline core::StopRequest FailureOfThread(std::string name = "TypeError") {
  core::StopRequest request = Failure(std::move(name));
  request.has_caller = false;
  return request;
}

inline core::Coordinator::Options Named(std::string name = "test") {
  return {std::move(name), {"OutOfRangeError"}};
}

inline std::shared_ptr<core::Coordinator> MakeCoordinator() {
  return core::Coordinator::Create(Named());
}

inline core::NewThread Thread(std::string name, core::ThreadKind kind = core::ThreadKind::kCustom) {
  core::NewThread thread;
  thread.name = std::move(name);
  thread.kind = kind;
  return thread;
}

inline core::NewThread UnstartedThread(std::string name) {
  core::NewThread thread = Thread(std::move(name), core::ThreadKind::kNative);
  thread.started = false;
  return thread;
}

inline std::vector<std::string> Names(const std::vector<core::ThreadInfo>& threads) {
  std::vector<std::string> names;
  for (const auto& thread : threads) names.push_back(thread.name);
  return names;
}

}  // namespace allstop::test

#endif  // ALLSTOP_TEST_NATIVE_REQUESTS_H_
