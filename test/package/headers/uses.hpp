// Uses every template of the public headers, since a compiler says what is wrong with one only
// where it is used. scripts/test-headers.mjs compiles this file in many ways; nothing runs it.
#if defined(NODE_ADDON_API_CPP_EXCEPTIONS) || defined(NAPI_CPP_EXCEPTIONS)
#define ALLSTOP_USES_EXCEPTIONS 1
#else
#define ALLSTOP_USES_EXCEPTIONS 0
#endif

void Use(const allstop::Coordinator& coord, const allstop::StopFlag& flag, napi_env env,
         const Napi::Value& value);

void Use(const allstop::Coordinator& coord, const allstop::StopFlag& flag, napi_env env,
         const Napi::Value& value) {
  using Ms = std::chrono::milliseconds;
  bool made = false;
  (void)coord.RequestStop(&made);
  (void)coord.RequestStop({});
  (void)coord.RequestStop(allstop::Error{}, &made);
  (void)coord.FirstError();
  (void)coord.SuppressedErrors();
  (void)coord.WaitForStop(Ms(1));
  (void)coord.Join(Ms(1), true);
  (void)coord.Child({"child", std::nullopt});
  const allstop::Deadline deadline = coord.StopAfter(std::chrono::seconds(1));

  allstop::Thread(coord, "with it", [](const allstop::Coordinator&) {}).Detach();
  allstop::Thread(coord, "without it", [] {}).Detach();
  const allstop::StopCallback callback(coord, [&made] { made = true; });
  allstop::LooperThread looper(coord, Ms(1), [] {});
  allstop::Registration registration(coord, "work");
  registration.Enter();
  registration.Fail({});
  const allstop::RegisteredCalls calls(coord, "calls");
  calls.Of([&made] { made = true; })();
  const allstop::Interruptible guard(coord);

  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock<std::mutex> lock(mutex);
  (void)allstop::WaitUntilStop(coord, lock, condition, [&made] { return made; });

  const allstop::BoundedQueue queue(coord, 2, "queue");
  std::vector<allstop::Item> items;
  (void)queue.Enqueue("item", Ms(1));
  (void)queue.DequeueMany(items, 2, Ms(1));
  (void)queue.DequeueMany(items, 2, 1, Ms(1));
  std::unique_ptr<allstop::QueueRunner> runner;
  const auto op = [](const allstop::BoundedQueue&) { return allstop::Status(); };
  allstop::QueueRunner::New(queue, {op}, {}, coord, &runner).IgnoreError();
  allstop::tensorflow::Coordinator tensorflow(coord);
  tensorflow.RegisterRunner(std::move(runner)).IgnoreError();
  tensorflow.Join().IgnoreError();

#if !defined(_WIN32)
  const allstop::StopFd fd(coord);
#endif
#if defined(__cpp_lib_jthread)
  const allstop::StopSource source(coord);
#endif
#if ALLSTOP_USES_EXCEPTIONS
  (void)allstop::StopOnException(coord, [] {});
  allstop::RaiseRequestedException(coord);
#endif

  (void)allstop::StopFlag::Merge(flag, allstop::StopFlag(env, value)).ShouldStop();
  (void)allstop::From(value).ShouldStop();
  (void)allstop::QueueFrom(value).size();
  (void)allstop::VariableFrom(value).length();
  const auto function = allstop::ThreadsafeFunction::Create(env, value, "function", [] {});
  (void)function->Post([](napi_env, napi_value) {});
}
