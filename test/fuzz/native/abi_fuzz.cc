// Sequences of calls of the C table on one thread, compared after each call with what allstop.h
// and allstop_queue.h promise (model.h). An input is a program: each call takes its arguments
// from the bytes that follow it.
#include <allstop/allstop.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "errors.h"
#include "input.h"
#include "model.h"

namespace allstop::fuzz {
namespace {

constexpr double kNever = INFINITY;

struct Held {
  allstop_coordinator handle = {};
  int owners = 0;  // 0: there is no coordinator in this place, or it was released
  std::shared_ptr<CoordinatorModel> model;
};

struct HeldQueue {
  allstop_queue handle = {};
  int owners = 0;
  std::shared_ptr<CoordinatorModel> coordinator;
  std::size_t capacity = 0;
  bool is_closed = false;
  std::deque<std::string> items;
};

struct HeldThread {
  allstop_thread* token = nullptr;
  std::shared_ptr<CoordinatorModel> coordinator;
  std::shared_ptr<ThreadModel> model;
};

struct HeldCallback {
  allstop_callback* token = nullptr;
  std::shared_ptr<CallbackModel> model;
  std::shared_ptr<CoordinatorModel> coordinator;
};

struct HeldLooper {
  allstop_looper* token = nullptr;
  std::shared_ptr<CoordinatorModel> coordinator;
  int stops_before = 0;
  bool is_due = true;
};

ErrorModel ToModel(const GivenError& given) {
  return {given.id(), given.name(), given.message(), given.causes()};
}

class Interpreter {
 public:
  explicit Interpreter(Input& input) : input_(input) {}

  void Run() {
    for (int calls = 0; calls < 200 && !input_.IsEmpty(); ++calls) {
      Call();
      CheckAll();
    }
    End();
  }

 private:
  void Call() {
    switch (input_.Number(27)) {
      case 0: return Create();
      case 1: return coordinator().owners > 0 ? Child() : Create();
      case 2: return coordinator().owners > 0 ? RequestStop() : Create();
      case 3: return coordinator().owners > 0 ? Report() : Create();
      case 4: return coordinator().owners > 0 ? Clear() : Create();
      case 5: return coordinator().owners > 0 ? Register() : Create();
      case 6: return Enter();
      case 7: return Done();
      case 8: return coordinator().owners > 0 ? Join() : Create();
      case 9: return coordinator().owners > 0 ? OnStop() : Create();
      case 10: return ReleaseCallback();
      case 11: return coordinator().owners > 0 ? Suppressed() : Create();
      case 12: return coordinator().owners > 0 ? Wait() : Create();
      case 13: return coordinator().owners > 0 ? Loop() : Create();
      case 14: return LooperWait();
      case 15: return LooperRelease();
      case 16: return CreateQueue();
      case 17:
      case 18: return queue().owners > 0 ? Enqueue() : CreateQueue();
      case 19:
      case 20: return queue().owners > 0 ? Dequeue() : CreateQueue();
      case 21: return queue().owners > 0 ? Close() : CreateQueue();
      case 22: return queue().owners > 0 ? ReleaseQueue() : CreateQueue();
      case 23: return coordinator().owners > 0 ? Release() : Create();
      case 24: at_ = input_.Byte(); return;
      case 25: queue_at_ = input_.Byte(); return;
      case 26: return coordinator().owners > 0 ? RequestStopOfOldAddon() : Create();
      default: return coordinator().owners > 0 ? Retain() : Create();
    }
  }

  Held& coordinator() { return coordinators_[at_ % kPlaces]; }
  HeldQueue& queue() { return queues_[queue_at_ % kPlaces]; }
  template <typename Item>
  Item& Chosen(Item (&items)[8]) {
    return items[input_.Number(7)];
  }

  // -------------------------------------------------------------- coordinators

  // Options of a valid or invalid size, and the clean-stop type that they set.
  struct GivenOptions {
    allstop_options options = {};
    allstop_string type = {};
    const allstop_options* get = nullptr;
    bool is_valid = true;
    std::string clean_type;
  };

  void ReadOptions(GivenOptions& given, const std::string& clean_type) {
    const std::uint8_t choice = input_.Byte();
    given.clean_type = clean_type;
    if (choice % 4 == 0) return;
    given.options.size = choice % 16 == 15 ? choice % 8 : sizeof(allstop_options);
    given.is_valid = given.options.size >= 8;
    if (choice & 64) given.options.name = allstop_str("a name");
    if (choice % 4 > 1 && given.is_valid) {
      given.type = allstop_str("Mine");
      given.options.clean_stop_types = &given.type;
      given.options.clean_stop_type_count = choice % 4 == 2 ? 1 : 0;
      given.clean_type = choice % 4 == 2 ? "Mine" : "";
    }
    given.get = &given.options;
  }

  void Create() {
    Held& held = coordinator();
    if (held.owners > 0) return;
    GivenOptions given;
    ReadOptions(given, "OutOfRangeError");
    const auto status = allstop_create(allstop_library_table(), given.get, &held.handle);
    MUST(status == (given.is_valid ? ALLSTOP_OK : ALLSTOP_INVALID_ARGUMENT));
    if (status != ALLSTOP_OK) return;
    held.owners = 1;
    held.model = std::make_shared<CoordinatorModel>();
    held.model->clean_type = given.clean_type;
  }

  void Child() {
    Held& parent = coordinator();
    Held& held = coordinators_[input_.Number(kPlaces - 1)];
    if (held.owners > 0) return;
    GivenOptions given;
    ReadOptions(given, parent.model->clean_type);
    const auto status = allstop_child(&parent.handle, given.get, &held.handle);
    MUST(status == (given.is_valid ? ALLSTOP_OK : ALLSTOP_INVALID_ARGUMENT));
    if (status != ALLSTOP_OK) return;
    held.owners = 1;
    held.model = std::make_shared<CoordinatorModel>();
    held.model->clean_type = given.clean_type;
    held.model->parent = parent.model;
    parent.model->children.push_back(held.model);
    if (parent.model->is_stopped) held.model->Latch(parent.model->error);
  }

  void Retain() {
    allstop_retain(&coordinator().handle);
    ++coordinator().owners;
  }

  // Threads, callbacks, loopers, queues and children of the coordinator may outlive the handle.
  void Release() {
    allstop_release(&coordinator().handle);
    if (--coordinator().owners == 0) coordinator().model = nullptr;
  }

  void RequestStop() {
    Held& held = coordinator();
    const bool has_error = input_.Flag();
    if (!has_error) {
      int made = -1;
      int expected = 0;
      held.model->RequestStop(std::nullopt, true, &expected);
      MUST(allstop_request_stop_made(&held.handle, nullptr, &made) == ALLSTOP_OK);
      MUST(made == expected);
      return;
    }
    const GivenError error(input_);
    int expected_made = 0;
    const auto expected = error.is_valid()
                              ? held.model->RequestStop(ToModel(error), true, &expected_made)
                              : ALLSTOP_INVALID_ARGUMENT;
    int made = -1;
    MUST(allstop_request_stop_made(&held.handle, error.get(), &made) == expected);
    MUST(made == expected_made);
  }

  // An addon that was compiled with the header of 1.0.
  void RequestStopOfOldAddon() {
    Held& held = coordinator();
    int made = 0;
    held.model->RequestStop(std::nullopt, true, &made);
    MUST(allstop_request_stop(&held.handle, nullptr) == ALLSTOP_OK);
  }

  void Report() {
    Held& held = coordinator();
    if (input_.Number(15) == 15) {
      MUST(allstop_report_error(&held.handle, nullptr) == ALLSTOP_INVALID_ARGUMENT);
      return;
    }
    const GivenError error(input_);
    const auto status = allstop_report_error(&held.handle, error.get());
    MUST(status == (error.is_valid() ? ALLSTOP_OK : ALLSTOP_INVALID_ARGUMENT));
    if (error.is_valid()) held.model->Report(ToModel(error));
  }

  void Clear() { MUST(allstop_clear_stop(&coordinator().handle) == coordinator().model->Clear()); }

  void Wait() {
    const std::uint8_t choice = input_.Byte();
    const double timeout = choice < 240 ? 0 : choice % 2 == 0 ? NAN : -1;
    const auto expected = timeout != 0                      ? ALLSTOP_INVALID_ARGUMENT
                          : coordinator().model->is_stopped ? ALLSTOP_OK
                                                            : ALLSTOP_DEADLINE_EXCEEDED;
    MUST(allstop_wait_for_stop(&coordinator().handle, timeout) == expected);
  }

  // -------------------------------------------------------------- threads, joins, callbacks

  void Register() {
    HeldThread& thread = Chosen(threads_);
    if (thread.token != nullptr) return;
    const std::uint8_t choice = input_.Byte();
    const std::uint32_t flags = choice < 240 ? choice % 4 : choice;
    const auto status =
        allstop_thread_register(&coordinator().handle, allstop_str("thread"), flags, &thread.token);
    MUST(status == (flags < 4 ? ALLSTOP_OK : ALLSTOP_INVALID_ARGUMENT));
    if (status != ALLSTOP_OK) return;
    thread.coordinator = coordinator().model;
    thread.model = std::make_shared<ThreadModel>();
    thread.model->is_alive = (flags & ALLSTOP_THREAD_UNSTARTED) == 0;
    thread.coordinator->threads.push_back(thread.model);
  }

  void Enter() {
    HeldThread& thread = Chosen(threads_);
    // The header does not say what becomes of a thread that enters after a join has ended.
    if (thread.token == nullptr || thread.model->is_forgotten || thread.model->is_entered) return;
    for (const auto& other : thread.coordinator->threads) {
      if (other->is_entered && other->is_alive) return;  // this thread is that one
    }
    const allstop_coordinator any = {allstop_library_table(), nullptr, nullptr};
    MUST(allstop_thread_enter(&any, thread.token) == ALLSTOP_OK);
    thread.model->is_entered = thread.model->is_alive = true;
  }

  void Done() {
    HeldThread& thread = Chosen(threads_);
    if (thread.token == nullptr) return;
    const allstop_coordinator any = {allstop_library_table(), nullptr, nullptr};
    if (input_.Flag()) {
      const GivenError error(input_);
      ErrorModel model = ToModel(error);
      if (!error.is_valid()) model = {};
      if (!error.is_valid()) model.message = "?";
      int made = 0;
      thread.coordinator->RequestStop(model, false, &made);
      allstop_thread_done(&any, thread.token, error.get());
    } else {
      allstop_thread_done(&any, thread.token, nullptr);
    }
    thread.model->is_alive = false;
    thread = {};
  }

  void Join() {
    Held& held = coordinator();
    const std::uint8_t choice = input_.Byte();
    if (choice >= 240) {
      const double grace_period = choice % 2 == 0 ? NAN : choice == 241 ? 0 : -0.5;
      MUST(allstop_join(&held.handle, grace_period, 2) == ALLSTOP_INVALID_ARGUMENT);
      return;
    }
    bool is_own = false;
    for (const auto& each : held.model->threads) {
      is_own = is_own || (each->is_alive && each->is_entered && !each->is_forgotten);
    }
    if (!held.model->is_stopped && held.model->WaitsForThreads() && !is_own) return;
    const std::uint32_t flags = choice & ALLSTOP_JOIN_IGNORE_LIVE_THREADS;
    const auto expected = held.model->Join(flags != 0);
    MUST(allstop_join(&held.handle, 0, flags) == expected);
  }

  static void OnStopCallback(void* context) {
    auto& callback = *static_cast<CallbackModel*>(context);
    ++callback.runs;
    MUST(allstop_should_stop(&callback.coordinator));
    MUST(allstop_wait_for_stop(&callback.coordinator, kNever) == ALLSTOP_OK);
    int made = -1;
    MUST(allstop_request_stop_made(&callback.coordinator, nullptr, &made) == ALLSTOP_OK);
    MUST(made == 0);
  }

  void OnStop() {
    HeldCallback& callback = Chosen(callbacks_);
    if (callback.token != nullptr) return;
    Held& held = coordinator();
    if (input_.Number(15) == 15) {
      MUST(allstop_on_stop(&held.handle, nullptr, nullptr, &callback.token) ==
           ALLSTOP_INVALID_ARGUMENT);
      return;
    }
    callback.model = std::make_shared<CallbackModel>();
    callback.model->coordinator = held.handle;
    callback.model->is_pending = !held.model->is_stopped;
    callback.model->expected_runs = held.model->is_stopped ? 1 : 0;
    held.model->callbacks.push_back(callback.model);
    callback.coordinator = held.model;
    MUST(allstop_on_stop(&held.handle, OnStopCallback, callback.model.get(), &callback.token) ==
         ALLSTOP_OK);
    MUST(callback.token != nullptr);
  }

  void ReleaseCallback() {
    HeldCallback& callback = Chosen(callbacks_);
    const allstop_coordinator any = {allstop_library_table(), nullptr, nullptr};
    allstop_callback_release(&any, callback.token);  // NULL is allowed
    if (callback.token == nullptr) return;
    MUST(callback.model->runs == callback.model->expected_runs);
    callback.model->is_pending = false;
    callback = {};
  }

  // -------------------------------------------------------------- loopers

  void Loop() {
    HeldLooper& looper = Chosen(loopers_);
    if (looper.token != nullptr) return;
    const std::uint8_t choice = input_.Byte();
    const double interval = choice < 240 ? choice % 2 * kNever : choice % 2 == 0 ? NAN : -1;
    const std::uint32_t policy = choice / 2 % 4;
    const bool is_valid = choice < 240 && policy < 3;
    const double interval_ms = std::isnan(interval) && choice < 240 ? 0 : interval;
    const auto status =
        allstop_looper_create(&coordinator().handle, interval_ms, policy, &looper.token);
    MUST(status == (is_valid ? ALLSTOP_OK : ALLSTOP_INVALID_ARGUMENT));
    if (!is_valid) return;
    looper.coordinator = coordinator().model;
    looper.stops_before = looper.coordinator->stops;
    looper.is_due = true;
    looper_is_endless_[&looper - loopers_] = interval_ms != 0;
  }

  void LooperWait() {
    HeldLooper& looper = Chosen(loopers_);
    if (looper.token == nullptr) return;
    // A stop that was cleared before the looper was created is none of its stops.
    const bool was_stopped =
        looper.coordinator->is_stopped || looper.coordinator->stops > looper.stops_before;
    if (!was_stopped && !looper.is_due && looper_is_endless_[&looper - loopers_]) return;
    const allstop_coordinator any = {allstop_library_table(), nullptr, nullptr};
    const auto status = allstop_looper_wait(&any, looper.token);
    MUST(status == (was_stopped ? ALLSTOP_CANCELLED : ALLSTOP_OK));
    looper.is_due = false;
  }

  void LooperRelease() {
    HeldLooper& looper = Chosen(loopers_);
    const allstop_coordinator any = {allstop_library_table(), nullptr, nullptr};
    allstop_looper_release(&any, looper.token);  // NULL is allowed
    looper = {};
  }

  // -------------------------------------------------------------- queues

  void CreateQueue() {
    HeldQueue& held = queue();
    if (held.owners > 0) return;
    const std::uint8_t choice = input_.Byte();
    allstop_queue_options options = {};
    options.size = choice == 255 ? 7 : sizeof(options);
    options.capacity = choice == 254 ? 0 : choice == 253 ? UINT64_MAX : 1 + choice % 5;
    if (coordinator().owners > 0 && (choice & 8)) {
      options.coordinator = coordinator().handle.state;
      held.coordinator = coordinator().model;
    }
    const auto status = allstop_queue_create(allstop_library_table(), &options, &held.handle);
    MUST(status == (choice < 254 ? ALLSTOP_OK : ALLSTOP_INVALID_ARGUMENT));
    if (status != ALLSTOP_OK) {
      held = {};
      return;
    }
    held.owners = 1;
    held.capacity = options.capacity;
  }

  static void ReleaseItem(void* data, std::size_t, void* context) {
    delete[] static_cast<char*>(data);
    --*static_cast<int*>(context);
  }

  void Fill(allstop_item& item, const std::string& text, std::uint8_t choice) {
    if (choice % 3 == 0 && text.size() <= ALLSTOP_ITEM_IN_PLACE) {
      item.size = text.size();
      std::memcpy(item.in_place, text.data(), text.size());
    } else if (choice % 3 == 1) {
      MUST(allstop_item_copy(&queue().handle, text.data(), text.size(), &item) == ALLSTOP_OK);
    } else {
      item.size = text.size();
      item.data = new char[text.size() + 1];
      std::memcpy(item.data, text.data(), text.size());
      item.release = ReleaseItem;
      item.context = &items_alive_;
      ++items_alive_;
    }
  }

  void Enqueue() {
    HeldQueue& held = queue();
    const std::uint8_t choice = input_.Byte();
    const std::size_t count = choice < 16 ? 30 + choice : choice % 4 + 1;
    std::vector<std::string> texts;
    std::vector<allstop_item> items(count);
    for (allstop_item& item : items) {
      const std::uint8_t kind = input_.Byte();
      texts.push_back(input_.Text(kind < 128 ? kind % 4 : kind - 80));
      Fill(item, texts.back(), kind);
    }
    if (choice >= 240) {  // nothing may be taken of a list with an item that is too long
      allstop_item longest = {};
      longest.size = ALLSTOP_ITEM_IN_PLACE + 1;
      items.push_back(longest);
    }
    const bool is_invalid = choice >= 232;
    const double timeout = choice >= 232 && choice < 240 ? NAN : 0;
    std::size_t enqueued = 99;
    const auto status =
        allstop_queue_enqueue_many(&held.handle, items.data(), items.size(), timeout, &enqueued);
    const bool is_refused = held.is_closed || (held.coordinator && held.coordinator->is_stopped);
    std::size_t expected = 0;
    if (!is_invalid && !is_refused) {
      expected = std::min(count, held.capacity - std::min(held.capacity, held.items.size()));
    }
    MUST(enqueued == expected);
    MUST(status == (is_invalid          ? ALLSTOP_INVALID_ARGUMENT
                    : is_refused        ? ALLSTOP_CANCELLED
                    : expected == count ? ALLSTOP_OK
                                        : ALLSTOP_DEADLINE_EXCEEDED));
    for (std::size_t i = 0; i < count; ++i) {
      if (i < enqueued) {
        MUST(items[i].size == 0 && items[i].release == nullptr);
        held.items.push_back(texts[i]);
      } else {
        MUST(items[i].size == texts[i].size());
        MUST(std::memcmp(allstop_item_data(&items[i]), texts[i].data(), texts[i].size()) == 0);
        allstop_item_release(&items[i]);
      }
    }
  }

  void Dequeue() {
    HeldQueue& held = queue();
    const std::size_t max = input_.Number(40);
    const std::size_t least = input_.Flag() ? input_.Number(7) : 1;
    const bool is_plain = least == 1 && input_.Flag();
    std::vector<allstop_item> items(max);
    std::size_t dequeued = 99;
    const auto status =
        is_plain
            ? allstop_queue_dequeue_many(&held.handle, items.data(), max, 0, &dequeued)
            : allstop_queue_dequeue_least(&held.handle, items.data(), max, least, 0, &dequeued);
    const bool is_invalid = max == 0 || least == 0 || least > max || least > held.capacity;
    const std::size_t expected = is_invalid ? 0 : std::min(max, held.items.size());
    MUST(dequeued == expected);
    const bool is_stopped = held.coordinator && held.coordinator->is_stopped;
    MUST(status == (is_invalid       ? ALLSTOP_INVALID_ARGUMENT
                    : expected > 0   ? ALLSTOP_OK
                    : is_stopped     ? ALLSTOP_CANCELLED
                    : held.is_closed ? ALLSTOP_OUT_OF_RANGE
                                     : ALLSTOP_DEADLINE_EXCEEDED));
    for (std::size_t i = 0; i < dequeued; ++i) {
      const std::string& text = held.items.front();
      MUST(items[i].size == text.size());
      MUST(std::memcmp(allstop_item_data(&items[i]), text.data(), text.size()) == 0);
      held.items.pop_front();
      allstop_item_release(&items[i]);
    }
  }

  void Close() {
    const std::uint32_t flags = input_.Number(3);
    const auto status = allstop_queue_close(&queue().handle, flags);
    MUST(status == (flags < 2 ? ALLSTOP_OK : ALLSTOP_INVALID_ARGUMENT));
    if (flags < 2) queue().is_closed = true;
  }

  void ReleaseQueue() {
    if (input_.Flag()) {
      allstop_queue_retain(&queue().handle);
      ++queue().owners;
      return;
    }
    allstop_queue_release(&queue().handle);
    if (--queue().owners == 0) queue() = {};
  }

  // -------------------------------------------------------------- what must always hold

  static void MustBe(const allstop_coordinator& handle, const allstop_record* record,
                     const ErrorModel& error) {
    allstop_record_info info = {};
    info.size = sizeof(info);
    MUST(allstop_record_read(&handle, record, &info) == ALLSTOP_OK);
    const std::string id(info.id.data, info.id.size);
    MUST(!id.empty());
    if (!error.id.empty()) MUST(id == error.id);
    if (!error.name.empty()) MUST(std::string(info.name.data, info.name.size) == error.name);
    if (error.message != "?") {
      MUST(std::string(info.message.data, info.message.size) == error.message);
    }
    std::size_t causes = 0;
    allstop_record* cause = nullptr;
    MUST(allstop_record_cause(&handle, record, &cause) == ALLSTOP_OK);
    while (cause != nullptr) {
      ++causes;
      allstop_record* next = nullptr;
      MUST(allstop_record_cause(&handle, cause, &next) == ALLSTOP_OK);
      allstop_record_release(&handle, cause);
      cause = next;
    }
    MUST(causes == error.causes);
  }

  static void Check(const Held& held) {
    const CoordinatorModel& model = *held.model;
    MUST((allstop_should_stop(&held.handle) != 0) == model.is_stopped);
    allstop_record* record = nullptr;
    MUST(allstop_stop_record(&held.handle, &record) == ALLSTOP_OK);
    MUST((record != nullptr) == model.is_stopped);
    if (record != nullptr) {
      allstop_record_info info = {};
      info.size = sizeof(info);
      MUST(allstop_record_read(&held.handle, record, &info) == ALLSTOP_OK);
      MUST(info.kind == model.Kind());
      if (model.error) MustBe(held.handle, record, *model.error);
      allstop_record_release(&held.handle, record);
    }
    MUST(allstop_first_error(&held.handle, &record) == ALLSTOP_OK);
    MUST((record != nullptr) == model.FirstError().has_value());
    if (record != nullptr) MustBe(held.handle, record, *model.FirstError());
    allstop_record_release(&held.handle, record);  // NULL is allowed
  }

  void Suppressed() {
    const Held& held = coordinator();
    const std::size_t capacity = input_.Number(20);
    std::vector<allstop_record*> records(capacity);
    std::size_t count = 99;
    MUST(allstop_suppressed_errors(&held.handle, records.data(), capacity, &count) == ALLSTOP_OK);
    const auto& suppressed = held.model->suppressed;
    MUST(count == std::min<std::size_t>({suppressed.size(), capacity, ALLSTOP_MAX_SUPPRESSED}));
    for (std::size_t i = 0; i < count; ++i) {
      MustBe(held.handle, records[i], suppressed[i]);
      allstop_record_release(&held.handle, records[i]);
    }
  }

  void CheckAll() {
    for (const Held& held : coordinators_) {
      if (held.owners > 0) Check(held);
    }
    for (const HeldCallback& held : callbacks_) {
      if (held.token != nullptr) MUST(held.model->runs == held.model->expected_runs);
    }
    for (HeldQueue& held : queues_) {
      if (held.owners == 0) continue;
      allstop_queue_info info = {};
      info.size = sizeof(info);
      MUST(allstop_queue_read(&held.handle, &info) == ALLSTOP_OK);
      MUST(info.item_count == held.items.size() && info.capacity == held.capacity);
      MUST((info.closed != 0) == held.is_closed);
    }
  }

  // Releases everything, handles first: the tokens keep their coordinators alive. What is then
  // left over, LeakSanitizer finds.
  void End() {
    for (Held& held : coordinators_) {
      for (; held.owners > 0; --held.owners) allstop_release(&held.handle);
    }
    const allstop_coordinator any = {allstop_library_table(), nullptr, nullptr};
    for (HeldThread& thread : threads_) {
      if (thread.token != nullptr) allstop_thread_done(&any, thread.token, nullptr);
    }
    for (HeldCallback& callback : callbacks_) allstop_callback_release(&any, callback.token);
    for (HeldLooper& looper : loopers_) allstop_looper_release(&any, looper.token);
    for (HeldQueue& held : queues_) {
      for (; held.owners > 0; --held.owners) allstop_queue_release(&held.handle);
    }
    MUST(items_alive_ == 0);
  }

  static constexpr std::size_t kPlaces = 4;
  Input& input_;
  std::size_t at_ = 0;
  std::size_t queue_at_ = 0;
  Held coordinators_[kPlaces];
  HeldQueue queues_[kPlaces];
  HeldThread threads_[8];
  HeldCallback callbacks_[8];
  HeldLooper loopers_[8];
  bool looper_is_endless_[8] = {};
  int items_alive_ = 0;
};

}  // namespace
}  // namespace allstop::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  allstop::fuzz::Input input(data, size);
  allstop::fuzz::Interpreter(input).Run();
  return 0;
}
