#include "control/twin_addresses.h"

#include <ifaddrs.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "base/netlink_request.h"

namespace sluice::control {
namespace {

struct RequestSocket {
  RequestSocket() = default;
  ~RequestSocket() {
    if (fd >= 0) close(fd);
  }
  RequestSocket(const RequestSocket&) = delete;
  RequestSocket& operator=(const RequestSocket&) = delete;
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);  // below 0: errno says why
};

// 0, or errno.
int change(int fd, bool add, const std::string& twin, const port::InterfaceAddress& address) {
  ifaddrmsg body{};
  body.ifa_family = address.address.family == 4 ? AF_INET : AF_INET6;
  body.ifa_prefixlen = address.length;
  body.ifa_scope = RT_SCOPE_UNIVERSE;
  body.ifa_flags = address.address.family == 6 ? IFA_F_NODAD : 0;
  body.ifa_index = if_nametoindex(twin.c_str());
  if (body.ifa_index == 0) return ENODEV;
  NetlinkRequest request(add ? RTM_NEWADDR : RTM_DELADDR, NLM_F_ACK | (add ? NLM_F_CREATE | NLM_F_EXCL : 0), body);
  const std::size_t size = address.address.bits() / 8;
  request.attribute(IFA_LOCAL, address.address.bytes.data(), size);
  request.attribute(IFA_ADDRESS, address.address.bytes.data(), size);
  return ask(fd, request);
}

// While it lives, what an address that is taken away leaves of its subnet on the twin stays: the other addresses, and
// the routes by it. Otherwise the kernel takes all of them with the first one.
class Promotion {
 public:
  explicit Promotion(const std::string& twin)
      : path_("/proc/sys/net/ipv4/conf/" + twin + "/promote_secondaries"), was_off_(is_off()) {
    if (was_off_) write('1');
  }
  ~Promotion() {
    if (was_off_) write('0');
  }
  Promotion(const Promotion&) = delete;
  Promotion& operator=(const Promotion&) = delete;

 private:
  bool is_off() const {
    char value = 0;
    return std::ifstream(path_).get(value) && value == '0';
  }
  void write(char value) const { std::ofstream(path_) << value; }

  const std::string path_;
  const bool was_off_;
};

std::string why(int error, const std::string& twin, const port::InterfaceAddress& address) {
  switch (error) {
    case EACCES:
      if (address.address.family == 6) return ipv6_is_off(twin);
      [[fallthrough]];
    case EPERM:
      return "no permission: run as root or with CAP_NET_ADMIN";
    case ENODEV:
      return "there is no such interface any more: restart sluice";
    case EOPNOTSUPP:
    case EAFNOSUPPORT:
      return ipv6_is_off(twin);
    default:
      return std::strerror(error);
  }
}

std::string changed_text(std::size_t added, std::size_t removed) {
  if (added == 0 && removed == 0) return {};
  std::string text = added == 0 ? "" : std::to_string(added) + (added == 1 ? " address" : " addresses") + " added";
  if (removed != 0) text += (added == 0 ? "" : ", ") + std::to_string(removed) + " taken away";
  return text + " on twins";
}

bool is_reachable(const sockaddr* address) {
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET) return true;
  if (address->sa_family != AF_INET6) return false;
  return !IN6_IS_ADDR_LINKLOCAL(&reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr);
}

}  // namespace

Expected<std::string> TwinAddresses::apply(std::span<const port::PortOptions> ports) {
  std::set<std::pair<std::string, port::InterfaceAddress>> wanted;
  for (const port::PortOptions& port : ports) {
    for (const port::InterfaceAddress& address : port.addresses) wanted.emplace(port.twin, address);
  }
  const std::lock_guard lock(mutex_);
  if (wanted.empty() && ours_.empty()) return std::string();
  const RequestSocket asking;
  const int fd = asking.fd;
  if (fd < 0) return make_error(std::string("cannot open a netlink socket: ") + std::strerror(errno));
  std::size_t added = 0;
  std::size_t removed = 0;
  for (const port::PortOptions& port : ports) {
    for (const port::InterfaceAddress& address : port.addresses) {
      const int error = change(fd, true, port.twin, address);
      if (error == EEXIST || (error != 0 && ours_.contains({port.twin, address}))) continue;
      if (error != 0) {
        return make_error(address_refusal(port, address, why(error, port.twin, address)));
      }
      ours_.emplace(port.twin, address);
      ++added;
    }
  }
  for (auto one = ours_.begin(); one != ours_.end();) {
    if (wanted.contains(*one)) {
      ++one;
      continue;
    }
    // Somebody else may have taken it away, or the interface.
    const Promotion promotion(one->first);
    removed += change(fd, false, one->first, one->second) == 0 ? 1 : 0;
    one = ours_.erase(one);
  }
  wanted_ = std::move(wanted);
  return changed_text(added, removed);
}

std::size_t TwinAddresses::restore(const std::string& twin) {
  const std::lock_guard lock(mutex_);
  if (std::ranges::none_of(wanted_, [&](const auto& one) { return one.first == twin; })) return 0;
  const RequestSocket asking;
  std::size_t restored = 0;
  for (const auto& [of, address] : wanted_) {
    if (of != twin || asking.fd < 0 || change(asking.fd, true, twin, address) != 0) continue;
    ours_.emplace(of, address);
    ++restored;
  }
  return restored;
}

std::vector<port::InterfaceAddress> TwinAddresses::wanted(const std::string& twin) {
  const std::lock_guard lock(mutex_);
  std::vector<port::InterfaceAddress> of_twin;
  for (const auto& [of, address] : wanted_) {
    if (of == twin) of_twin.push_back(address);
  }
  return of_twin;
}

std::string address_refusal(const port::PortOptions& port, const port::InterfaceAddress& address,
                            const std::string& why) {
  return "[[port]] '" + port.name + "': address = \"" + address.str() + "\": cannot be put on " + port.twin + ": " +
         why;
}

std::string ipv6_is_off(const std::string& conf) {
  return "IPv6 is off on it: sysctl net.ipv6.conf." + conf + ".disable_ipv6=0";
}

std::vector<std::string> missing_addresses(const std::string& interface,
                                           std::span<const port::InterfaceAddress> wanted) {
  ifaddrs* all = nullptr;
  if (wanted.empty() || getifaddrs(&all) != 0) return {};
  const auto is_of = [](const sockaddr* has, const packet::IpAddress& address) {
    if (has == nullptr || has->sa_family != (address.family == 4 ? AF_INET : AF_INET6)) return false;
    const void* const bytes = address.family == 4
                                  ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in*>(has)->sin_addr)
                                  : &reinterpret_cast<const sockaddr_in6*>(has)->sin6_addr;
    return std::memcmp(bytes, address.bytes.data(), address.bits() / 8) == 0;
  };
  std::vector<std::string> missing;
  for (const port::InterfaceAddress& address : wanted) {
    bool found = false;
    for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
      found = interface == one->ifa_name && is_of(one->ifa_addr, address.address);
    }
    if (!found) missing.push_back(address.str());
  }
  freeifaddrs(all);
  return missing;
}

bool is_addressed(const std::string& interface) {
  ifaddrs* all = nullptr;
  if (getifaddrs(&all) != 0) return true;  // not known
  bool found = false;
  for (const ifaddrs* one = all; one != nullptr && !found; one = one->ifa_next) {
    found = interface == one->ifa_name && is_reachable(one->ifa_addr);
  }
  freeifaddrs(all);
  if (found) return true;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net/" + interface, none)) {
    if (entry.path().filename().string().starts_with("upper_")) return true;
  }
  return false;
}

}  // namespace sluice::control
