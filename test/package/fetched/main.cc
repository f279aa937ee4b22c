#include <allstop/allstop.hpp>

// Exits with 0: a coordinator of the library stops its thread.
int main() {
  const auto coord = allstop::Coordinator::Create();
  allstop::Thread thread(coord, "thread",
                         [](const allstop::Coordinator& own) { own.WaitForStop(); });
  coord.RequestStop();
  return coord.Join() == ALLSTOP_OK ? 0 : 1;
}
