#include "port/local_senders.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "port/interface_request.h"
#include "port/virtual_device.h"

namespace sluice::port {
namespace {

// Of guests: what another guest of the same machine sends may reach them as it left its kernel.
constexpr std::string_view guests_cards[] = {"virtio_net", "vmxnet3", "vif", "hv_netvsc"};

std::optional<ethtool_drvinfo> ask(const std::string& interface) {
  ethtool_drvinfo info{};
  info.cmd = ETHTOOL_GDRVINFO;
  ifreq argument{};
  argument.ifr_data = reinterpret_cast<char*>(&info);
  if (interface.empty() || !interface_request(interface, SIOCETHTOOL, argument)) {
    return std::nullopt;
  }
  return info;
}

}  // namespace

std::string interface_driver(const std::string& interface) {
  const auto info = ask(interface);
  return info ? info->driver : "";
}

bool leaves_checksums_open(const std::string& device) {
  constexpr std::string_view drivers[] = {"net_tap", "net_virtio_user", "net_vhost", "eth_vhost", "net_memif"};
  if (is_driver(device, "net_pcap")) {
    for (const char* const key : {"iface", "rx_iface", "rx_iface_in"}) {
      if (has_local_senders(device_argument(device, key))) return true;
    }
    return false;
  }
  return std::ranges::any_of(drivers, [&](std::string_view driver) { return is_driver(device, std::string(driver)); });
}

bool has_local_senders(const std::string& interface) {
  const auto info = ask(interface);
  if (!info) {
    return false;
  }
  const bool on_a_bus = std::string_view(info->bus_info).find(':') != std::string_view::npos;
  return !on_a_bus || std::ranges::find(guests_cards, std::string_view(info->driver)) != std::end(guests_cards);
}

}  // namespace sluice::port
