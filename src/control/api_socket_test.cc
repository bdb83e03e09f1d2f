#include "control/api_socket.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace sluice::control {
namespace {

namespace fs = std::filesystem;

class ApiSocketTest : public testing::Test {
 protected:
  ApiSocketTest() { fs::remove_all(folder_); }
  ~ApiSocketTest() override { fs::remove_all(folder_); }
  struct stat about() const {
    struct stat about {};
    EXPECT_EQ(lstat(path_.c_str(), &about), 0);
    return about;
  }

  const std::string folder_ = testing::TempDir() + "api-socket-" + std::to_string(getpid());
  const std::string path_ = folder_ + "/a.sock";
};

TEST_F(ApiSocketTest, IsForItsOwnerAndAGroupAndGoesWithTheGateway) {
  {
    const auto socket = ApiSocket::open(path_, std::to_string(getgid()));
    ASSERT_TRUE(socket) << socket.error().message;
    EXPECT_TRUE(S_ISSOCK(about().st_mode));
    EXPECT_EQ(about().st_mode & 0777, 0660U);
    EXPECT_EQ(about().st_gid, getgid());
    EXPECT_EQ(fs::status(folder_).permissions(), fs::perms(0755));
    const auto fd = connect_to_socket(path_);
    ASSERT_TRUE(fd) << fd.error().message;
    EXPECT_EQ(peer_of(*fd)->pid, getpid());
    close(*fd);
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  EXPECT_EQ(connect_to_socket(path_).error().message.rfind("no gateway listens at " + path_, 0), 0U);
}

TEST_F(ApiSocketTest, OneOfALivingGatewayIsNotTaken) {
  const auto first = ApiSocket::open(path_, "");
  ASSERT_TRUE(first);
  const ino_t inode = about().st_ino;
  const auto second = ApiSocket::open(path_, "");
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().message, "[api] socket = \"" + path_ + "\": it is in use by another gateway (process " +
                                        std::to_string(getpid()) + "): give this one a path of its own");
  EXPECT_EQ(about().st_ino, inode);
}

TEST_F(ApiSocketTest, DeadOnesOfOtherGatewaysAreRemovedAndNothingElse) {
  const auto make = [&](const std::string& name, bool listens) {
    auto made = ApiSocket::open(folder_ + "/" + name, "");
    EXPECT_TRUE(made);
    if (!listens) close((*made)->take());
    return std::move(*made);
  };
  const auto alive = make("9230-1.sock", true);
  const fs::path folder(folder_);
  const fs::path dead = folder / "9230-2.sock", named = folder / "own.sock", file = folder / "9230-3.sock",
                 lock = folder / "9230-4.sock.lock", other = folder / "notes";
  {
    // A second name keeps what the end of the object removes.
    const auto killed = make("9230-2.sock", false), killed_named = make("own.sock", false);
    fs::create_hard_link(dead, folder / "a");
    fs::create_hard_link(named, folder / "b");
  }
  fs::rename(folder / "a", dead);
  fs::rename(folder / "b", named);
  for (const fs::path& path : {file, lock, other}) std::ofstream(path) << "x";
  EXPECT_EQ(remove_dead_sockets(folder_), std::vector<std::string>{dead});
  EXPECT_FALSE(fs::exists(dead));
  EXPECT_FALSE(fs::exists(dead.string() + ".lock"));
  EXPECT_FALSE(fs::exists(lock));
  for (const fs::path& path : {named, file, other, fs::path(alive->path())}) EXPECT_TRUE(fs::exists(path)) << path;
  EXPECT_TRUE(remove_dead_sockets(folder / "nosuch").empty());
}

TEST_F(ApiSocketTest, AGroupThatThereIsNotIsReported) {
  EXPECT_TRUE(check_group(""));
  EXPECT_TRUE(check_group(std::to_string(getegid())));
  EXPECT_EQ(check_group("nosuchgroup").error().message,
            "[api] group = \"nosuchgroup\": there is no such group: addgroup --system nosuchgroup");
}

// As kill -9 leaves it.
TEST_F(ApiSocketTest, OneThatAKilledGatewayLeftIsReplaced) {
  const pid_t child = fork();
  if (child == 0) {
    const auto left = ApiSocket::open(path_, "");
    _exit(left ? 0 : 1);  // without a destructor
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  ASSERT_TRUE(fs::exists(path_));
  const auto socket = ApiSocket::open(path_, "");
  ASSERT_TRUE(socket) << socket.error().message;
  const auto fd = connect_to_socket(path_);
  EXPECT_TRUE(fd);
  if (fd) close(*fd);
}

TEST_F(ApiSocketTest, WhatIsNoSocketStays) {
  fs::create_directory(folder_);
  std::ofstream(path_) << "mine";
  const auto socket = ApiSocket::open(path_, "");
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().message, "[api] socket = \"" + path_ + "\": is there and no socket: name a path of its own");
  EXPECT_EQ(fs::file_size(path_), 4U);
}

TEST_F(ApiSocketTest, SaysWhatIsWrong) {
  EXPECT_EQ(ApiSocket::open(path_, "no-such-group").error().message,
            "[api] group = \"no-such-group\": there is no such group: addgroup --system no-such-group");
  EXPECT_NE(why_not_socket_path("/run/" + std::string(100, 'a')).find("is longer than the 102 characters"),
            std::string::npos);
  EXPECT_EQ(why_not_socket_path("relative"), "allowed is a path that begins with /, \"auto\", or \"\" for none");
  EXPECT_NE(why_not_socket_path(folder_ + "/a/b/c.sock").find("there is no folder"), std::string::npos);
  const std::string long_path = "/run/" + std::string(200, 'a');
  EXPECT_EQ(connect_to_socket(long_path).error().message, long_path + " is too long for a socket's path");
  EXPECT_EQ(find_group("root"), 0U);
  EXPECT_EQ(find_group("12"), 12U);
}

TEST_F(ApiSocketTest, TheDefaultNamesPortAndNamespace) {
  struct stat net {};
  ASSERT_EQ(stat("/proc/self/ns/net", &net), 0);
  EXPECT_TRUE(default_socket_path(9230).ends_with("/sluice/9230-" + std::to_string(net.st_ino) + ".sock"));
  EXPECT_NE(default_socket_path(9230), default_socket_path(9231));
}

}  // namespace
}  // namespace sluice::control
