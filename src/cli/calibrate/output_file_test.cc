#include "cli/calibrate/output_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace sluice::cli {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class OutputFile : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string error_of(const std::string& path) const {
    const Replaceable ours{"list of ours", [](const std::string& file) { return text_of(file).starts_with("ours"); }};
    const auto checked = check_output("--list", path, ours);
    return checked ? "" : checked.error().message;
  }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ + name) << text;
    return folder_ + name;
  }

  std::string folder_ = testing::TempDir() + "sluice_output_" + std::to_string(getpid()) + "/";
};

TEST_F(OutputFile, IsLookedAtBefore) {
  EXPECT_EQ(error_of(folder_ + "none"), "");
  EXPECT_TRUE(std::filesystem::is_empty(folder_)) << "nothing is left behind";
  EXPECT_EQ(error_of(file("empty", "")), "");
  EXPECT_EQ(error_of(file("ours", "ours, and more")), "");
  EXPECT_EQ(error_of(file("other", "no")),
            "--list: there is a file that is no list of ours: name another one, or remove it");
  EXPECT_EQ(error_of(folder_), "--list: is a directory");
  EXPECT_EQ(error_of("/dev/null"), "--list: is no regular file");
  EXPECT_EQ(error_of(folder_ + "none/a"), "--list: cannot be written: No such file or directory");
  file("a.new", "somebody's");
  EXPECT_EQ(error_of(folder_ + "a"), "--list: " + folder_ + "a.new is in the way: remove it");
  remove_half_written();
  EXPECT_EQ(text_of(folder_ + "a.new"), "somebody's");
  EXPECT_EQ(text_of(folder_ + "ours"), "ours, and more");
}

TEST_F(OutputFile, TakesItsPlaceWhole) {
  const std::string path = file("a", "before");
  EXPECT_TRUE(write_output(path, "after"));
  EXPECT_EQ(text_of(path), "after");
  EXPECT_FALSE(std::filesystem::exists(path + ".new"));
  remove_half_written();
  EXPECT_EQ(text_of(path), "after");
  EXPECT_FALSE(write_output(folder_ + "none/a", "x"));
  std::filesystem::create_directory(folder_ + "b");
  EXPECT_FALSE(write_output(folder_ + "b", "x")) << "it has become a directory meanwhile";
  EXPECT_FALSE(std::filesystem::exists(folder_ + "b.new"));
}

}  // namespace
}  // namespace sluice::cli
