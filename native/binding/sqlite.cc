// Invariants.
//
// 1. A Connection is bound to one connection of SQLite, from sqlite3_extension_init until SQLite
//    destroys the function of Bind, which it does when the connection is closed. Afterwards
//    db_ is null.
// 2. Only the thread that uses the connection calls into SQLite, but for sqlite3_interrupt, which
//    the requester of a stop calls under mutex_. Closed() takes mutex_ before SQLite frees the
//    connection.
// 3. mutex_ is the innermost lock: under it no function of the core is called, and
//    sqlite3_interrupt takes no lock. A stop callback is added and removed without it.
// 4. Two owners keep a Connection alive: JavaScript's object and SQLite's function. Either may be
//    the last; the stop callback, which has a bare pointer, is gone before SQLite's function is.
#include "sqlite.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "../core/coordinator.h"
#include "convert.h"
#include "native_attachment.h"

namespace allstop::binding {
namespace {

// The functions that SQLite gives to an extension, struct sqlite3_api_routines of sqlite3ext.h,
// to which functions are only ever appended. All are pointers, so the struct is read as an array;
// a build of SQLite without a function has null at its place.
using AnyFunction = void (*)();
enum Place {
  kLibversionNumber = 67,
  kInterrupt = 64,
  kProgressHandler = 75,
  kCreateFunctionV2 = 162,
  kTraceV2 = 214,
};
constexpr int kVersionWithTraceV2 = 3014000;
constexpr int kSqliteOk = 0;
constexpr int kSqliteError = 1;
constexpr int kUtf8 = 1;
constexpr unsigned kTraceStatement = 1;  // a statement begins
constexpr unsigned kTraceProfile = 2;    // a statement has ended

template <typename Function>
Function* At(const AnyFunction* api, Place place) {
  return reinterpret_cast<Function*>(api[place]);
}

using Libversion = int();
using Interrupt = void(void* db);
using ProgressHandler = void(void* db, int steps, int (*handler)(void*), void* context);
using TraceV2 = int(void* db, unsigned mask,
                    int (*callback)(unsigned, void*, void* statement, void* text), void* context);
using CreateFunctionV2 = int(void* db, const char* name, int arguments, int encoding, void* data,
                             void (*function)(void*, int, void**), void (*step)(void*, int, void**),
                             void (*final)(void*), void (*destroy)(void*));

// A ROLLBACK runs in spite of the stop: without it an interrupted transaction would stay open.
// SQL may begin with spaces and comments.
bool IsRollback(const char* text) {
  while (true) {
    while (*text == ' ' || (*text >= '\t' && *text <= '\r')) ++text;
    if (text[0] == '-' && text[1] == '-') {
      while (*text != '\0' && *text != '\n') ++text;
    } else if (text[0] == '/' && text[1] == '*') {
      text += 2;
      while (*text != '\0' && !(text[0] == '*' && text[1] == '/')) ++text;
      if (*text != '\0') text += 2;
    } else {
      break;
    }
  }
  for (const char* expected = "rollback"; *expected != '\0'; ++expected, ++text) {
    if ((*text | 0x20) != *expected) return false;
  }
  return true;
}

class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // Called by SQLite, inside of loadExtension. Returns false if SQLite refuses.
  bool Bind(void* db, const AnyFunction* api) {
    if (At<Libversion>(api, kLibversionNumber)() < kVersionWithTraceV2) return false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      db_ = db;
    }
    api_ = api;
    // The function does nothing; SQLite destroys its data when the connection is closed.
    auto* const data = new std::shared_ptr<Connection>(shared_from_this());
    const auto nothing = [](void*, int, void**) {};
    const auto destroy = [](void* owned) {
      const std::unique_ptr<std::shared_ptr<Connection>> self(
          static_cast<std::shared_ptr<Connection>*>(owned));
      (*self)->Closed();
    };
    // SQLite calls `destroy` also if it fails.
    return At<CreateFunctionV2>(api, kCreateFunctionV2)(db, "allstop_obeys", 0, kUtf8, data,
                                                        nothing, nullptr, nullptr,
                                                        destroy) == kSqliteOk;
  }

  // Returns false if the connection is closed or was never bound. A null `coordinator` ends the
  // obedience.
  bool Obey(std::shared_ptr<core::Coordinator> coordinator, int every_steps) {
    if (db_ == nullptr) return false;
    Forget();
    coordinator_ = std::move(coordinator);
    const bool obeys = coordinator_ != nullptr;
    At<TraceV2>(api_, kTraceV2)(db_, obeys ? kTraceStatement | kTraceProfile : 0,
                                obeys ? OnStatement : nullptr, this);
    if (auto* const handler = At<ProgressHandler>(api_, kProgressHandler)) {
      handler(db_, every_steps, obeys ? OnProgress : nullptr, this);
    } else if (obeys) {
      Listen();
    }
    return true;
  }

 private:
  static int OnProgress(void* context) {
    const auto* const self = static_cast<Connection*>(context);
    // The program may have replaced the function whose end ends the obedience.
    if (!self->coordinator_ || self->is_rollback_) return 0;
    return self->coordinator_->ShouldStop() ? 1 : 0;
  }

  static int OnStatement(unsigned event, void* context, void* /*statement*/, void* text) {
    auto* const self = static_cast<Connection*>(context);
    if (event == kTraceStatement) {
      self->BeginStatement(static_cast<const char*>(text));
    } else {
      self->is_rollback_ = false;
    }
    return 0;
  }

  void BeginStatement(const char* text) {
    if (!coordinator_) return;
    is_rollback_ = text != nullptr && IsRollback(text);
    if (coordinator_->ShouldStop()) {
      if (!is_rollback_) At<Interrupt>(api_, kInterrupt)(db_);
    } else if (has_fired_.exchange(false)) {
      Listen();  // the stop was cleared: a callback runs only once
    }
  }

  // A build of SQLite without progress handlers is interrupted by a callback of the stop.
  void Listen() {
    Unlisten();
    callback_ = coordinator_->OnStop(
        [](void* context) { static_cast<Connection*>(context)->InterruptAtStop(); }, this);
  }

  void Unlisten() {
    if (callback_) coordinator_->RemoveStopCallback(*callback_);
    callback_.reset();
  }

  void InterruptAtStop() {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (db_ != nullptr) At<Interrupt>(api_, kInterrupt)(db_);
    has_fired_ = true;
  }

  void Forget() {
    Unlisten();
    coordinator_.reset();
    has_fired_ = false;
  }

  void Closed() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      db_ = nullptr;
    }
    Forget();
  }

  std::mutex mutex_;
  void* db_ = nullptr;  // written by the connection's thread under mutex_; read by it without
  const AnyFunction* api_ = nullptr;  // written before the first callback is registered
  // These three belong to the connection's thread.
  bool is_rollback_ = false;  // a ROLLBACK runs: no other statement runs inside it
  std::shared_ptr<core::Coordinator> coordinator_;
  std::shared_ptr<core::StopCallback> callback_;
  std::atomic<bool> has_fired_{false};
};

using Shared = std::shared_ptr<Connection>;

// The Connection that the next sqlite3_extension_init of this thread binds. SQLite calls that
// inside of loadExtension, on the thread that calls loadExtension. It is the External's, which
// resets this when it is collected. (A thread_local with a destructor needs glibc 2.18.)
thread_local Shared* pending = nullptr;

}  // namespace

Napi::Value ConnectSqlite(const Napi::CallbackInfo& info) {
  auto connection = std::make_unique<Shared>(std::make_shared<Connection>());
  const auto external =
      Napi::External<Shared>::New(info.Env(), connection.get(), [](Napi::Env, Shared* shared) {
        if (pending == shared) pending = nullptr;
        delete shared;
      });
  pending = connection.release();
  return external;
}

Napi::Value ObeySqlite(const Napi::CallbackInfo& info) {
  pending = nullptr;
  const Shared connection = *info[0].As<Napi::External<Shared>>().Data();
  std::shared_ptr<core::Coordinator> coordinator;
  if (info[1].IsObject()) {
    coordinator = NativeAttachment::Unwrap(ObjectArgument(info, 1))->coordinator();
  }
  const int every_steps = static_cast<int>(IdArgument(info, 2));
  return Napi::Boolean::New(info.Env(), connection->Obey(std::move(coordinator), every_steps));
}

}  // namespace allstop::binding

// The entry point that SQLite looks for first in an extension, whatever the name of its file.
#if defined(_WIN32)
#define ALLSTOP_EXPORT __declspec(dllexport)
#else
#define ALLSTOP_EXPORT __attribute__((visibility("default")))
#endif
extern "C" ALLSTOP_EXPORT int sqlite3_extension_init(void* db, char** /*error*/,
                                                     const void* routines);

extern "C" int sqlite3_extension_init(void* db, char** /*error*/, const void* routines) {
  using allstop::binding::AnyFunction;
  auto*& pending = allstop::binding::pending;
  const auto connection = pending ? *pending : nullptr;
  pending = nullptr;
  const auto* const api = static_cast<const AnyFunction*>(routines);
  const bool is_bound = connection && connection->Bind(db, api);
  return is_bound ? allstop::binding::kSqliteOk : allstop::binding::kSqliteError;
}
