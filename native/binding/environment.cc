#include "environment.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "../core/exit_report.h"
#include "../core/fault_point.h"
#include "../core/identity.h"
#include "../core/js_threads.h"
#include "native_attachment.h"
#include "native_queue.h"
#include "native_variables.h"
#include "spawned_workers.h"

namespace allstop::binding {
namespace {

constexpr std::uint32_t kWordsPerMirror = 16;  // 64 bytes: a cache line

// The error of threads that were registered by an environment which ends before they do.
// `observer` is the name of the environment's JavaScript thread.
std::shared_ptr<const core::EncodedError> UnobservedError(const std::string& observer) {
  core::ErrorFields fields;
  fields.name = "UnavailableError";
  fields.message = "The JavaScript thread '" + observer +
                   "' has ended, so the threads that it registered are no longer observed";
  core::EncodedError::Complete(fields);
  return core::EncodedError::Encode(std::move(fields));
}

}  // namespace

std::shared_ptr<Environment> Environment::Setup(Napi::Env env, Napi::Object options) {
  static std::atomic<std::uint64_t> next_id{1};
  auto environment = std::make_shared<Environment>();
  environment->id_ = next_id.fetch_add(1);
  environment->thread_id_ = options.Get("threadId").As<Napi::Number>().Uint32Value();
  environment->thread_name = options.Get("threadName").As<Napi::String>().Utf8Value();
  environment->is_worker_ = options.Get("isWorker").As<Napi::Boolean>().Value();
  environment->allocate_slab_ = Napi::Persistent(options.Get("allocateSlab").As<Napi::Function>());
  environment->attachment_class = Napi::Persistent(NativeAttachment::Class(env, *environment));
  environment->queue_class = Napi::Persistent(NativeQueue::Class(env, *environment));
  environment->variables_class = Napi::Persistent(NativeVariables::Class(env, *environment));
  environment->variable_class = Napi::Persistent(NativeVariable::Class(env, *environment));
  environment->doorbell_ = Doorbell::Create(env, options.Get("onRing"));
  if (!environment->doorbell_) {
    throw Napi::Error::New(env, "allstop: the runtime could not create a thread-safe function");
  }
  using All = std::vector<std::shared_ptr<Environment>>;
  if (env.GetInstanceData<All>() == nullptr) env.SetInstanceData(new All);
  env.GetInstanceData<All>()->push_back(environment);
  napi_add_env_cleanup_hook(env, CloseHook, environment.get());
  core::JsThreads::Get().Add(environment->id_, {environment->thread_id_, core::OsThreadId()});
  return environment;
}

void Environment::CloseHook(void* environment) { static_cast<Environment*>(environment)->Close(); }

bool Environment::ExitsAsLast() const {
  return core::JsThreads::Get().Exits(thread_id_) || !is_worker_;
}

void Environment::Close() {
  // A worker that was terminated had no 'exit' event. Before what follows notes the error that the
  // worker dies of, which the thread that has started it is given.
  if (core::JsThreads::Get().Exits(thread_id_) && is_worker_) core::TellUnseen();
  core::JsThreads::Get().Remove(id_);
  doorbell_->Close();
  ALLSTOP_FAULT_POINT(kEnvironmentCloses);
  core::Coordinator::Departure departure;
  departure.owner = id_;
  departure.thread_id = thread_id_;
  departure.request.requester = ThisThread(core::Via::kWorkerExit);
  departure.request.has_caller = false;
  if (const auto encoded = SpawnedWorkers::Get().FatalError(thread_id_)) {
    departure.request.error = core::EncodedError::Decode(*encoded);
  }
  departure.is_cause_known = departure.request.error != nullptr;
  departure.request.is_thrown = departure.is_cause_known;  // else the thread has thrown nothing
  if (!departure.is_cause_known) departure.request.error = UnobservedError(thread_name);
  for (const auto& [id, watched] : watched_) {
    if (const auto coordinator = watched.lock()) coordinator->EndThreadsOwnedBy(departure);
  }
  ALLSTOP_FAULT_POINT(kWatchedEnded);
  for (const auto& [token, attachment] : attachments_) attachment->Close();
  attachments_.clear();
  published_.clear();
  published_queues_.clear();
  ALLSTOP_FAULT_POINT(kAttachmentsClosed);
  for (const std::uint64_t ticket : spawn_tickets) SpawnedWorkers::Get().End(ticket);
  for (const std::uint32_t thread_id : spawned) SpawnedWorkers::Get().Remove(thread_id);
}

void Environment::Watch(const std::shared_ptr<core::Coordinator>& coordinator) {
  if (watched_.size() >= watched_limit_) {
    for (auto each = watched_.begin(); each != watched_.end();) {
      each = each->second.expired() ? watched_.erase(each) : std::next(each);
    }
    watched_limit_ = std::max<std::size_t>(64, 2 * watched_.size());
  }
  watched_.emplace(coordinator->id(), coordinator);
}

MirrorWord Environment::AcquireMirror(Napi::Env env) {
  if (free_mirrors_.empty()) {
    const auto words = allocate_slab_.Call({}).As<Napi::TypedArray>();
    void* data = nullptr;
    std::size_t length = 0;
    napi_typedarray_type type;
    if (napi_get_typedarray_info(env, words, &type, &length, &data, nullptr, nullptr) != napi_ok ||
        type != napi_int32_array || data == nullptr) {
      throw Napi::Error::New(
          env, "allstop: this runtime gives native code no access to a SharedArrayBuffer's memory");
    }
    const auto slab = static_cast<std::uint32_t>(slabs_.size());
    slabs_.push_back(
        {Napi::Persistent(words.As<Napi::Int32Array>()), static_cast<std::int32_t*>(data)});
    static_assert(sizeof(core::Mirror) == 2 * sizeof(std::int32_t));
    for (std::uint32_t index = 0; index + kWordsPerMirror <= length; index += kWordsPerMirror) {
      auto* const mirror = reinterpret_cast<core::Mirror*>(slabs_[slab].data + index);
      free_mirrors_.push_back({slab, index, mirror});
    }
  }
  const MirrorWord word = free_mirrors_.back();
  free_mirrors_.pop_back();
  return word;
}

std::uint64_t Environment::Add(Closable& attachment) {
  attachments_.emplace(next_token_, &attachment);
  return next_token_++;
}

void Environment::Remove(std::uint64_t token) { attachments_.erase(token); }

void Environment::Publish(std::shared_ptr<core::Coordinator> coordinator) {
  published_.emplace(coordinator->id(), std::move(coordinator));
}

void Environment::PublishQueue(std::shared_ptr<core::BoundedQueue> queue) {
  published_queues_.emplace(queue->id(), std::move(queue));
}

core::Requester Environment::ThisThread(core::Via via) const {
  core::Requester requester;
  requester.language = core::Language::kJavaScript;
  requester.via = via;
  requester.thread_name = thread_name;
  requester.thread_id = thread_id_;
  requester.pid = core::ProcessId();
  return requester;
}

}  // namespace allstop::binding
