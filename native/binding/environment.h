// What the addon keeps for one JavaScript environment (the main thread's, or a
// worker's): its doorbell, its stop words, and what must end with it.
#ifndef ALLSTOP_BINDING_ENVIRONMENT_H_
#define ALLSTOP_BINDING_ENVIRONMENT_H_

#include <napi.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "../core/bounded_queue.h"
#include "../core/coordinator.h"
#include "doorbell.h"

namespace allstop::binding {

// What must end with the environment.
class Closable {
 public:
  virtual void Close() = 0;

 protected:
  ~Closable() = default;
};

// The mirror that one attachment's JavaScript polls, alone on its cache line.
struct MirrorWord {
  std::uint32_t slab = 0;   // index of the slab
  std::uint32_t index = 0;  // of its first word in the slab's Int32Array
  core::Mirror* mirror = nullptr;
};

// JavaScript thread only, but for what it hands to others (the doorbell).
//
// Life: made by Setup; Close runs as an environment cleanup hook, registered
// after the doorbell's thread-safe function, hence before that is finalized.
// Attachments keep the object itself alive beyond that, as Node may run their
// finalizers later.
class Environment : public std::enable_shared_from_this<Environment> {
 public:
  // One for each evaluation of our JavaScript: a bundle, or a test runner, may hold
  // two copies of it over one addon. Each has a doorbell of its own.
  static std::shared_ptr<Environment> Setup(Napi::Env env, Napi::Object options);
  // The environment that a function or a class was made for.
  static std::shared_ptr<Environment> Of(const Napi::CallbackInfo& info) {
    return static_cast<Environment*>(info.Data())->shared_from_this();
  }

  Napi::FunctionReference attachment_class;
  Napi::FunctionReference queue_class;
  // What the attachment that is being made is to be attached to. (An external, as an
  // argument, would leak when the environment ends: Node 20.)
  std::shared_ptr<core::Coordinator> to_attach;
  std::shared_ptr<core::BoundedQueue> queue_to_attach;

  const std::shared_ptr<Doorbell>& doorbell() const { return doorbell_; }
  std::uint64_t id() const { return id_; }
  std::uint32_t thread_id() const { return thread_id_; }
  bool is_worker() const { return is_worker_; }
  std::string thread_name;

  MirrorWord AcquireMirror(Napi::Env env);
  Napi::Value SlabOf(const MirrorWord& word) const { return slabs_[word.slab].words.Value(); }
  // Only after the core has let go of the mirror.
  void ReleaseMirror(const MirrorWord& word) { free_mirrors_.push_back(word); }

  std::uint32_t Add(Closable& attachment);  // returns its token
  void Remove(std::uint32_t token);

  // A handle was read: the coordinator lives until Unpublish or our end.
  void Publish(std::shared_ptr<core::Coordinator> coordinator);
  void Unpublish(std::uint64_t id) { published_.erase(id); }
  void PublishQueue(std::shared_ptr<core::BoundedQueue> queue);
  void UnpublishQueue(std::uint64_t id) { published_queues_.erase(id); }

  // For the text that a queue hands over; kept, as it is needed again and again.
  std::string text;

  // Threads are registered there: they end as unobserved when this ends, even if
  // their attachment has been collected before.
  void Watch(const std::shared_ptr<core::Coordinator>& coordinator);

  // The spawns that this environment is in the middle of.
  std::set<std::uint64_t> spawn_tickets;
  // The workers that it has spawned and not seen to end. They end with it.
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
  std::uint32_t next_token_ = 1;
  std::map<std::uint32_t, Closable*> attachments_;
  std::map<std::uint64_t, std::shared_ptr<core::Coordinator>> published_;
  std::map<std::uint64_t, std::shared_ptr<core::BoundedQueue>> published_queues_;
  std::map<std::uint64_t, std::weak_ptr<core::Coordinator>> watched_;
  std::size_t watched_limit_ = 64;  // when to look for those that are gone
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_ENVIRONMENT_H_
