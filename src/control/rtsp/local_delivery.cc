#include "control/rtsp/local_delivery.h"

#include <linux/fib_rules.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

namespace sluice::control::rtsp {
namespace {

constexpr unsigned most_left_over = 65536;

// A request of rtnetlink, attribute by attribute.
class Request {
 public:
  template <typename Body>
  Request(std::uint16_t type, std::uint16_t flags, const Body& body) {
    header_.nlmsg_type = type;
    header_.nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    append(&header_, sizeof header_);
    append(&body, sizeof body);
  }
  Request& attribute(std::uint16_t type, const void* value, std::size_t size) {
    const nlattr head{static_cast<std::uint16_t>(sizeof(nlattr) + size), type};
    append(&head, sizeof head);
    append(value, size);
    return *this;
  }
  template <typename T>
  Request& attribute(std::uint16_t type, const T& value) {
    return attribute(type, &value, sizeof value);
  }
  Request& attribute(std::uint16_t type, const std::string& text) {
    return attribute(type, text.c_str(), text.size() + 1);
  }
  std::span<const std::byte> bytes() {
    header_.nlmsg_len = static_cast<std::uint32_t>(bytes_.size());
    std::memcpy(bytes_.data(), &header_, sizeof header_);
    return bytes_;
  }

 private:
  void append(const void* from, std::size_t size) {
    const auto* const first = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), first, first + size);
    bytes_.resize((bytes_.size() + 3) & ~std::size_t{3});
  }
  nlmsghdr header_{};
  std::vector<std::byte> bytes_;
};

// 0, or errno as the kernel answers.
int ask(int fd, Request& request) {
  const auto bytes = request.bytes();
  if (send(fd, bytes.data(), bytes.size(), 0) < 0) return errno;
  struct {
    nlmsghdr header;
    nlmsgerr error;
    std::byte rest[4096];
  } answer{};
  const ssize_t got = recv(fd, &answer, sizeof answer, 0);
  if (got < 0) return errno;
  if (static_cast<std::size_t>(got) < sizeof answer.header + sizeof answer.error) return EBADMSG;
  return answer.header.nlmsg_type == NLMSG_ERROR ? -answer.error.error : EBADMSG;
}

int kernel_family(int family) {
  return family == 4 ? AF_INET : AF_INET6;
}

fib_rule_hdr rule_header(int family) {
  fib_rule_hdr rule{};
  rule.family = static_cast<std::uint8_t>(kernel_family(family));
  rule.action = FR_ACT_TO_TBL;
  return rule;
}

int add_route(int fd, int family, std::uint32_t table, bool add) {
  rtmsg route{};
  route.rtm_family = static_cast<std::uint8_t>(kernel_family(family));
  route.rtm_type = RTN_LOCAL;
  route.rtm_scope = family == 4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
  route.rtm_protocol = RTPROT_STATIC;
  const auto type = static_cast<std::uint16_t>(add ? RTM_NEWROUTE : RTM_DELROUTE);
  Request request(type, add ? NLM_F_CREATE | NLM_F_REPLACE : 0, route);
  request.attribute(RTA_TABLE, table).attribute(RTA_OIF, if_nametoindex("lo"));
  return ask(fd, request);
}

int add_rule(int fd, const function::RtspOptions& options, const std::string& twin, const packet::IpPrefix& servers,
             std::uint16_t port, bool to_server) {
  fib_rule_hdr rule = rule_header(servers.address.family);
  (to_server ? rule.dst_len : rule.src_len) = servers.length;
  Request request(RTM_NEWRULE, NLM_F_CREATE | NLM_F_EXCL, rule);
  const fib_rule_port_range ports{port, port};
  request.attribute(FRA_TABLE, options.table)
      .attribute(FRA_PRIORITY, options.priority)
      .attribute(FRA_IIFNAME, twin)
      .attribute(FRA_IP_PROTO, static_cast<std::uint8_t>(IPPROTO_TCP))
      .attribute(to_server ? FRA_DPORT_RANGE : FRA_SPORT_RANGE, ports);
  if (servers.length != 0) {
    request.attribute(to_server ? FRA_DST : FRA_SRC, servers.address.bytes.data(), servers.address.bits() / 8);
  }
  return ask(fd, request);
}

std::string why(int error) {
  switch (error) {
    case EPERM:
    case EACCES:
      return "no permission: run as root or with CAP_NET_ADMIN";
    case EAFNOSUPPORT:
    case EOPNOTSUPP:
      return "this kernel has no rules for routing of that family (CONFIG_IP_MULTIPLE_TABLES, "
             "CONFIG_IPV6_MULTIPLE_TABLES)";
    case EINVAL:
      return "this kernel does not know rules by ports (4.17 or later does)";
    default:
      return std::strerror(error);
  }
}

}  // namespace

Expected<std::unique_ptr<LocalDelivery>> LocalDelivery::install(const function::RtspOptions& options,
                                                                const std::vector<std::string>& twins) {
  const int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  if (fd < 0) return make_error(std::string("[srtp.rtsp] cannot open a netlink socket: ") + std::strerror(errno));
  std::unique_ptr<LocalDelivery> made(new LocalDelivery(fd, options.table));
  made->take_away();
  for (const packet::IpPrefix& servers : options.servers) {
    if (const int error = add_route(fd, servers.address.family, options.table, true); error != 0) {
      return make_error("[srtp.rtsp] table: cannot add a local route to table " + std::to_string(options.table) + ": " +
                        why(error));
    }
    for (const std::string& twin : twins) {
      for (const std::uint16_t port : options.ports) {
        for (const bool to_server : {true, false}) {
          const int error = add_rule(fd, options, twin, servers, port, to_server);
          if (error == 0 || error == EEXIST) continue;
          return make_error("[srtp.rtsp] servers: cannot add a rule for " + servers.str() + " on " + twin + ": " +
                            why(error));
        }
      }
    }
  }
  return made;
}

void LocalDelivery::take_away() {
  for (const int family : {4, 6}) {
    for (unsigned i = 0; i < most_left_over; ++i) {
      Request request(RTM_DELRULE, 0, rule_header(family));
      request.attribute(FRA_TABLE, table_);
      if (ask(fd_, request) != 0) break;
    }
    (void)add_route(fd_, family, table_, false);
  }
}

LocalDelivery::~LocalDelivery() {
  take_away();
  close(fd_);
}

}  // namespace sluice::control::rtsp
