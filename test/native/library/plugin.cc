// A plugin that links the library: plugin_test.cc loads and unloads it.
#include <allstop/allstop.hpp>
#include <allstop/allstop_interruptible.hpp>

#define EXPORTED extern "C" __attribute__((visibility("default")))

// Starts a thread, which calls `on_end` before it ends.
EXPORTED bool plugin_start(void (*on_end)(void*), void* context) {
  allstop::Start(allstop::Coordinator::Create(), "of a plugin", [=](const auto& coord) {
    coord.WaitForStop(std::chrono::milliseconds(50));
    on_end(context);
  });
  return true;
}

// Leaves a deadline behind, which calls `on_stop`, and gives a thread a guard for a moment.
EXPORTED bool plugin_run(void (*on_stop)(void*), void* context) {
  const auto coord = allstop::Coordinator::Create();
  static allstop_callback* callback = nullptr;
  if (allstop_on_stop(coord.handle(), on_stop, context, &callback) != ALLSTOP_OK) return false;
  const allstop::Interruptible guard(coord);
  allstop_deadline* deadline = nullptr;  // never released
  return guard && allstop_stop_after(coord.handle(), 50, &deadline) == ALLSTOP_OK;
}
