#include "base/netlink.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice {
namespace {

using Buffer = std::vector<std::byte>;

template <typename Head>
void append(Buffer& buffer, const Head& head, const std::string& payload) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(&head);
  buffer.insert(buffer.end(), bytes, bytes + sizeof head);
  for (const char c : payload) buffer.push_back(static_cast<std::byte>(c));
  buffer.resize((buffer.size() + 3) / 4 * 4);
}

Buffer attributes(std::initializer_list<std::pair<std::uint16_t, std::string>> list) {
  Buffer buffer;
  for (const auto& [type, payload] : list) {
    append(buffer, nlattr{static_cast<std::uint16_t>(sizeof(nlattr) + payload.size()), type}, payload);
  }
  return buffer;
}

std::string text_of(NetlinkBytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// "1=abc 2=" and, when the walk says that something is wrong, "!" at the end.
std::string walked(NetlinkBytes bytes) {
  std::string text;
  const bool fine = each_netlink_attribute(bytes, [&](int type, NetlinkBytes payload) {
    text += std::to_string(type) + "=" + text_of(payload) + " ";
    return true;
  });
  return text + (fine ? "" : "!");
}

void set_length(Buffer& buffer, std::size_t at, std::uint16_t length) {
  std::memcpy(buffer.data() + at, &length, sizeof length);
}

TEST(NetlinkAttributes, AreWalkedWithTheirPadding) {
  const Buffer buffer = attributes({{1, "abc"}, {2, ""}, {3 | NLA_F_NESTED, "defgh"}});
  EXPECT_EQ(walked(buffer), "1=abc 2= 3=defgh ");
  EXPECT_EQ(text_of(find_netlink_attribute(buffer, 3)), "defgh");
  EXPECT_TRUE(find_netlink_attribute(buffer, 4).empty());
  EXPECT_EQ(walked({}), "");
}

TEST(NetlinkAttributes, AWrongLengthEndsTheWalk) {
  for (const std::uint16_t length : {0, 1, 3, 13, 0xffff}) {
    Buffer buffer = attributes({{1, "abc"}, {2, "defgh"}});
    set_length(buffer, 8, length);
    EXPECT_EQ(walked(buffer), "1=abc !") << length;
    EXPECT_TRUE(find_netlink_attribute(buffer, 2).empty()) << length;
    EXPECT_EQ(text_of(find_netlink_attribute(buffer, 1)), "abc") << length;
  }
}

TEST(NetlinkAttributes, AreNeverReadBehindTheEnd) {
  const Buffer whole = attributes({{1, "abc"}, {2, "defgh"}});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const Buffer cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));  // ends where its memory does
    const bool first = size >= 7;
    const bool second = size >= 17;  // the rest is padding
    EXPECT_EQ(walked(cut).starts_with("1=abc "), first) << size;
    EXPECT_EQ(walked(cut).find("2=defgh") != std::string::npos, second) << size;
    EXPECT_EQ(walked(cut).ends_with("!"), (size >= 4 && !first) || (size >= 12 && !second)) << size;
  }
}

TEST(NetlinkAttributes, StopWhenAsked) {
  unsigned seen = 0;
  EXPECT_FALSE(each_netlink_attribute(attributes({{1, "a"}, {2, "b"}}), [&](int, NetlinkBytes) {
    ++seen;
    return false;
  }));
  EXPECT_EQ(seen, 1U);
}

Buffer messages(std::initializer_list<std::pair<std::uint16_t, std::string>> list) {
  Buffer buffer;
  for (const auto& [type, body] : list) {
    nlmsghdr head{};
    head.nlmsg_len = static_cast<std::uint32_t>(sizeof head + body.size());
    head.nlmsg_type = type;
    append(buffer, head, body);
  }
  return buffer;
}

TEST(NetlinkMessages, AreWalkedAndTheBrokenOneIsNamed) {
  const Buffer whole = messages({{16, "abcde"}, {20, ""}});
  std::string seen;
  const auto walk = [&](NetlinkBytes bytes) {
    seen.clear();
    return each_netlink_message(bytes, [&](const nlmsghdr& head, NetlinkBytes body) {
      seen += std::to_string(head.nlmsg_type) + "=" + text_of(body) + " ";
      return true;
    });
  };
  EXPECT_FALSE(walk(whole));
  EXPECT_EQ(seen, "16=abcde 20= ");
  for (const std::uint32_t length : {0U, 15U, 17U, 0xffffffffU}) {
    Buffer wrong = whole;
    std::memcpy(wrong.data() + 24, &length, sizeof length);
    const auto broken = walk(wrong);
    ASSERT_TRUE(broken) << length;
    EXPECT_EQ(broken->nlmsg_type, 20) << length;
    EXPECT_EQ(seen, "16=abcde ") << length;
  }
  for (std::size_t size = 25; size < whole.size(); ++size) {
    const Buffer cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    const auto broken = walk(cut);
    ASSERT_TRUE(broken) << size;
    EXPECT_EQ(broken->nlmsg_type, 0) << size;
  }
}

TEST(NetlinkMessages, StopWhenAsked) {
  Buffer buffer = messages({{16, "a"}, {20, "b"}});
  buffer.resize(buffer.size() + 3);  // no message: nobody looks there any more
  unsigned seen = 0;
  EXPECT_FALSE(each_netlink_message(buffer, [&](const nlmsghdr& head, NetlinkBytes) {
    EXPECT_EQ(head.nlmsg_type, 16);
    ++seen;
    return false;
  }));
  EXPECT_EQ(seen, 1U);
}

}  // namespace
}  // namespace sluice
