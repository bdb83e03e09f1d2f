#include "base/netlink_request.h"

#include <gtest/gtest.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

namespace sluice {
namespace {

TEST(NetlinkRequest, IsWhatTheWalksRead) {
  rtmsg route{};
  route.rtm_table = 7;
  NetlinkRequest request(RTM_NEWROUTE, NLM_F_ACK | NLM_F_CREATE, route);
  request.attribute(RTA_OIF, std::uint32_t{3}).attribute(RTA_MARK, std::string("ab")).sequence(9);
  unsigned messages = 0;
  EXPECT_FALSE(each_netlink_message(request.bytes(), [&](const nlmsghdr& header, NetlinkBytes body) {
    ++messages;
    EXPECT_EQ(header.nlmsg_type, RTM_NEWROUTE);
    EXPECT_EQ(header.nlmsg_flags, NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE);
    EXPECT_EQ(header.nlmsg_seq, 9U);
    rtmsg fixed{};
    EXPECT_TRUE(load_front(body, fixed));
    EXPECT_EQ(fixed.rtm_table, 7);
    const NetlinkBytes attributes = behind(body, sizeof fixed);
    std::uint32_t number = 0;
    EXPECT_TRUE(load_front(find_netlink_attribute(attributes, RTA_OIF), number));
    EXPECT_EQ(number, 3U);
    EXPECT_EQ(find_netlink_attribute(attributes, RTA_MARK).size(), 3U) << "with its zero";
    return true;
  }));
  EXPECT_EQ(messages, 1U);
}

TEST(NetlinkRequest, ThatDoesNotFitIsNotSent) {
  NetlinkRequest request(RTM_NEWROUTE, NLM_F_ACK, rtmsg{});
  request.attribute(RTA_DST, std::string(2000, 'x'));
  EXPECT_TRUE(request.bytes().empty());
  EXPECT_EQ(ask(-1, request), EMSGSIZE);
}

// What the kernel answers, on a pair of sockets.
class Answer : public testing::Test {
 protected:
  Answer() { EXPECT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, ends_), 0); }
  ~Answer() override {
    for (const int end : ends_) close(end);
  }
  void append(const void* from, std::size_t size) {
    const auto* const first = static_cast<const char*>(from);
    bytes_.insert(bytes_.end(), first, first + size);
    bytes_.resize((bytes_.size() + 3) / 4 * 4);
  }
  // Behind the error's header: the request whole, or its header alone.
  void error(int number, bool capped, const std::string& words) {
    nlmsghdr header{};
    header.nlmsg_type = NLMSG_ERROR;
    header.nlmsg_flags = static_cast<std::uint16_t>((capped ? NLM_F_CAPPED : 0) | (words.empty() ? 0 : NLM_F_ACK_TLVS));
    append(&header, sizeof header);
    nlmsgerr error{};
    error.error = -number;
    error.msg.nlmsg_len = sizeof error.msg + 12;
    append(&error, sizeof error);
    if (!capped) append("the request.", 12);
    const nlattr head{static_cast<std::uint16_t>(sizeof(nlattr) + words.size() + 1), NLMSGERR_ATTR_MSG};
    if (!words.empty()) {
      append(&head, sizeof head);
      append(words.c_str(), words.size() + 1);
    }
    const auto length = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &length, sizeof length);
  }
  int asked(std::string& says) {
    EXPECT_EQ(send(ends_[1], bytes_.data(), bytes_.size(), 0), static_cast<ssize_t>(bytes_.size()));
    return read_answer(ends_[0], &says);
  }
  int ends_[2];
  std::vector<char> bytes_;
};

TEST_F(Answer, HasANumberAndPerhapsWords) {
  for (const bool capped : {false, true}) {
    for (const std::string words : {"", "Rule already exists"}) {
      bytes_.clear();
      error(EEXIST, capped, words);
      std::string says;
      EXPECT_EQ(asked(says), EEXIST);
      EXPECT_EQ(says, words);
    }
  }
}

TEST_F(Answer, OfAnyLengthIsSafe) {
  error(EEXIST, false, "Rule already exists");
  const std::vector<char> whole = bytes_;
  for (std::size_t size = 1; size < whole.size(); ++size) {
    bytes_.assign(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    std::string says;
    EXPECT_EQ(asked(says), EBADMSG) << size;
    const auto length = static_cast<std::uint32_t>(size);
    if (size >= sizeof length) std::memcpy(bytes_.data(), &length, sizeof length);
    asked(says);
  }
}

}  // namespace
}  // namespace sluice
