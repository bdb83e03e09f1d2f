#include "function/srtp/rtsp/local_delivery.h"

#include <linux/fib_rules.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

#include "base/netlink.h"
#include "base/netlink_request.h"
#include "function/srtp/rtsp/rule_order.h"

namespace sluice::function::rtsp {
namespace {

constexpr unsigned most_left_over = 65536;
constexpr unsigned looks_to_be_well = 10;

int kernel_family(int family) {
  return family == 4 ? AF_INET : AF_INET6;
}

fib_rule_hdr rule_header(int family) {
  fib_rule_hdr rule{};
  rule.family = static_cast<std::uint8_t>(kernel_family(family));
  rule.action = FR_ACT_TO_TBL;
  return rule;
}

int add_route(int fd, int family, std::uint32_t table, bool add, std::string* says = nullptr) {
  rtmsg route{};
  route.rtm_family = static_cast<std::uint8_t>(kernel_family(family));
  route.rtm_type = RTN_LOCAL;
  route.rtm_scope = family == 4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
  route.rtm_protocol = RTPROT_STATIC;
  const auto type = static_cast<std::uint16_t>(add ? RTM_NEWROUTE : RTM_DELROUTE);
  NetlinkRequest request(type, NLM_F_ACK | (add ? NLM_F_CREATE | NLM_F_EXCL : 0), route);
  request.attribute(RTA_TABLE, table).attribute(RTA_OIF, if_nametoindex("lo"));
  return ask(fd, request, says);
}

int add_rule(int fd, const function::RtspOptions& options, const std::string& twin, const packet::IpPrefix& servers,
             std::uint16_t port, bool to_server, std::string& says) {
  fib_rule_hdr rule = rule_header(servers.address.family);
  (to_server ? rule.dst_len : rule.src_len) = servers.length;
  NetlinkRequest request(RTM_NEWRULE, NLM_F_ACK | NLM_F_CREATE | NLM_F_EXCL, rule);
  const fib_rule_port_range ports{port, port};
  request.attribute(FRA_TABLE, options.table)
      .attribute(FRA_PRIORITY, options.priority)
      .attribute(FRA_IIFNAME, twin)
      .attribute(FRA_IP_PROTO, static_cast<std::uint8_t>(IPPROTO_TCP))
      .attribute(to_server ? FRA_DPORT_RANGE : FRA_SPORT_RANGE, ports);
  if (servers.length != 0) {
    request.attribute(to_server ? FRA_DST : FRA_SRC, servers.address.bytes.data(), servers.address.bits() / 8);
  }
  return ask(fd, request, &says);
}

std::string kernel_says(const std::string& words) {
  return words.empty() ? "" : " (the kernel: " + words + ")";
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
  const std::string table = std::to_string(options.table);
  auto lock =
      NamespaceLock::take("sluice/rtsp-table/" + table, "[srtp.rtsp] table: the kernel's routing table " + table,
                          "each would take the other's rules away; stop that one, or give this one a table of "
                          "its own");
  if (!lock) return tl::unexpected(lock.error());
  std::unique_ptr<LocalDelivery> made(new LocalDelivery(options, twins, std::move(*lock)));
  if (auto ok = made->open(); !ok) return tl::unexpected(ok.error());
  made->take_away();
  for (const Made& some : {made->make_routes(), made->make_rules()}) {
    if (!some.result) return tl::unexpected(some.result.error());
  }
  made->look();
  return made;
}

Expected<void> LocalDelivery::open() {
  fd_ = Fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  changes_ = Fd(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
  // What has no address of its own hears no notifications.
  sockaddr_nl own{};
  own.nl_family = AF_NETLINK;
  bool done = fd_ && changes_ && bind(changes_.get(), reinterpret_cast<const sockaddr*>(&own), sizeof own) == 0;
  for (const int group : {RTNLGRP_IPV4_RULE, RTNLGRP_IPV6_RULE}) {
    done = done && setsockopt(changes_.get(), SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof group) == 0;
  }
  if (fd_) hear_reasons(fd_.get());
  if (!done) return make_error(std::string("[srtp.rtsp] cannot open a netlink socket: ") + std::strerror(errno));
  return {};
}

LocalDelivery::Made LocalDelivery::make_routes() {
  Made made;
  for (const int family : {4, 6}) {
    const auto is_of_it = [&](const packet::IpPrefix& servers) { return servers.address.family == family; };
    if (std::ranges::none_of(options_.servers, is_of_it)) continue;
    std::string says;
    const int error = add_route(fd_.get(), family, options_.table, true, &says);
    if (error == 0) ++made.count;
    if (error == 0 || error == EEXIST) continue;
    made.result = make_error("[srtp.rtsp] table: cannot add a local route to table " + std::to_string(options_.table) +
                             ": " + why(error) + kernel_says(says));
    return made;
  }
  return made;
}

LocalDelivery::Made LocalDelivery::make_rules() {
  Made made;
  for (const packet::IpPrefix& servers : options_.servers) {
    for (const std::string& twin : twins_) {
      for (const std::uint16_t port : options_.ports) {
        for (const bool to_server : {true, false}) {
          std::string says;
          const int error = add_rule(fd_.get(), options_, twin, servers, port, to_server, says);
          if (error == 0) ++made.count;
          if (error == 0 || error == EEXIST) continue;
          made.result = make_error("[srtp.rtsp] servers: cannot add a rule for " + servers.str() + " on " + twin +
                                   ": " + why(error) + kernel_says(says));
          return made;
        }
      }
    }
  }
  return made;
}

// Our own changes are among them: the look after one finds nothing to do.
bool LocalDelivery::rules_changed() {
  std::byte bytes[8192];
  bool changed = false;
  for (;;) {
    const ssize_t got = recv(changes_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got >= 0 || errno == ENOBUFS) {
      changed = true;
    } else if (errno != EINTR) {
      return changed;
    }
  }
}

void LocalDelivery::look() {
  Made made = make_routes();
  if (rules_changed() || look_again_ || !missing_.empty()) {
    look_again_ = false;
    Made rules = make_rules();
    made.count += rules.count;
    if (made.result) made.result = std::move(rules.result);
    look_for_others();
  }
  announce(made);
}

void LocalDelivery::announce(const Made& made) {
  if (made.count != 0) {
    restored_.fetch_add(made.count, std::memory_order_relaxed);
    spdlog::warn(
        "rtsp: {} of the kernel's rules and routes that bring RTSP to the proxy (ip rule, table {}) were gone and are "
        "there again: something on this host takes away what it has not made",
        made.count, options_.table);
  }
  const std::string missing = made.result ? "" : made.result.error().message;
  if (missing != missing_ && !missing.empty()) spdlog::error("{}: RTSP does not reach the proxy", missing);
  missing_ = missing;
  looks_since_gone_ = made.count != 0 ? 0 : looks_since_gone_ + 1;
  std::string ailment = missing_;
  if (ailment.empty() && restored() != 0 && looks_since_gone_ < looks_to_be_well) {
    ailment = "rtsp: rules of the kernel's for the proxy were gone a moment ago";
  }
  if (!others_.empty()) {
    ailment += std::string(ailment.empty() ? "" : ", ") + "rtsp: the rule '" + others_ +
               "' of this host comes before the proxy's (set [srtp.rtsp] priority below it)";
  }
  const std::lock_guard lock(ailment_mutex_);
  ailment_ = std::move(ailment);
}

std::string LocalDelivery::ailment() const {
  const std::lock_guard lock(ailment_mutex_);
  return ailment_;
}

// The first is enough to say what to do.
void LocalDelivery::look_for_others() {
  std::string others;
  for (const int family : {4, 6}) {
    port::each_rule(fd_.get(), family, [&](const port::KernelRule& rule) {
      if (others.empty() && comes_first(rule, options_, twins_)) others = rule.str();
    });
  }
  if (others != others_ && !others.empty()) {
    spdlog::warn(
        "rtsp: the rule '{}' of this host (ip rule) comes before the proxy's, of priority {}: what it takes of RTSP "
        "does not reach the proxy and is dropped (srtp_rtsp_past_proxy). Set [srtp.rtsp] priority below it",
        others, options_.priority);
  }
  others_ = others;
}

void LocalDelivery::take_away() {
  for (const int family : {4, 6}) {
    for (unsigned i = 0; i < most_left_over; ++i) {
      NetlinkRequest request(RTM_DELRULE, NLM_F_ACK, rule_header(family));
      request.attribute(FRA_TABLE, options_.table);
      if (ask(fd_.get(), request) != 0) break;
    }
    (void)add_route(fd_.get(), family, options_.table, false);
  }
}

LocalDelivery::~LocalDelivery() {
  if (fd_) take_away();
}

}  // namespace sluice::function::rtsp
