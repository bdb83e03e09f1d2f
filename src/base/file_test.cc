#include "base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice {
namespace {

class FileTest : public testing::Test {
 protected:
  FileTest() {
    std::string name = testing::TempDir() + "sluice-file-XXXXXX";
    folder_ = mkdtemp(name.data());
  }
  ~FileTest() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }

  std::string folder_;
};

TEST_F(FileTest, ReadsAllOfAFileWhateverItsSize) {
  for (const std::size_t size : {0U, 1U, 65'535U, 65'536U, 200'000U}) {
    const std::string text(size, 'x');
    std::ofstream(path("text")) << text;
    const auto read = read_regular_file(path("text"), 200'000);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, text);
  }
  EXPECT_FALSE(read_regular_file("/proc/self/status", 1 << 20)->empty()) << "its size is 0, says the kernel";
}

TEST_F(FileTest, ReadsADescriptorToItsEndOrSaysWhyNot) {
  const auto read = [](const char* path, std::size_t largest) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    auto text = read_descriptor(fd, "it", largest);
    close(fd);
    return text ? std::to_string(text->size()) + " bytes" : text.error().message;
  };
  std::ofstream(path("text")) << std::string(200'000, 'x');
  EXPECT_EQ(read(path("text").c_str(), 200'000), "200000 bytes");
  EXPECT_EQ(read(path("text").c_str(), 199'999), "it: is larger than 199999, the most that is read");
  EXPECT_EQ(read("/dev/null", 10), "0 bytes");
  EXPECT_EQ(read("/dev/zero", 1 << 20), "it: is larger than 1M, the most that is read") << "it has no end";
  EXPECT_EQ(read(folder_.c_str(), 10), "it: cannot be read: Is a directory");
  EXPECT_EQ(read("/dev/null/nothing", 10), "it: cannot be read: Bad file descriptor");
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(write(ends[1], "abc", 3), 3);
  close(ends[1]);
  EXPECT_EQ(*read_descriptor(ends[0], "it", 3), "abc");
  close(ends[0]);
}

TEST_F(FileTest, MoreThanTheMostIsRefused) {
  std::ofstream(path("text")) << std::string(4097, 'x');
  EXPECT_EQ(read_regular_file(path("text"), 4096).error().message,
            path("text") + ": is larger than 4K, the most that is read");
  EXPECT_EQ(read_regular_file("/proc/self/status", 16).error().message,
            "/proc/self/status: is larger than 16, the most that is read");
}

TEST_F(FileTest, WhatIsNoRegularFileIsRefusedAtOnce) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const std::pair<std::string, std::string> cases[] = {
      {path("nothing"), "No such file or directory"},
      {folder_, "is a folder: name a regular file"},
      {path("pipe"), "is a pipe: name a regular file"},
      {"/dev/zero", "is a device: name a regular file"},
  };
  for (const auto& [name, why] : cases) {
    EXPECT_EQ(read_regular_file(name, 4096).error().message, name + ": " + why);
    EXPECT_EQ(check_regular_file(name).error().message, name + ": " + why);
  }
}

TEST_F(FileTest, OneFileIsKnownByAllItsNames) {
  std::ofstream(path("a")) << "a";
  std::ofstream(path("b")) << "a";
  std::filesystem::create_hard_link(path("a"), path("hard"));
  std::filesystem::create_symlink(path("a"), path("soft"));
  for (const char* name : {"a", "./a", "hard", "soft"}) EXPECT_TRUE(same_file(path("a"), path(name))) << name;
  EXPECT_TRUE(same_file(path("none"), path("./none"))) << "not there yet";
  const std::string here = std::filesystem::current_path().string();
  const std::string above = std::filesystem::current_path().filename().string();
  for (const std::string& name : {std::string("./none-such"), here + "/none-such", "../" + above + "/none-such"}) {
    EXPECT_TRUE(same_file("none-such", name)) << name << ", not there yet";
    EXPECT_TRUE(same_path("none-such", name)) << name;
  }
  EXPECT_FALSE(same_file(path("none"), path("nobody")));
  EXPECT_FALSE(same_file(path("a"), path("b")));
  EXPECT_FALSE(same_file(path("a"), path("none")));
  EXPECT_FALSE(same_file("/dev/null", "/dev/null")) << "holds nothing";
  EXPECT_FALSE(same_file("", ""));
}

TEST_F(FileTest, AnErrorWhileReadingIsSaid) {
  EXPECT_EQ(read_regular_file("/proc/self/mem", 4096).error().message,
            "/proc/self/mem: cannot be read: Input/output error");
}

}  // namespace
}  // namespace sluice
