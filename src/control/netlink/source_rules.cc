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
#include <optional>
#include <string_view>

#include "base/netlink_request.h"

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

// An expression that is not known hides none beside it.
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

namespace {

// Nothing: rules changed meanwhile, and some may be missing. Else errno of a failure, or 0.
std::optional<int> dump_source_rules(int fd, std::vector<std::string>& chains) {
  if (!send_request(fd, NetlinkRequest(get_rule, NLM_F_DUMP, nfgenmsg{NFPROTO_UNSPEC, NFNETLINK_V0, 0}))) {
    return errno;
  }
  std::vector<std::byte> buffer(64 << 10);
  bool interrupted = false;
  for (bool done = false; !done;) {
    const ssize_t received = recv(fd, buffer.data(), buffer.size(), 0);
    if (received < 0 && errno == EINTR) continue;
    if (received < 0) return errno;
    const NetlinkBytes answers = NetlinkBytes(buffer).first(static_cast<std::size_t>(received));
    add_source_rules(answers, chains);
    int refused = 0;
    each_netlink_message(answers, [&](const nlmsghdr& header, NetlinkBytes body) {
      nlmsgerr error{};
      if (header.nlmsg_type == NLMSG_ERROR && load_front(body, error)) refused = -error.error;
      interrupted = interrupted || (header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      return !(done = header.nlmsg_type == NLMSG_DONE || header.nlmsg_type == NLMSG_ERROR);
    });
    // Any other is the answer of a kernel without nf_tables.
    if (refused == EPERM || refused == EACCES) return refused;
  }
  if (interrupted) return std::nullopt;
  return 0;
}

}  // namespace

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
  constexpr unsigned tries = 5;
  int error = EINTR;
  for (unsigned i = 0; i < tries; ++i) {
    std::vector<std::string> chains;
    const auto result = dump_source_rules(fd, chains);
    if (result == 0) return chains;
    if (result) {
      error = *result;
      break;
    }
  }
  return make_error(std::string("the rules of nftables cannot be read, and whether they check sources is not known: ") +
                    std::strerror(error) + (error == EPERM || error == EACCES ? " (CAP_NET_ADMIN)" : ""));
}

}  // namespace sluice::control::netlink
