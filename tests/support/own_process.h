// A test of this program in a process of its own, for what a process does not survive.
#pragma once

#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

namespace sluice::test {

// Expects that it ends with status 0. `mark`: a variable that is set in its environment, and not in this one's.
inline void expect_passes_in_own_process(const std::string& name, const char* mark) {
  const std::string filter = "--gtest_filter=" + name;
  char program[] = "/proc/self/exe";
  char* arguments[] = {program, const_cast<char*>(filter.c_str()), nullptr};
  ASSERT_EQ(setenv(mark, "1", 1), 0);
  pid_t child = 0;
  const int started = posix_spawn(&child, program, nullptr, nullptr, arguments, environ);
  unsetenv(mark);
  ASSERT_EQ(started, 0);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status)) << "by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace sluice::test
