#include "port/host_isolation.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/ethtool.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <memory>
#include <utility>
#include <vector>

#include "base/netlink.h"
#include "packet/ip_address.h"

namespace sluice::port {
namespace {

struct StopBatch {
  void operator()(mnl_nlmsg_batch* batch) const { mnl_nlmsg_batch_stop(batch); }
};

constexpr std::size_t most_of_a_batch = 4096;

// A table that ends with this process, and in it a chain that drops what `interface` brings.
std::vector<char> drop_ingress_batch(const std::string& interface) {
  const std::string table = "sluice-" + interface;
  std::vector<char> bytes(2 * most_of_a_batch);  // libmnl lets a message end behind the first half
  const std::unique_ptr<mnl_nlmsg_batch, StopBatch> batch(mnl_nlmsg_batch_start(bytes.data(), most_of_a_batch));
  const auto add = [&](int type, unsigned flags, std::uint8_t family, std::uint16_t resource, auto attributes) {
    nlmsghdr* const message = mnl_nlmsg_put_header(mnl_nlmsg_batch_current(batch.get()));
    message->nlmsg_type = static_cast<std::uint16_t>(type);
    message->nlmsg_flags = static_cast<std::uint16_t>(NLM_F_REQUEST | flags);
    const nfgenmsg generic{family, NFNETLINK_V0, htons(resource)};
    std::memcpy(mnl_nlmsg_put_extra_header(message, sizeof generic), &generic, sizeof generic);
    attributes(message);
    mnl_nlmsg_batch_next(batch.get());
  };
  const auto mark = [&](int type) { add(type, 0, AF_UNSPEC, NFNL_SUBSYS_NFTABLES, [](nlmsghdr*) {}); };
  const auto create = [&](int operation, auto attributes) {
    add(NFNL_SUBSYS_NFTABLES << 8 | operation, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, NFPROTO_NETDEV, 0, attributes);
  };
  mark(NFNL_MSG_BATCH_BEGIN);
  create(NFT_MSG_NEWTABLE, [&](nlmsghdr* message) {
    mnl_attr_put_strz(message, NFTA_TABLE_NAME, table.c_str());
    mnl_attr_put_u32(message, NFTA_TABLE_FLAGS, htonl(NFT_TABLE_F_OWNER));
  });
  create(NFT_MSG_NEWCHAIN, [&](nlmsghdr* message) {
    mnl_attr_put_strz(message, NFTA_CHAIN_TABLE, table.c_str());
    mnl_attr_put_strz(message, NFTA_CHAIN_NAME, "ingress");
    nlattr* const hook = mnl_attr_nest_start(message, NFTA_CHAIN_HOOK);
    mnl_attr_put_u32(message, NFTA_HOOK_HOOKNUM, htonl(NF_NETDEV_INGRESS));
    mnl_attr_put_u32(message, NFTA_HOOK_PRIORITY, htonl(static_cast<std::uint32_t>(-1000)));
    mnl_attr_put_strz(message, NFTA_HOOK_DEV, interface.c_str());
    mnl_attr_nest_end(message, hook);
    mnl_attr_put_u32(message, NFTA_CHAIN_POLICY, htonl(NF_DROP));
    mnl_attr_put_strz(message, NFTA_CHAIN_TYPE, "filter");
  });
  mark(NFNL_MSG_BATCH_END);
  bytes.resize(mnl_nlmsg_batch_size(batch.get()));
  return bytes;
}

// Reads answers until both messages of the batch are acknowledged; 0, or the errno of the first that was refused.
int batch_error(int socket) {
  int error = 0;
  for (int acknowledged = 0; error == 0 && acknowledged < 2;) {
    std::array<std::byte, 8192> buffer;
    const ssize_t received = recv(socket, buffer.data(), buffer.size(), 0);
    if (received < 0) return errno;
    const NetlinkBytes answers = NetlinkBytes(buffer).first(static_cast<std::size_t>(received));
    const auto broken = each_netlink_message(answers, [&](const nlmsghdr& header, NetlinkBytes body) {
      nlmsgerr answer{};
      if (header.nlmsg_type != NLMSG_ERROR) return true;
      if (!load_front(body, answer)) return (error = EBADMSG) == 0;
      // A missing privilege refuses the whole batch; only a table of another process is refused by itself.
      const bool of_another = answer.error == -EPERM && answer.msg.nlmsg_type >> 8 == NFNL_SUBSYS_NFTABLES;
      error = of_another ? EEXIST : -answer.error;
      ++acknowledged;
      return error == 0;
    });
    if (broken) return EBADMSG;
  }
  return error;
}

// The socket that owns the table, or a negative errno.
int drop_ingress(const std::string& interface) {
  const int socket = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  if (socket < 0) return -errno;
  const timeval patience{2, 0};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  const std::vector<char> batch = drop_ingress_batch(interface);
  sockaddr_nl kernel{};
  kernel.nl_family = AF_NETLINK;
  const auto sent = sendto(socket, batch.data(), batch.size(), 0, reinterpret_cast<sockaddr*>(&kernel), sizeof kernel);
  const int error = sent < 0 ? errno : batch_error(socket);
  if (error == 0) return socket;
  close(socket);
  return -error;
}

std::string conf(const std::string& family, const std::string& interface, const std::string& key) {
  return "/proc/sys/net/" + family + "/conf/" + interface + "/" + key;
}

// An ethtool command that reads or sets one number; false when the driver does not know it.
bool ethtool(const std::string& interface, std::uint32_t command, std::uint32_t& value) {
  const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) return false;
  ethtool_value argument{command, value};
  ifreq request{};
  interface.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_data = reinterpret_cast<char*>(&argument);
  const bool ok = ioctl(control, SIOCETHTOOL, &request) == 0;
  close(control);
  value = argument.data;
  return ok;
}

bool set_flag(const std::string& interface, std::uint32_t read, std::uint32_t write, std::uint32_t mask, bool on) {
  std::uint32_t value = 0;
  if (!ethtool(interface, read, value) || ((value & mask) != 0) == on) return false;
  value = on ? value | mask : value & ~mask;
  return ethtool(interface, write, value);
}

}  // namespace

Expected<HostIsolation> HostIsolation::open(const std::string& interface, Use use) {
  const unsigned index = if_nametoindex(interface.c_str());
  if (index == 0) return make_error("there is no interface '" + interface + "'");
  HostIsolation guard(interface, index);
  if (use == Use::listens) {
    guard.turn_off_receive_merging();
    return guard;
  }
  const int owner = drop_ingress(interface);
  if (owner == -EPERM || owner == -EACCES) {
    return make_error("no permission to keep the kernel away from '" + interface +
                      "': run as root or with CAP_NET_ADMIN");
  }
  if (owner == -EEXIST) {
    return make_error("another Sluice is at work on '" + interface + "' (nft table netdev sluice-" + interface + ")");
  }
  guard.nftables_ = owner;
  if (!guard.drops_ingress()) {
    guard.notes_.push_back("the kernel has no nftables ingress hook (" + std::string(std::strerror(-owner)) +
                           "): frames that arrive on '" + interface + "' are kept from it by sysctl only");
  }
  guard.set("ipv4", "rp_filter", "1");
  guard.set("ipv4", "arp_ignore", "8");
  guard.set("ipv4", "forwarding", "0");
  guard.note_addresses(use);
  guard.set("ipv6", "disable_ipv6", "1");
  guard.turn_off_receive_merging();
  return guard;
}

// A key that does not exist (no IPv6 in this kernel) needs no guard.
void HostIsolation::set(const std::string& family, const std::string& key, const std::string& value) {
  const std::string path = conf(family, interface_, key);
  std::string before;
  if (!(std::ifstream(path) >> before) || before == value) return;
  std::ofstream file(path);
  if (file << value << std::flush) {
    saved_.push_back({family, key, before});
  } else {
    notes_.push_back("cannot write " + value + " to " + path + ": is /proc/sys read-only?");
  }
}

void HostIsolation::turn_off_receive_merging() {
  gro_was_on_ = set_flag(interface_, ETHTOOL_GGRO, ETHTOOL_SGRO, 1, false);
  lro_was_on_ = set_flag(interface_, ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_LRO, false);
}

void HostIsolation::restore_receive_merging() {
  if (gro_was_on_) set_flag(interface_, ETHTOOL_GGRO, ETHTOOL_SGRO, 1, true);
  if (lro_was_on_) set_flag(interface_, ETHTOOL_GFLAGS, ETHTOOL_SFLAGS, ETH_FLAG_LRO, true);
}

// Link-local IPv6 addresses go away with disable_ipv6 and come back by themselves; all others would be lost or answered
// twice.
void HostIsolation::note_addresses(Use use) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return;
  for (const ifaddrs* entry = all; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || interface_ != entry->ifa_name) continue;
    packet::IpAddress address;
    if (entry->ifa_addr->sa_family == AF_INET) {
      address = packet::IpAddress::from_bytes(4, &reinterpret_cast<const sockaddr_in*>(entry->ifa_addr)->sin_addr);
    } else if (entry->ifa_addr->sa_family == AF_INET6) {
      const auto& v6 = reinterpret_cast<const sockaddr_in6*>(entry->ifa_addr)->sin6_addr;
      if (IN6_IS_ADDR_LINKLOCAL(&v6)) continue;
      address = packet::IpAddress::from_bytes(6, &v6);
    }
    if (address.empty()) continue;
    notes_.push_back(
        "'" + interface_ + "' still has the address " + address.str() + ": " +
        (use == Use::twin ? "move it to the TAP twin" : "while Sluice runs nothing that arrives here comes to it"));
  }
  freeifaddrs(all);
}

HostIsolation::HostIsolation(HostIsolation&& other) noexcept {
  *this = std::move(other);
}

HostIsolation& HostIsolation::operator=(HostIsolation&& other) noexcept {
  std::swap(interface_, other.interface_);
  std::swap(index_, other.index_);
  std::swap(nftables_, other.nftables_);
  std::swap(saved_, other.saved_);
  std::swap(gro_was_on_, other.gro_was_on_);
  std::swap(lro_was_on_, other.lro_was_on_);
  std::swap(notes_, other.notes_);
  return *this;
}

HostIsolation::~HostIsolation() {
  // The interface may be gone by now, whatever has its name; then there is nothing to restore.
  if (char name[IF_NAMESIZE]; index_ != 0 && if_indextoname(index_, name) != nullptr) {
    interface_ = name;
    for (auto setting = saved_.rbegin(); setting != saved_.rend(); ++setting) {
      std::ofstream(conf(setting->family, interface_, setting->key)) << setting->value << std::flush;
    }
    restore_receive_merging();
  }
  if (nftables_ >= 0) close(nftables_);
}

}  // namespace sluice::port
