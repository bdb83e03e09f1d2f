#include "port/tap_twin.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "port/interface_request.h"
#include "port/interface_settings.h"
#include "port/tap_holder.h"

namespace sluice::port {
namespace {

constexpr const char* tun_device = "/dev/net/tun";

ifreq request_for(const std::string& name) {
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  return request;
}

std::string why_not_opened() {
  const std::string device(tun_device);
  switch (errno) {
    case ENOENT:
    case ENODEV:
    case ENXIO:
      return device + " does not exist: load the module (modprobe tun) or give the container the device";
    case EACCES:
    case EPERM:
      return "no permission to open " + device + ": run as root or with CAP_NET_ADMIN";
    default:
      return "cannot open " + device + ": " + std::strerror(errno);
  }
}

std::string is_no_tap(const std::string& name) {
  return "an interface named '" + name + "' exists and is no TAP: choose another name for the twin";
}

std::string why_not_attached(const std::string& name, bool existed) {
  switch (errno) {
    case EPERM:
    case EACCES:
      return "no permission to create the TAP interface '" + name + "': run as root or with CAP_NET_ADMIN";
    case EBUSY:
      return tap_in_use(name);
    case EINVAL:
      if (existed) return is_no_tap(name);
      return "'" + name + "' cannot be the name of an interface";
    default:
      return "cannot create the TAP interface '" + name + "': " + std::strerror(errno);
  }
}

}  // namespace

Expected<TapTwin> TapTwin::open(const std::string& name, const packet::MacAddress& mac, unsigned mtu, bool stays) {
  if (name.empty() || name.size() >= IFNAMSIZ) {
    return make_error("the name of a TAP twin has 1 to 15 characters, '" + name + "' has " +
                      std::to_string(name.size()));
  }
  TapTwin twin(name, ::open(tun_device, O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (twin.fd_ < 0) return make_error(why_not_opened());
  const bool existed = if_nametoindex(name.c_str()) != 0;
  ifreq request = request_for(name);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(twin.fd_, TUNSETIFF, &request) < 0) return make_error(why_not_attached(name, existed));
  if (auto done = twin.configure(mac, mtu); !done) return tl::unexpected(done.error());
  if (stays && ioctl(twin.fd_, TUNSETPERSIST, 1) < 0) return tl::unexpected(twin.failure("make it persistent"));
  return twin;
}

Expected<void> TapTwin::check_name(const std::string& name) {
  if (if_nametoindex(name.c_str()) == 0) return {};
  if (tap_is_held(name).value_or(false)) return make_error(tap_in_use(name));
  return is_tap(name).value_or(true) ? Expected<void>() : make_error(is_no_tap(name));
}

Expected<void> TapTwin::configure(const packet::MacAddress& mac, unsigned mtu) {
  // A persistent TAP may come with whatever its last user asked for.
  if (ioctl(fd_, TUNSETOFFLOAD, 0) < 0) return tl::unexpected(failure("turn off offloads"));
  const int control = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (control < 0) return tl::unexpected(failure("open a control socket"));
  const auto set = [&](unsigned long operation, ifreq& request, const std::string& what) -> Expected<void> {
    if (ioctl(control, operation, &request) < 0) return tl::unexpected(failure(what));
    return {};
  };
  ifreq address = request_for(name_);
  address.ifr_hwaddr.sa_family = ARPHRD_ETHER;
  std::memcpy(address.ifr_hwaddr.sa_data, mac.bytes.data(), mac.bytes.size());
  ifreq size = request_for(name_);
  size.ifr_mtu = static_cast<int>(mtu);
  ifreq flags = request_for(name_);
  auto done = set(SIOCSIFHWADDR, address, "set the MAC address " + mac.str())
                  .and_then([&] { return set(SIOCSIFMTU, size, "set the MTU " + std::to_string(mtu)); })
                  .and_then([&] { return set(SIOCGIFFLAGS, flags, "read the flags"); })
                  .and_then([&] {
                    flags.ifr_flags = static_cast<short>(flags.ifr_flags | IFF_UP);
                    return set(SIOCSIFFLAGS, flags, "bring it up");
                  });
  close(control);
  return done;
}

std::optional<std::string> TapTwin::interface() const {
  ifreq request{};
  if (ioctl(fd_, TUNGETIFF, &request) < 0) return std::nullopt;
  std::string name(request.ifr_name, strnlen(request.ifr_name, IFNAMSIZ));
  return if_nametoindex(name.c_str()) != 0 ? name : std::string();
}

bool TapTwin::enabled() const {
  const auto name = interface();
  ifreq flags{};
  return name && !name->empty() && interface_request(*name, SIOCGIFFLAGS, flags) && (flags.ifr_flags & IFF_UP) != 0;
}

unsigned TapTwin::mtu() const {
  const auto name = interface();
  return name && !name->empty() ? interface_mtu(*name) : 0;
}

bool TapTwin::set_mtu(unsigned mtu) const {
  const auto name = interface();
  return name && !name->empty() && set_interface_mtu(*name, mtu) == 0;
}

Error TapTwin::failure(const std::string& what) const {
  return Error{"TAP twin '" + name_ + "': cannot " + what + ": " + std::strerror(errno)};
}

TapTwin::TapTwin(TapTwin&& other) noexcept : name_(std::move(other.name_)), fd_(std::exchange(other.fd_, -1)) {}

TapTwin& TapTwin::operator=(TapTwin&& other) noexcept {
  std::swap(name_, other.name_);
  std::swap(fd_, other.fd_);
  return *this;
}

TapTwin::~TapTwin() {
  if (fd_ >= 0) close(fd_);
}

Expected<bool> TapTwin::write(std::span<const std::byte> frame) {
  if (::write(fd_, frame.data(), frame.size()) >= 0) return true;
  switch (errno) {
    case EAGAIN:
    case EINTR:
    case EIO:  // administratively down
    case EINVAL:
    case ENOBUFS:
    case ENOMEM:
      return false;
    default:
      return tl::unexpected(failure("hand over a frame"));
  }
}

Expected<std::size_t> TapTwin::read(std::span<std::byte> buffer) {
  const ssize_t length = ::read(fd_, buffer.data(), buffer.size());
  if (length >= 0) return static_cast<std::size_t>(length);
  if (errno == EAGAIN || errno == EINTR) return 0;
  return tl::unexpected(failure("take a frame"));
}

Expected<void> TapTwin::set_carrier(bool up) {
  int carrier = up ? 1 : 0;
  if (ioctl(fd_, TUNSETCARRIER, &carrier) < 0) return tl::unexpected(failure("set the carrier"));
  return {};
}

}  // namespace sluice::port
