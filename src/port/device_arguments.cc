#include "port/device_arguments.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "base/quote.h"
#include "base/spelling.h"
#include "packet/ip_address.h"
#include "port/virtual_device.h"

namespace sluice::port {
namespace {

enum class Value { text, number, zero_or_one, mac, words, none };

struct Argument {
  std::string name;
  Value value = Value::text;
  std::vector<std::string> words = {};  // of Value::words all that there are, of Value::mac what it may be instead
};

struct Driver {
  std::string name;
  std::string needs;  // an argument without which it does not open, with an example; empty: none
  std::string why_it_is_asked;
  std::vector<Argument> arguments;
};

constexpr auto number = Value::number;
constexpr auto zero_or_one = Value::zero_or_one;
constexpr auto mac = Value::mac;
constexpr auto words = Value::words;

const std::vector<Driver>& drivers() {
  static const std::vector<Driver> all = {
      {"net_af_packet",
       "iface=eth1",
       "which interface?",
       {{"iface"},
        {"qpairs", number},
        {"blocksz", number},
        {"framesz", number},
        {"framecnt", number},
        {"qdisc_bypass", zero_or_one}}},
      {"net_af_xdp",
       "iface=eth1",
       "which interface?",
       {{"iface"},
        {"start_queue", number},
        {"queue_count", number},
        {"shared_umem", zero_or_one},
        {"xdp_prog"},
        {"busy_budget", number},
        {"force_copy", zero_or_one}}},
      {"net_tap", "", "", {{"iface"}, {"mac", mac, {"fixed"}}, {"persist", Value::none}}},
      {"net_pcap",
       "rx_pcap=in.pcap",
       "which capture?",
       {{"rx_pcap"}, {"tx_pcap"}, {"tx_iface"}, {"phy_mac", zero_or_one}, {"infinite_rx", zero_or_one}}},
      {"net_memif",
       "",
       "",
       {{"role", words, {"client", "server", "slave", "master"}},
        {"id", number},
        {"bsize", number},
        {"rsize", number},
        {"socket"},
        {"socket-abstract", words, {"yes", "no"}},
        {"mac", mac},
        {"zero-copy", words, {"yes", "no"}},
        {"secret"}}},
      {"net_ring", "", "", {{"nodeaction"}, {"internal"}}},
      {"net_null", "", "", {{"size", number}, {"copy", number}, {"no-rx", zero_or_one}}},
      {"net_vhost",
       "iface=/run/vhost.sock",
       "which socket?",
       {{"iface"},
        {"queues", number},
        {"client", zero_or_one},
        {"iommu-support", zero_or_one},
        {"postcopy-support", zero_or_one},
        {"tso", zero_or_one},
        {"linear-buffer", zero_or_one},
        {"ext-buffer", zero_or_one},
        {"legacy-ol-flags", zero_or_one}}},
      {"net_virtio_user",
       "path=/run/vhost.sock",
       "which socket or device?",
       {{"path"},
        {"mac", mac},
        {"cq", number},
        {"queue_size", number},
        {"queues", number},
        {"iface"},
        {"server", zero_or_one},
        {"mrg_rxbuf", zero_or_one},
        {"in_order", zero_or_one},
        {"packed_vq", zero_or_one},
        {"speed", number},
        {"vectorized", zero_or_one}}},
      {"net_softnic",
       "firmware=pipeline.cli",
       "which script of commands?",
       {{"firmware"}, {"conn_port", number}, {"cpu_id", number}, {"sc", zero_or_one}}},
  };
  return all;
}

// Kinds that open, or nearly, and carry nothing of a port.
struct NoPort {
  std::string_view driver;
  std::string_view why;
};
constexpr NoPort no_ports[] = {
    {"net_bond",
     "a bond of DPDK needs members that are open already, and Sluice opens none: bond the interfaces in the kernel "
     "(ip link add bond0 type bond) and use net_af_packet0,iface=bond0"},
    {"net_tun", "a TUN interface has no Ethernet header, which Sluice needs: use net_tap"},
    {"net_failsafe",
     "Sluice does not see the devices in it, and the kernel would serve their interfaces too: give the port its device "
     "itself, such as net_af_packet0,iface=eth1"},
    {"net_vdev_netvsc",
     "it is no port itself but makes others, which Sluice cannot name: use net_af_packet0,iface=... on the interface"},
};

// DPDK 22.11 still knows the names of old ("eth_tap0").
constexpr std::string_view old_prefix = "eth_";

std::string present_name(const std::string& name) {
  return name.starts_with(old_prefix) ? "net_" + name.substr(old_prefix.size()) : name;
}

std::string list_of(const std::vector<std::string>& words) {
  std::string list;
  for (const std::string& word : words) {
    list += (list.empty() ? "" : " or ") + word;
  }
  return list;
}

// What its value may be; empty: it is that, or any will do.
std::string allowed_instead(const Argument& argument, const std::string& value) {
  const bool is_word = std::ranges::find(argument.words, value) != argument.words.end();
  switch (argument.value) {
    case Value::number: {
      const bool digits = value.find_first_not_of("0123456789") == std::string::npos;
      return !value.empty() && value.size() <= 9 && digits ? "" : "a whole number";
    }
    case Value::zero_or_one:
      return value == "0" || value == "1" ? "" : "0 or 1";
    case Value::words:
      return is_word ? "" : list_of(argument.words);
    case Value::mac:
      return is_word || packet::MacAddress::parse(value)
                 ? ""
                 : "a MAC address such as 02:00:00:00:00:01" +
                       (argument.words.empty() ? "" : " or " + list_of(argument.words));
    default:
      return "";
  }
}

Expected<void> check_value(const Argument& argument, const std::string& value) {
  const std::string allowed = allowed_instead(argument, value);
  if (!allowed.empty()) {
    return make_error("the argument " + argument.name + "=" + in_quotes(value) + ": allowed is " + allowed);
  }
  return {};
}

// net_pcap can also receive from an interface, and net_tap take over the frames of one, of which it leaves the kernel a
// copy of every broadcast. The kernel would serve them, too: Sluice keeps it off the interfaces of packet sockets
// alone.
bool receives_beside_the_kernel(const Driver& driver, const std::string& key) {
  return (driver.name == "net_pcap" && (key == "iface" || key == "rx_iface" || key == "rx_iface_in")) ||
         (driver.name == "net_tap" && key == "remote");
}

Expected<void> check_argument(const Driver& driver, const std::string& text) {
  const std::string key = text.substr(0, text.find('='));
  if (receives_beside_the_kernel(driver, key)) {
    return make_error("the argument " + key +
                      ": the kernel would serve the interface's frames, too: use net_af_packet0,iface=...");
  }
  const auto known = std::ranges::find(driver.arguments, key, &Argument::name);
  if (known == driver.arguments.end()) {
    std::vector<std::string> names;
    std::ranges::transform(driver.arguments, std::back_inserter(names), &Argument::name);
    return make_error(driver.name + " has no argument " + in_quotes(key) + spelling_hint(key, names));
  }
  if (known->value == Value::none) {
    return {};
  }
  if (key.size() == text.size()) {
    return make_error("the argument " + key + " has no value: write " + key + "=...");
  }
  return check_value(*known, text.substr(key.size() + 1));
}

// Everything else in Sluice knows a device by the name of its driver and a number.
Expected<void> check_name(const std::string& name, const Driver& driver) {
  const std::string present = present_name(name);
  const bool numbered = is_driver(present, driver.name);
  return numbered && present == name
             ? Expected<void>()
             : make_error("Sluice knows no driver by the name " + in_quotes(name) + ": use " +
                          (numbered ? present : driver.name + " and a number, such as " + driver.name + "0"));
}

// Any of these will do.
bool opens_pcap(const std::string& key) {
  return key == "rx_pcap" || key == "tx_pcap" || key == "tx_iface";
}

bool one_for_each_queue(const Driver& driver, const std::string& key) {
  return driver.name == "net_pcap" && (key.starts_with("rx_") || key.starts_with("tx_"));
}

}  // namespace

Expected<void> check_arguments(const std::string& device) {
  const std::string name = device_name(device);
  const std::string present = present_name(name);
  for (const NoPort& kind : no_ports) {
    if (present.starts_with(kind.driver)) {
      return make_error(name + " cannot be a port: " + std::string(kind.why));
    }
  }
  const auto driver = std::ranges::find_if(drivers(), [&](const Driver& one) { return present.starts_with(one.name); });
  if (driver == drivers().end()) {
    return {};
  }
  if (auto known = check_name(name, *driver); !known) {
    return known;
  }
  std::vector<std::string> seen;
  for (std::size_t at = name.size(); at < device.size();) {
    const std::size_t end = std::min(device.find(',', at + 1), device.size());
    const std::string text = device.substr(at + 1, end - at - 1);
    if (auto fine = check_argument(*driver, text); !fine) {
      return fine;
    }
    const std::string key = text.substr(0, text.find('='));
    if (std::ranges::find(seen, key) != seen.end() && !one_for_each_queue(*driver, key)) {
      return make_error("the argument " + key + " is there twice: give it once");
    }
    seen.push_back(key);
    at = end;
  }
  const std::string needed = driver->needs.substr(0, driver->needs.find('='));
  const bool writes = driver->name == "net_pcap" && std::ranges::any_of(seen, &opens_pcap);
  if (!needed.empty() && !writes && device_argument(device, needed).empty()) {
    return make_error(driver->why_it_is_asked + " Give it with " + needed + "=, as in " + name + "," + driver->needs);
  }
  return {};
}

}  // namespace sluice::port
