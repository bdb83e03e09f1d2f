#include "control/netlink/source_rules.h"

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../tests/support/net_namespace.h"

namespace sluice::control::netlink {
namespace {

using test::NetNamespace;
using Chains = std::vector<std::string>;

TEST(SourceRules, AreFoundInEveryTable) {
  if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
  NetNamespace space;
  const auto inside = space.enter();
  EXPECT_EQ(find_source_rules().value(), Chains{});
  if (space.run("nft add table inet fw 2> /dev/null") != 0) GTEST_SKIP() << "needs nft and a kernel with nftables";
  ASSERT_EQ(space.run("nft add chain inet fw pre '{ type filter hook prerouting priority raw; }' && "
                      "nft add rule inet fw pre ip6 daddr 2001:db8::1 fib daddr type local accept && "
                      "nft add chain inet fw other && nft add rule inet fw other tcp dport 22 accept"),
            0);
  EXPECT_EQ(find_source_rules().value(), Chains{});
  ASSERT_EQ(space.run("nft add rule inet fw pre meta nfproto ipv6 fib saddr . iif oif missing drop && "
                      "nft add rule inet fw pre fib saddr oif missing drop && nft add table ip6 six && "
                      "nft add chain ip6 six back && nft add rule ip6 six back fib saddr . iif oif 0 drop"),
            0);
  EXPECT_EQ(find_source_rules().value(), (Chains{"table inet fw chain pre", "table ip6 six chain back"}));
}

// Not as if there were none. In a process of its own, which loses the privilege.
TEST(SourceRules, WithoutThePrivilegeItIsSaidThatTheyAreNotKnown) {
  if (!NetNamespace::permitted()) GTEST_SKIP() << NetNamespace::skip_line;
  const pid_t child = fork();
  if (child == 0) {
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    __user_cap_data_struct sets[_LINUX_CAPABILITY_U32S_3]{};
    if (syscall(SYS_capget, &header, sets) != 0) _exit(1);
    sets[CAP_TO_INDEX(CAP_NET_ADMIN)].effective &= ~CAP_TO_MASK(CAP_NET_ADMIN);
    if (syscall(SYS_capset, &header, sets) != 0) _exit(2);
    const auto rules = find_source_rules();
    _exit(!rules && rules.error().message.find("cannot be read") != std::string::npos &&
                  rules.error().message.find("CAP_NET_ADMIN") != std::string::npos
              ? 0
              : 3);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SourceRules, AnyBytesAreSafe) {
  Chains chains;
  std::vector<std::byte> bytes(64);
  for (unsigned length = 0; length <= bytes.size(); ++length) {
    for (unsigned first = 0; first < 256; ++first) {
      std::fill(bytes.begin(), bytes.end(), static_cast<std::byte>(first));
      bytes[0] = static_cast<std::byte>(length);
      bytes[1] = bytes[2] = bytes[3] = {};
      bytes[4] = std::byte{6};  // NFT_MSG_NEWRULE
      bytes[5] = std::byte{10};
      add_source_rules(NetlinkBytes(bytes).first(length), chains);
    }
  }
  EXPECT_TRUE(chains.empty());
}

}  // namespace
}  // namespace sluice::control::netlink
