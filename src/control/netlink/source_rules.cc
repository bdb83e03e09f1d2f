#include "control/netlink/source_rules.h"

#include <arpa/inet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nf_tables_compat.h>
#include <linux/netfilter/nfnetlink.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

namespace sluice::control::netlink {
namespace {

constexpr std::uint16_t new_rule = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_NEWRULE;
constexpr std::uint16_t get_rule = NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETRULE;

std::string_view text_of(NetlinkBytes payload) {
  const auto* text = reinterpret_cast<const char*>(payload.data());
  return {text, strnlen(text, payload.size())};
}

std::string_view family_name(std::uint8_t family) {
  switch (family) {
    case NFPROTO_INET:
      return "inet";
    case NFPROTO_IPV4:
      return "ip";
    case NFPROTO_IPV6:
      return "ip6";
    case NFPROTO_NETDEV:
      return "netdev";
    case NFPROTO_BRIDGE:
      return "bridge";
    default:
      return "of another family";
  }
}

bool checks_source(NetlinkBytes expression) {
  const std::string_view name = text_of(find_netlink_attribute(expression, NFTA_EXPR_NAME));
  const NetlinkBytes data = find_netlink_attribute(expression, NFTA_EXPR_DATA);
  if (name == "match") return text_of(find_netlink_attribute(data, NFTA_MATCH_NAME)) == "rpfilter";
  std::uint32_t flags = 0;
  return name == "fib" && load_front(find_netlink_attribute(data, NFTA_FIB_FLAGS), flags) &&
         (ntohl(flags) & NFTA_FIB_F_SADDR) != 0;
}

}  // namespace

void add_source_rules(NetlinkBytes messages, std::vector<std::string>& chains) {
  each_netlink_message(messages, [&](const nlmsghdr& header, NetlinkBytes body) {
    nfgenmsg generic{};
    if (header.nlmsg_type != new_rule || !load_front(body, generic)) return true;
    const NetlinkBytes attributes = behind(body, sizeof generic);
    bool found = false;
    each_netlink_attribute(find_netlink_attribute(attributes, NFTA_RULE_EXPRESSIONS),
                           [&](int, NetlinkBytes expression) { return !(found = checks_source(expression)); });
    if (!found) return true;
    std::string chain = "table " + std::string(family_name(generic.nfgen_family)) + " " +
                        std::string(text_of(find_netlink_attribute(attributes, NFTA_RULE_TABLE))) + " chain " +
                        std::string(text_of(find_netlink_attribute(attributes, NFTA_RULE_CHAIN)));
    if (std::ranges::find(chains, chain) == chains.end()) chains.push_back(std::move(chain));
    return true;
  });
}

Expected<std::vector<std::string>> find_source_rules() {
  struct Closer {
    int fd;
    ~Closer() { close(fd); }
  };
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  if (fd < 0) return std::vector<std::string>{};  // no netfilter
  const Closer closer{fd};
  const timeval patience{2, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const auto failure = [] {
    return make_error(
        std::string("the rules of nftables cannot be read, and whether they check sources is not known: ") +
        std::strerror(errno) + (errno == EPERM || errno == EACCES ? " (CAP_NET_ADMIN)" : ""));
  };
  struct {
    nlmsghdr header;
    nfgenmsg generic;
  } request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = get_rule;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.generic.nfgen_family = NFPROTO_UNSPEC;
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  if (sendto(fd, &request, sizeof request, 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel) < 0)
    return failure();
  std::vector<std::string> chains;
  std::vector<std::byte> buffer(64 << 10);
  for (bool done = false; !done;) {
    const ssize_t received = recv(fd, buffer.data(), buffer.size(), 0);
    if (received < 0) return failure();
    const NetlinkBytes answers = NetlinkBytes(buffer).first(static_cast<std::size_t>(received));
    add_source_rules(answers, chains);
    int refused = 0;
    each_netlink_message(answers, [&](const nlmsghdr& header, NetlinkBytes body) {
      nlmsgerr error{};
      if (header.nlmsg_type == NLMSG_ERROR && load_front(body, error)) refused = -error.error;
      return !(done = header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR);
    });
    // Any other is the answer of a kernel without nf_tables.
    if (refused == EPERM || refused == EACCES) {
      errno = refused;
      return failure();
    }
  }
  return chains;
}

}  // namespace sluice::control::netlink
