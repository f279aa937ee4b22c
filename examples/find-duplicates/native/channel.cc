#include "channel.h"

#include <iterator>
#include <utility>

namespace find_duplicates {
namespace {

// JavaScript is told of progress this often; of the end at once.
constexpr std::chrono::milliseconds kBetweenRings{20};

void Append(Report& all, Report report) {
  all.files += report.files;
  all.bytes_to_hash += report.bytes_to_hash;
  all.bytes_hashed += report.bytes_hashed;
  std::move(report.hashed.begin(), report.hashed.end(), std::back_inserter(all.hashed));
  std::move(report.unreadable.begin(), report.unreadable.end(), std::back_inserter(all.unreadable));
  all.last = all.last || report.last;
}

template <typename Item, typename ToValue>
Napi::Array ToArray(Napi::Env env, const std::vector<Item>& items, ToValue to_value) {
  const auto array = Napi::Array::New(env, items.size());
  for (std::uint32_t i = 0; i < items.size(); ++i) array.Set(i, to_value(items[i]));
  return array;
}

Napi::Object ToObject(Napi::Env env, const Report& report) {
  const auto number = [env](std::uint64_t value) {
    return Napi::Number::New(env, static_cast<double>(value));
  };
  // A file name that is not UTF-8 will not be found again by that string.
  const auto text = [env](const std::string& value) { return Napi::String::New(env, value); };
  auto object = Napi::Object::New(env);
  object["files"] = number(report.files);
  object["bytesToHash"] = number(report.bytes_to_hash);
  object["bytesHashed"] = number(report.bytes_hashed);
  object["unreadable"] = ToArray(env, report.unreadable, text);
  object["hashed"] = ToArray(env, report.hashed, [&](const HashedFile& file) {
    auto hashed = Napi::Object::New(env);
    hashed["path"] = text(file.path);
    hashed["size"] = number(file.size);
    hashed["hash"] = text(file.hash);
    return hashed;
  });
  return object;
}

}  // namespace

std::shared_ptr<Channel> Channel::Open(Napi::Env env, Napi::Function on_report) {
  const std::shared_ptr<Channel> channel(new Channel(env));
  channel->doorbell_ = Doorbell::New(
      env, on_report, "find-duplicates", /*maxQueueSize=*/0, /*initialThreadCount=*/1,
      channel.get(), [](Napi::Env, void*, Channel* gone) { gone->self_.reset(); },
      static_cast<void*>(nullptr));
  channel->self_ = channel;
  // After the doorbell: hooks run in the reverse order, and this one must run
  // before Node's own of the thread-safe function.
  channel->hook_ = env.AddCleanupHook(&OnEnvironmentEnd, channel.get());
  return channel;
}

void Channel::Send(Report report) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!open_) return;
  Append(pending_, std::move(report));
  const auto now = std::chrono::steady_clock::now();
  if (rung_ || (now - rung_at_ < kBetweenRings && !pending_.last)) return;
  rung_ = true;
  rung_at_ = now;
  doorbell_.NonBlockingCall();
}

void Channel::Deliver(Napi::Env env, Napi::Function on_report, Channel* channel, void*) {
  if (env == nullptr) return;  // it is ending
  Report report;
  {
    const std::lock_guard<std::mutex> lock(channel->mutex_);
    report = std::exchange(channel->pending_, {});
    channel->rung_ = false;
    if (report.last) {
      channel->open_ = false;
      channel->hook_.Remove(env);
      channel->doorbell_.Release();
    }
  }
  if (channel->settled_) return;
  try {
    on_report.Call({ToObject(env, report)});
    if (!report.last) return;
    channel->settled_ = true;
    channel->done_.Resolve(env.Undefined());
  } catch (const Napi::Error& error) {
    channel->settled_ = true;
    channel->done_.Reject(error.Value());  // else it would be a warning at most
  }
}

void Channel::OnEnvironmentEnd(Channel* channel) {
  const std::lock_guard<std::mutex> lock(channel->mutex_);
  channel->open_ = false;
  channel->doorbell_.Abort();
}

}  // namespace find_duplicates
