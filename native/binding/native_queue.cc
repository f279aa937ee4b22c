// The format of items. With the codec 'bytes' an item is the bytes themselves. With the codec
// 'structured' it is one byte, kText or kSerialized, and then JSON text or the output of
// v8.Serializer; lib/queue/queue-codec.ts chooses between the two. Texts that are dequeued
// together become the text of one array, which one call of JSON.parse reads: this makes small
// values fast.
#include "native_queue.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "../core/registry.h"
#include "convert.h"
#include "native_attachment.h"
#include "ringer.h"

namespace allstop::binding {
namespace {

using core::BoundedQueue;
using core::QueueItem;
using core::Status;

constexpr unsigned char kText = 'J';
constexpr unsigned char kSerialized = 'V';

// Items of up to kShort bytes share an ArrayBuffer of up to kSharedBytes, each at a multiple of
// 8, where a typed array of any type may begin. The limit matters because a program that keeps one
// item keeps the whole ArrayBuffer.
constexpr std::size_t kShort = 1024;
constexpr std::size_t kSharedBytes = 32 * 1024;

constexpr std::size_t kMostAtOnce = 65536;  // items that one call dequeues
constexpr std::size_t kMostKept = 1024;     // elements of held_ that are kept for the next call
// A text of several items takes no more items once it is longer than this. (A string of V8 holds
// 512 MiB at most.)
constexpr std::size_t kLongText = 32 * 1024 * 1024;

void Check(Napi::Env env, napi_status status) {
  if (status != napi_ok) throw Napi::Error::New(env);
}

std::size_t Aligned(std::size_t size) { return (size + 7) & ~std::size_t{7}; }

BoundedQueue::Side SideArgument(const Napi::CallbackInfo& info, std::size_t index) {
  return BooleanArgument(info, index) ? BoundedQueue::Side::kProducers
                                      : BoundedQueue::Side::kConsumers;
}

// The argument is the generation at which the wait began; undefined: the call does not wait.
BoundedQueue::Wait WaitArgument(const Napi::CallbackInfo& info, std::size_t index) {
  if (info[index].IsUndefined()) return {};
  BoundedQueue::Wait wait;
  wait.generation = IdArgument(info, index);
  return wait;
}

std::size_t LeastArgument(const Napi::CallbackInfo& info, std::size_t index) {
  constexpr std::uint64_t kLimit = std::numeric_limits<std::size_t>::max();
  return static_cast<std::size_t>(std::min<std::uint64_t>(IdArgument(info, index), kLimit));
}

core::Deadline SliceArgument(const Napi::CallbackInfo& info, std::size_t index) {
  return info[index].IsUndefined() ? core::Deadline::Passed()
                                   : core::Deadline::After(NumberArgument(info, index));
}

QueueItem TextItem(Napi::Env env, napi_value text) {
  constexpr std::size_t kMostOnStack = 1024;
  char stack[kMostOnStack];
  stack[0] = static_cast<char>(kText);
  std::size_t size = 0;
  Check(env, napi_get_value_string_utf8(env, text, stack + 1, kMostOnStack - 1, &size));
  // A text that nearly fills the buffer may have been truncated (at a whole character).
  if (size + 8 < kMostOnStack) return QueueItem(stack, 1 + size);
  Check(env, napi_get_value_string_utf8(env, text, nullptr, 0, &size));
  QueueItem item(1 + size + 1);  // with the NUL that Node-API always writes
  item.data()[0] = kText;
  Check(env, napi_get_value_string_utf8(env, text, reinterpret_cast<char*>(item.data()) + 1,
                                        size + 1, &size));
  item.Truncate(1 + size);
  return item;
}

QueueItem BytesItem(const Napi::CallbackInfo& info, std::size_t index, bool is_serialized) {
  if (!info[index].IsTypedArray()) {
    throw Napi::TypeError::New(info.Env(), InternalError("an item must be a Uint8Array"));
  }
  const auto bytes = info[index].As<Napi::Uint8Array>();
  const std::size_t size = bytes.ByteLength();
  if (!is_serialized) return QueueItem(bytes.Data(), size);
  QueueItem item(1 + size);
  item.data()[0] = kSerialized;
  std::memcpy(item.data() + 1, bytes.Data(), size);
  return item;
}

Napi::Value Number(Napi::Env env, Status status) {
  return Napi::Number::New(env, static_cast<double>(status));
}

Napi::Value CopyToJs(Napi::Env env, const unsigned char* data, std::size_t size) {
  auto bytes = Napi::Uint8Array::New(env, size);
  if (size > 0) std::memcpy(bytes.Data(), data, size);
  return bytes;
}

Napi::Value ValueToJs(Napi::Env env, const QueueItem& item) {
  if (item.data()[0] == kSerialized) return CopyToJs(env, item.data() + 1, item.size() - 1);
  const auto* const text = reinterpret_cast<const char*>(item.data()) + 1;
  return Napi::String::New(env, text, item.size() - 1);
}

}  // namespace

template <Napi::Value (NativeQueue::*method)(const Napi::CallbackInfo&)>
Napi::Value NativeQueue::Checked(const Info& info) {
  return ExceptionsToJs(info.Env(), [&] { return (this->*method)(info); });
}

Napi::Function NativeQueue::Class(Napi::Env env, Environment& environment) {
#define ALLSTOP_METHOD(name, method) \
  InstanceMethod<&NativeQueue::Checked<&NativeQueue::method>>(name)
  return DefineClass(env, "NativeQueue",
                     {
                         ALLSTOP_METHOD("beginWait", BeginWait),
                         ALLSTOP_METHOD("beginEnqueue", BeginEnqueue),
                         ALLSTOP_METHOD("endEnqueue", EndEnqueue),
                         ALLSTOP_METHOD("enqueue", Enqueue),
                         ALLSTOP_METHOD("dequeue", Dequeue),
                         ALLSTOP_METHOD("dequeueMany", DequeueMany),
                         ALLSTOP_METHOD("received", Received),
                         ALLSTOP_METHOD("notReceived", NotReceived),
                         ALLSTOP_METHOD("await", Await),
                         ALLSTOP_METHOD("forget", Forget),
                         ALLSTOP_METHOD("close", CloseQueue),
                         ALLSTOP_METHOD("size", Size),
                         ALLSTOP_METHOD("closed", Closed),
                         ALLSTOP_METHOD("coordinator", Coordinator),
                         ALLSTOP_METHOD("publish", Publish),
                         ALLSTOP_METHOD("bindCapsule", BindCapsule),
                     },
                     &environment);
#undef ALLSTOP_METHOD
}

Napi::Value NativeQueue::Make(Environment& environment, std::shared_ptr<BoundedQueue> queue) {
  return Environment::Construct(environment.queue_class, environment.queue_to_attach,
                                std::move(queue));
}

NativeQueue::NativeQueue(const Info& info)
    : Napi::ObjectWrap<NativeQueue>(info),
      environment_(Environment::Of(info)),
      queue_(std::exchange(environment_->queue_to_attach, nullptr)) {
  const Napi::Env env = info.Env();
  if (!queue_) throw Napi::TypeError::New(env, "allstop: illegal constructor of NativeQueue");
  const auto property = [](const char* name, Napi::Value value) {
    return Napi::PropertyDescriptor::Value(name, value, napi_enumerable);
  };
  const BoundedQueue::Options& options = queue_->options();
  const std::string coordinator_id =
      options.coordinator ? std::to_string(options.coordinator->id()) : std::string();
  token_ = environment_->Add(*this);
  try {
    // Not Object::Set, which would call a setter that a program has put on Object.prototype.
    info.This().As<Napi::Object>().DefineProperties({
        property("token", Napi::Number::New(env, static_cast<double>(token_))),
        property("id", Napi::String::New(env, std::to_string(queue_->id()))),
        property("name", Napi::String::New(env, options.name)),
        property("capacity", Napi::Number::New(env, static_cast<double>(options.capacity))),
        property("codec", Napi::Number::New(env, static_cast<double>(options.codec))),
        property("coordinatorId", Napi::String::New(env, coordinator_id)),
    });
    consumer_ = std::make_shared<Ringer>(environment_->doorbell(), token_);
    producer_ = std::make_shared<Ringer>(environment_->doorbell(), token_);
  } catch (...) {  // undone here: the destructor of this object will not run
    environment_->Remove(token_);
    throw;
  }
}

NativeQueue::~NativeQueue() {
  if (!producer_) return;
  environment_->Remove(token_);
  // Until the queue is closed and empty it stays published: a thread may still attach to it by a
  // handle that is on its way, and dequeue its items.
  if (queue_->closed() && queue_->size() == 0) environment_->UnpublishQueue(queue_->id());
  Detach();
}

void NativeQueue::Close() {
  if (producer_) Detach();
}

void NativeQueue::Detach() {
  GiveBack();
  queue_->Forget(BoundedQueue::Side::kProducers, *producer_);
  queue_->Forget(BoundedQueue::Side::kConsumers, *consumer_);
  for (; waiting_enqueues_ > 0; --waiting_enqueues_) queue_->EndEnqueue();
  producer_ = nullptr;
  consumer_ = nullptr;
}

void NativeQueue::GiveBack() {
  if (held_count_ > 0) queue_->Return(held_.data(), std::exchange(held_count_, 0));
}

// ---------------------------------------------------------------- enqueueing

Napi::Value NativeQueue::BeginWait(const Info& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(queue_->BeginWait().generation));
}

Napi::Value NativeQueue::BeginEnqueue(const Info& info) {
  BoundedQueue::Wait wait = WaitArgument(info, 0);
  const bool admitted = queue_->BeginEnqueue(wait);
  if (admitted) ++waiting_enqueues_;
  return Napi::Boolean::New(info.Env(), admitted);
}

Napi::Value NativeQueue::EndEnqueue(const Info& info) {
  if (waiting_enqueues_ > 0) {
    --waiting_enqueues_;
    queue_->EndEnqueue();
  }
  return info.Env().Undefined();
}

// enqueue(item, isSerialized, generation, ms)
Napi::Value NativeQueue::Enqueue(const Info& info) {
  QueueItem item = info[0].IsString() ? TextItem(info.Env(), info[0])
                                      : BytesItem(info, 0, BooleanArgument(info, 1));
  BoundedQueue::Wait wait = WaitArgument(info, 2);
  wait.admitted = !info[2].IsUndefined();
  std::size_t enqueued = 0;
  return Number(info.Env(),
                queue_->ContinueEnqueue(wait, &item, 1, SliceArgument(info, 3), enqueued));
}

// ---------------------------------------------------------------- dequeueing

Status NativeQueue::Take(const BoundedQueue::Wait& wait, std::size_t max,
                         const core::Deadline& deadline) {
  GiveBack();  // the items of an earlier call that was not acknowledged by received()
  if (held_.size() < max) held_.resize(max);
  return queue_->ContinueDequeue(wait, held_.data(), max, deadline, held_count_);
}

// dequeue(generation, ms)
Napi::Value NativeQueue::Dequeue(const Info& info) {
  const Status status = Take(WaitArgument(info, 0), 1, SliceArgument(info, 1));
  if (status != Status::kOk) return Number(info.Env(), status);
  return OrGiveBack([&] { return OneToJs(info.Env()); });
}

// dequeueMany(max, min, generation)
Napi::Value NativeQueue::DequeueMany(const Info& info) {
  BoundedQueue::Wait wait = WaitArgument(info, 2);
  wait.least = LeastArgument(info, 1);
  std::size_t size = queue_->size();
  if (size < wait.least) {
    // Asks first, and makes room for `least` items in held_ only when the queue has as many.
    if (!queue_->IsAtItsLast(wait)) return Number(info.Env(), Status::kDeadlineExceeded);
    wait.least = 1;
    size = queue_->size();
  }
  // Not more than the queue has now: with fast producers the call would take items until `max`.
  const std::size_t most = std::max(std::clamp(size, std::size_t{1}, kMostAtOnce), wait.least);
  const auto max = static_cast<std::size_t>(std::min<std::uint64_t>(IdArgument(info, 0), most));
  const Status status = Take(wait, max, core::Deadline::Passed());
  if (status != Status::kOk) return Number(info.Env(), status);
  const bool is_bytes = queue_->options().codec == BoundedQueue::Codec::kBytes;
  return OrGiveBack([&] { return is_bytes ? BytesToJs(info.Env()) : ValuesToJs(info.Env()); });
}

// Items that cannot be handed over to JavaScript, since there is no memory, go back to the queue:
// in held_ no thread would get them until this thread dequeues again.
template <typename HandOver>
Napi::Value NativeQueue::OrGiveBack(HandOver hand_over) {
  try {
    return hand_over();
  } catch (...) {
    GiveBack();
    throw;
  }
}

Napi::Value NativeQueue::OneToJs(Napi::Env env) {
  const QueueItem& item = held_.front();
  if (queue_->options().codec == BoundedQueue::Codec::kBytes) {
    return CopyToJs(env, item.data(), item.size());
  }
  return ValueToJs(env, item);
}

// Returns [sizes, buffer, count, buffer, count ...]: each buffer holds `count` items.
Napi::Value NativeQueue::BytesToJs(Napi::Env env) {
  Napi::Array runs = Napi::Array::New(env);
  const auto array = Napi::Float64Array::New(env, held_count_);
  double* const sizes = Napi::Float64Array(array).Data();
  std::uint32_t index = 0;
  runs.Set(index++, array);
  for (std::size_t begin = 0; begin < held_count_;) {
    std::size_t end = begin;
    std::size_t total = 0;
    do {
      total += Aligned(held_[end++].size());
    } while (end < held_count_ && held_[end].size() <= kShort && held_[begin].size() <= kShort &&
             total + Aligned(held_[end].size()) <= kSharedBytes);
    const auto buffer = Napi::ArrayBuffer::New(env, end == begin + 1 ? held_[begin].size() : total);
    auto* data = static_cast<unsigned char*>(Napi::ArrayBuffer(buffer).Data());
    for (std::size_t i = begin; i < end; ++i) {
      const QueueItem& item = held_[i];
      if (item.size() > 0) std::memcpy(data, item.data(), item.size());
      sizes[i] = static_cast<double>(item.size());
      data += Aligned(item.size());
    }
    runs.Set(index++, buffer);
    runs.Set(index++, static_cast<double>(end - begin));
    begin = end;
  }
  return runs;
}

// Returns the JSON text of an array of the items. If some items are serialized or longer than
// kSharedBytes, or if the text would become longer than kLongText, returns [texts, index, value,
// index, value ...]: the arrays of all texts follow each other, and have null in the places of
// those values.
Napi::Value NativeQueue::ValuesToJs(Napi::Env env) {
  std::string& text = environment_->text;
  std::vector<Napi::String> texts;
  const auto end_text = [&] {
    text += ']';
    texts.push_back(Napi::String::New(env, text));
    if (text.capacity() > kSharedBytes) text = std::string();
    text = "[";
  };
  text = "[";
  Napi::Array others;
  std::uint32_t index = 1;
  for (std::size_t i = 0; i < held_count_; ++i) {
    if (text.size() > kLongText) end_text();
    if (text.size() > 1) text += ',';
    const QueueItem& item = held_[i];
    if (item.data()[0] == kText && item.size() <= kSharedBytes) {
      text.append(reinterpret_cast<const char*>(item.data()) + 1, item.size() - 1);
      continue;
    }
    text += "null";
    if (others.IsEmpty()) others = Napi::Array::New(env);
    others.Set(index++, static_cast<double>(i));
    others.Set(index++, ValueToJs(env, item));
  }
  end_text();
  if (others.IsEmpty() && texts.size() == 1) return texts.front();
  Napi::Array all = Napi::Array::New(env, texts.size());
  for (std::uint32_t i = 0; i < texts.size(); ++i) all.Set(i, texts[i]);
  if (others.IsEmpty()) others = Napi::Array::New(env);
  others.Set(std::uint32_t{0}, all);
  return others;
}

Napi::Value NativeQueue::Received(const Info& info) {
  if (held_.size() > kMostKept) {
    held_count_ = 0;
    held_ = std::vector<QueueItem>();
  }
  for (; held_count_ > 0; --held_count_) held_[held_count_ - 1] = {};
  return Napi::Boolean::New(info.Env(), true);
}

Napi::Value NativeQueue::NotReceived(const Info& info) {
  GiveBack();
  return info.Env().Undefined();
}

// ---------------------------------------------------------------- waiting

// await(isProducer, generation, least)
Napi::Value NativeQueue::Await(const Info& info) {
  const auto side = SideArgument(info, 0);
  BoundedQueue::Wait wait = WaitArgument(info, 1);
  wait.admitted = true;
  wait.least = LeastArgument(info, 2);
  const auto& ringer = side == BoundedQueue::Side::kProducers ? producer_ : consumer_;
  return Napi::Boolean::New(info.Env(), ringer && queue_->Await(side, wait, ringer));
}

Napi::Value NativeQueue::Forget(const Info& info) {
  const auto side = SideArgument(info, 0);
  const auto& ringer = side == BoundedQueue::Side::kProducers ? producer_ : consumer_;
  if (ringer) queue_->Forget(side, *ringer);
  return info.Env().Undefined();
}

// ---------------------------------------------------------------- the rest

Napi::Value NativeQueue::CloseQueue(const Info& info) {
  queue_->Close(BooleanArgument(info, 0));
  return info.Env().Undefined();
}

Napi::Value NativeQueue::Size(const Info& info) {
  return Napi::Number::New(info.Env(), static_cast<double>(queue_->size()));
}

Napi::Value NativeQueue::Closed(const Info& info) {
  return Napi::Boolean::New(info.Env(), queue_->closed());
}

Napi::Value NativeQueue::Coordinator(const Info& info) {
  const auto& coordinator = queue_->options().coordinator;
  if (!coordinator) {
    throw Napi::Error::New(info.Env(), InternalError("the queue has no coordinator"));
  }
  return NativeAttachment::Make(*environment_, coordinator);
}

Napi::Value NativeQueue::Publish(const Info& info) {
  environment_->PublishQueue(queue_);
  return info.Env().Undefined();
}

Napi::Value NativeQueue::BindCapsule(const Info& info) {
  binding::BindCapsule(ObjectArgument(info, 0), ALLSTOP_CAPSULE_QUEUE, queue_);
  return info.Env().Undefined();
}

}  // namespace allstop::binding
