#include "base/appended_file.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(AppendedFile, AllThatLiveAreReopenedAndAsked) {
  int reopened = 0;
  std::string trouble;
  AppendedFile one({[&] { ++reopened; }, [] { return std::string(); }});
  {
    AppendedFile other({[&] { reopened += 10; }, [&] { return trouble; }});
    AppendedFile::reopen_all();
    EXPECT_EQ(reopened, 11);
    EXPECT_TRUE(AppendedFile::troubles().empty());
    trouble = "b is full";
    EXPECT_EQ(AppendedFile::troubles(), std::vector<std::string>{"b is full"});
  }
  AppendedFile::reopen_all();
  EXPECT_EQ(reopened, 12);
  EXPECT_TRUE(AppendedFile::troubles().empty());
}

}  // namespace
}  // namespace sluice
