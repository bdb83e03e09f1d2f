#include "control/start_needs.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>

namespace sluice::control {
namespace {

class WhyNotWritable : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = std::filesystem::temp_directory_path() / "sluice-start-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }

  std::filesystem::path folder_;
};

TEST_F(WhyNotWritable, ASocketIsNone) {
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path("socket").copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(why_not_writable(path("socket")), "it is a socket");
  close(fd);
}

TEST_F(WhyNotWritable, APipeIsOneWhileSomebodyReadsIt) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(why_not_writable(path("pipe")), "it is a pipe that nobody reads");
  const int reader = open(path("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  EXPECT_EQ(why_not_writable(path("pipe")), "");
  close(reader);
}

TEST_F(WhyNotWritable, AFileNeedNotBeThere) {
  EXPECT_EQ(why_not_writable(path("new")), "");
  EXPECT_EQ(why_not_writable(folder_), "it is a folder");
  EXPECT_EQ(why_not_writable(path("none/new")), "there is no folder " + path("none") + ": make it");
  EXPECT_FALSE(std::filesystem::exists(path("new")));
}

}  // namespace
}  // namespace sluice::control
