// A plugin that links the library is unloaded while the library has threads and a signal handler.
#include <gtest/gtest.h>

#ifdef ALLSTOP_TEST_PLUGIN
#include <dlfcn.h>
#include <signal.h>

#include <future>

namespace allstop {
namespace {

TEST(PluginTest, MayBeUnloadedAtAnyTime) {
  for (int round = 0; round < 2; ++round) {
    void* const plugin = dlopen(ALLSTOP_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(plugin, nullptr) << dlerror();
    using Run = bool (*)(void (*)(void*), void*);
    const auto run = reinterpret_cast<Run>(dlsym(plugin, "plugin_run"));
    std::promise<void> stopped;
    const auto on_stop = [](void* promise) {
      static_cast<std::promise<void>*>(promise)->set_value();
    };
    ASSERT_TRUE(run(on_stop, &stopped));
    ASSERT_EQ(dlclose(plugin), 0);
    raise(SIGRTMAX - 1);  // its handler is the library's
    stopped.get_future().wait();
  }
}

}  // namespace
}  // namespace allstop
#endif
