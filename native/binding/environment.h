// The addon's state for one JavaScript environment (the main thread's, or a worker's): its
// doorbell, its mirrors, and the objects that must end with it.
#ifndef ALLSTOP_BINDING_ENVIRONMENT_H_
#define ALLSTOP_BINDING_ENVIRONMENT_H_

#include <napi.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "../core/bounded_queue.h"
#include "../core/coordinator.h"
#include "../core/variables.h"
#include "doorbell.h"

namespace allstop::binding {

// An object that must be closed when its environment ends.
class Closable {
 public:
  virtual void Close() = 0;

 protected:
  ~Closable() = default;
};

// The place of one mirror in a slab. The JavaScript of one NativeAttachment polls the mirror,
// which has a cache line of its own.
struct MirrorWord {
  std::uint32_t slab = 0;   // index into Environment::slabs_
  std::uint32_t index = 0;  // of the mirror's first word in the slab's Int32Array
  core::Mirror* mirror = nullptr;
};

// JavaScript thread only, except the doorbell, which other threads ring.
//
// Life: made by Setup. Close runs as an environment cleanup hook; the hook is registered after the
// doorbell's thread-safe function, so it runs before that function is finalized. Native
// attachments and queues keep this object alive after Close, as Node may run their finalizers
// later.
class Environment : public std::enable_shared_from_this<Environment> {
 public:
  // Makes an Environment for each evaluation of the package's JavaScript: a bundle or a test
  // runner may load two copies over one addon in one thread. Each copy has its own doorbell.
  static std::shared_ptr<Environment> Setup(Napi::Env env, Napi::Object options);
  // The environment that the called function or class was made for.
  static std::shared_ptr<Environment> Of(const Napi::CallbackInfo& info) {
    return static_cast<Environment*>(info.Data())->shared_from_this();
  }

  Napi::FunctionReference attachment_class;
  Napi::FunctionReference queue_class;
  Napi::FunctionReference variables_class;
  Napi::FunctionReference variable_class;
  // What the object gets whose constructor is being called. (An External as an argument of the
  // constructor would leak when the environment ends: Node 20.)
  std::shared_ptr<core::Coordinator> to_attach;
  std::shared_ptr<core::BoundedQueue> queue_to_attach;
  std::shared_ptr<core::Variables> variables_to_attach;
  std::shared_ptr<core::Variable> variable_to_attach;

  // A new object of `of`, whose constructor takes `state` from `place`, one of those above.
  template <typename State>
  static Napi::Object Construct(const Napi::FunctionReference& of, std::shared_ptr<State>& place,
                                std::shared_ptr<State> state) {
    place = std::move(state);
    try {
      return of.New({});
    } catch (...) {  // the constructor has not been called: the environment ends
      place = nullptr;
      throw;
    }
  }

  const std::shared_ptr<Doorbell>& doorbell() const { return doorbell_; }
  std::uint64_t id() const { return id_; }
  std::uint32_t thread_id() const { return thread_id_; }
  bool is_worker() const { return is_worker_; }
  // This thread exits. Whether the process ends with it, as far as the addon knows: it is the main
  // thread, or no other thread that uses the addon stays.
  bool ExitsAsLast() const;
  std::string thread_name;

  MirrorWord AcquireMirror(Napi::Env env);
  Napi::Value SlabOf(const MirrorWord& word) const { return slabs_[word.slab].words.Value(); }
  // Must be called after Coordinator::RemoveObserver: until then the core writes the mirror.
  void ReleaseMirror(const MirrorWord& word) { free_mirrors_.push_back(word); }

  std::uint64_t Add(Closable& attachment);  // returns a token, never used twice
  void Remove(std::uint64_t token);

  // Called when JavaScript reads a coordinator's handle: from then on the coordinator lives until
  // Unpublish, or until this environment ends.
  void Publish(std::shared_ptr<core::Coordinator> coordinator);
  void Unpublish(std::uint64_t id) { published_.erase(id); }
  bool HasPublished(std::uint64_t id) const { return published_.count(id) != 0; }
  void PublishQueue(std::shared_ptr<core::BoundedQueue> queue);
  void UnpublishQueue(std::uint64_t id) { published_queues_.erase(id); }

  // A buffer for the text that NativeQueue builds, kept so that each call need not allocate.
  std::string text;

  // Called when a thread is registered at `coordinator`: when this environment ends, such threads
  // end as unobserved, even if the NativeAttachment has been collected before.
  void Watch(const std::shared_ptr<core::Coordinator>& coordinator);

  // Tickets from SpawnedWorkers::Begin for which SpawnedWorkers::End has not been called yet.
  std::set<std::uint64_t> spawn_tickets;
  // SpawnedWorkers::NextTicket when this environment first looked for the coordinator that has
  // spawned its worker: that spawn has a smaller ticket. 0 before that look.
  std::uint64_t spawned_before = 0;
  // The threadIds of the workers that this environment has spawned and that have not ended. Node
  // ends a worker when the thread that started it ends.
  std::set<std::uint32_t> spawned;

  // The requester of a call made by this environment's JavaScript.
  core::Requester ThisThread(core::Via via) const;

 private:
  struct Slab {
    Napi::Reference<Napi::Int32Array> words;  // strong: the core writes to it
    std::int32_t* data;
  };

  static void CloseHook(void* environment);
  void Close();

  std::uint64_t id_ = 0;
  std::uint32_t thread_id_ = 0;
  bool is_worker_ = false;
  std::shared_ptr<Doorbell> doorbell_;
  Napi::FunctionReference allocate_slab_;
  std::vector<Slab> slabs_;
  std::vector<MirrorWord> free_mirrors_;
  // Below 2^53, so that JavaScript can hold it: a thread that makes a million tokens a second
  // needs 285 years. (With 32 bits the tokens would repeat after an hour.)
  std::uint64_t next_token_ = 1;
  std::unordered_map<std::uint64_t, Closable*> attachments_;
  std::map<std::uint64_t, std::shared_ptr<core::Coordinator>> published_;
  std::map<std::uint64_t, std::shared_ptr<core::BoundedQueue>> published_queues_;
  std::map<std::uint64_t, std::weak_ptr<core::Coordinator>> watched_;
  std::size_t watched_limit_ = 64;  // at this size, Watch first removes dead coordinators
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_ENVIRONMENT_H_
