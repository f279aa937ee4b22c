// One coordinator in one JavaScript environment.
#ifndef ALLSTOP_BINDING_NATIVE_ATTACHMENT_H_
#define ALLSTOP_BINDING_NATIVE_ATTACHMENT_H_

#include <napi.h>

#include <cstdint>
#include <map>
#include <memory>
#include <set>

#include "../core/coordinator.h"
#include "environment.h"

namespace allstop::binding {

// The native half of the class Attachment in lib/coordinator/attachment.ts. The interface
// NativeAttachment in lib/native/binding.ts documents the methods. JavaScript thread only.
//
// Life: until JavaScript collects the object, or the environment closes, whichever comes first.
// Then Detach takes the object's observer, joins and links out of the core.
class WordMirror;

class NativeAttachment final : public Napi::ObjectWrap<NativeAttachment>, public Closable {
 public:
  static Napi::Function Class(Napi::Env env, Environment& environment);
  static Napi::Value Make(Environment& environment, std::shared_ptr<core::Coordinator> coordinator);

  explicit NativeAttachment(const Napi::CallbackInfo& info);
  ~NativeAttachment() override;

  // Called when the environment ends.
  void Close() override;

  const std::shared_ptr<core::Coordinator>& coordinator() const { return coordinator_; }

 private:
  using Info = Napi::CallbackInfo;

  template <Napi::Value (NativeAttachment::*method)(const Info&)>
  Napi::Value Checked(const Info& info);

  Napi::Value RequestStop(const Info& info);
  Napi::Value ForbidClear(const Info& info);
  Napi::Value IsClearable(const Info& info);
  Napi::Value AwaitAnswer(const Info& info);
  Napi::Value AnswerStop(const Info& info);
  Napi::Value AnswerNone(const Info& info);
  Napi::Value ClearStop(const Info& info);
  Napi::Value WaitSlice(const Info& info);
  Napi::Value Generation(const Info& info);
  Napi::Value SetInterested(const Info& info);
  Napi::Value TakeUnseen(const Info& info);
  Napi::Value PastStopId(const Info& info);
  Napi::Value Stop(const Info& info);
  Napi::Value Record(const Info& info);
  Napi::Value Suppressed(const Info& info);
  Napi::Value SuppressedCount(const Info& info);
  Napi::Value Reported(const Info& info);
  Napi::Value Status(const Info& info);
  Napi::Value FirstError(const Info& info);
  Napi::Value Joined(const Info& info);
  Napi::Value CleanStopTypes(const Info& info);

  Napi::Value RegisterThread(const Info& info);
  Napi::Value StartThread(const Info& info);
  Napi::Value ReadmitThread(const Info& info);
  Napi::Value EndThread(const Info& info);
  Napi::Value TakeStopOfHook(const Info& info);
  Napi::Value EndHook(const Info& info);
  Napi::Value Report(const Info& info);
  Napi::Value Threads(const Info& info);
  Napi::Value LeftBehindThreads(const Info& info);
  Napi::Value EndedThreads(const Info& info);
  Napi::Value NoteSeen(const Info& info);
  Napi::Value Timeline(const Info& info);
  Napi::Value WatchEvents(const Info& info);

  Napi::Value WouldJoinItself(const Info& info);
  Napi::Value BeginJoin(const Info& info);
  Napi::Value JoinRemainingMs(const Info& info);
  Napi::Value JoinHasEnded(const Info& info);
  Napi::Value FinishJoin(const Info& info);
  Napi::Value AbandonJoin(const Info& info);

  Napi::Value Child(const Info& info);
  Napi::Value HasOtherOwners(const Info& info);
  Napi::Value IsShared(const Info& info);
  Napi::Value Publish(const Info& info);
  Napi::Value Unpublish(const Info& info);
  Napi::Value AddLink(const Info& info);
  Napi::Value RemoveLink(const Info& info);
  Napi::Value Links(const Info& info);
  Napi::Value StopAfter(const Info& info);
  Napi::Value CancelStopAfter(const Info& info);
  Napi::Value ExitAfterStop(const Info& info);
  Napi::Value CancelExitAfterStop(const Info& info);
  Napi::Value SetBusyWorkers(const Info& info);
  Napi::Value Mirror(const Info& info);
  Napi::Value EndMirror(const Info& info);
  Napi::Value LinkSignals(const Info& info);
  Napi::Value UnlinkSignals(const Info& info);
  Napi::Value BindCapsule(const Info& info);
  Napi::Value BindSignal(const Info& info);
  Napi::Value Words(const Info& info);
  Napi::Value WordIndex(const Info& info);
  Napi::Value Token(const Info& info);
  Napi::Value Id(const Info& info);
  Napi::Value Name(const Info& info);
  Napi::Value StopGracePeriodMs(const Info& info);

  core::JoinCaller Caller(const Napi::Value& tasks) const;
  void Detach();

  std::shared_ptr<Environment> environment_;
  std::shared_ptr<core::Coordinator> coordinator_;
  // The reference that the capsules of the signals share; expired when all of those are gone.
  std::weak_ptr<std::shared_ptr<core::Coordinator>> signal_share_;
  std::shared_ptr<core::Observer> observer_;  // null once detached
  MirrorWord mirror_word_;
  std::uint64_t token_ = 0;
  std::uint32_t next_join_ = 1;
  std::map<std::uint32_t, std::shared_ptr<core::Join>> joins_;  // in progress
  std::uint32_t next_mirror_ = 1;
  std::map<std::uint32_t, std::shared_ptr<WordMirror>> mirrors_;  // not ended
  std::set<std::uint64_t> links_;                                 // from Coordinator::AddLink
  std::set<std::uint64_t> signals_;                               // from binding::LinkSignals
};

}  // namespace allstop::binding

#endif  // ALLSTOP_BINDING_NATIVE_ATTACHMENT_H_
