#include "base/thrown.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace sluice {
namespace {

template <class T>
std::string said_of(const T& thrown) {
  try {
    throw thrown;
  } catch (...) {
    return what_was_thrown();
  }
}

TEST(Thrown, IsOneLineWhateverItIs) {
  EXPECT_EQ(said_of(std::runtime_error("no such key")), "no such key");
  EXPECT_EQ(said_of(std::runtime_error("two\nlines\x1b[2J")), "two?lines?[2J");
  EXPECT_EQ(said_of(7), "an exception that is no std::exception");
}

[[noreturn]] void fail() {
  throw std::runtime_error("thrown by a function");
}

void fail_where_nothing_may() noexcept {
  name_last_exception();
  fail();
}

TEST(ThrownDeathTest, EndsTheProgramWithItsWords) {
  EXPECT_DEATH(fail_where_nothing_may(), "sluice: ended by an exception that nothing caught.*: thrown by a function");
}

}  // namespace
}  // namespace sluice
