// A plugin that links the library is unloaded while it or the library has threads and a signal
// handler.
#include <gtest/gtest.h>

#ifdef ALLSTOP_TEST_PLUGIN
#include <dlfcn.h>
#include <signal.h>

#include <future>

namespace allstop {
namespace {

// Calls `function` of the plugin, which is to call back, and unloads the plugin before it does.
void CallAndUnload(const char* function, std::promise<void>& called_back) {
  void* const plugin = dlopen(ALLSTOP_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plugin, nullptr) << dlerror();
  using Function = bool (*)(void (*)(void*), void*);
  const auto call = reinterpret_cast<Function>(dlsym(plugin, function));
  const auto call_back = [](void* promise) {
    static_cast<std::promise<void>*>(promise)->set_value();
  };
  ASSERT_TRUE(call(call_back, &called_back));
  ASSERT_EQ(dlclose(plugin), 0);
}

TEST(PluginTest, MayBeUnloadedWhileItsThreadRuns) {
  std::promise<void> ended;
  CallAndUnload("plugin_start", ended);
  ended.get_future().wait();
}

TEST(PluginTest, MayBeUnloadedWhileTheLibraryHasADeadlineAndASignal) {
  for (int round = 0; round < 2; ++round) {
    std::promise<void> stopped;
    CallAndUnload("plugin_run", stopped);
    raise(SIGRTMAX - 1);  // its handler is the library's
    stopped.get_future().wait();
  }
}

}  // namespace
}  // namespace allstop
#endif
