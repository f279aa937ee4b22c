// What a process that was forked makes of its ids.
#ifndef _WIN32
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>
#include <string>

#include "core/identity.h"

namespace allstop::core {
namespace {

// Calls `next` in a forked process, and returns the text that `next` returned there.
template <typename Next>
std::string InAFork(Next next) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    const std::string text = next();
    _exit(write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  close(ends[1]);
  std::string text(256, '\0');
  const ssize_t size = read(ends[0], &text[0], text.size());
  close(ends[0]);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

TEST(ForkedIdentityTest, NoTwoProcessesMakeTheSameId) {
  const std::string world = World();
  NextIdentity();
  const std::set<std::string> ids = {InAFork(NextIdentity), InAFork(NextIdentity), NextIdentity(),
                                     InAFork([] { return InAFork(NextIdentity); }),
                                     InAFork([] { return NextIdentity().substr(0, 32); })};
  EXPECT_EQ(ids.size(), 5u);
  EXPECT_EQ(World(), world) << "the parent stays what it was";
  EXPECT_NE(InAFork([] { return World(); }), world);
  EXPECT_EQ(InAFork([] { return NextIdentity().rfind(World() + ".", 0) == 0 ? "yes" : "no"; }),
            "yes");
}

}  // namespace
}  // namespace allstop::core
#endif
