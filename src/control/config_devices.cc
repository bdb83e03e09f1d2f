#include <net/if.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <regex>

#include "base/file.h"
#include "base/spelling.h"
#include "control/config.h"
#include "control/config_sections.h"
#include "packet/frame_mix.h"
#include "port/capture_file.h"
#include "port/device_arguments.h"
#include "port/pci_device.h"
#include "port/replay_port.h"
#include "port/virtual_device.h"

namespace sluice::control {
namespace {

constexpr std::size_t longest_device = 512;

// The virtual devices of DPDK 22.11. As DPDK does, a device is of the kind that its name begins with.
constexpr std::array device_kinds = {"net_af_packet", "net_af_xdp",      "net_tap",  "net_pcap",   "net_memif",
                                     "net_ring",      "net_null",        "net_bond", "net_vhost",  "net_virtio_user",
                                     "net_failsafe",  "net_vdev_netvsc", "net_tun",  "net_softnic"};

void check_kind(Settings& section, const std::string& device) {
  const std::string name = port::device_name(device);
  // Behind "net_", or the "eth_" of old.
  const auto is_of = [&](std::string_view kind) { return name.substr(4).starts_with(kind.substr(4)); };
  if (std::ranges::any_of(device_kinds, is_of)) {
    if (const auto fine = port::check_arguments(device); !fine) section.error("device", fine.error().message);
    return;
  }
  const std::string kind = name.substr(0, name.find_last_not_of("0123456789") + 1);
  section.error("device", "there is no kind of virtual device \"" + kind + "\"" +
                              spelling_hint(kind, {device_kinds.begin(), device_kinds.begin() + 7}));
}

// What DPDK knows the device by; empty for those of which there may be many.
std::string identity(const std::string& device) {
  const std::string name = port::device_name(device);
  const std::string pci = port::pci_address(device);
  return name == "replay" || port::is_virtual(device) ? std::string() : pci.empty() ? name : pci;
}

// The interface that the device receives from; empty: none.
std::string interface_of(const std::string& device) {
  return port::device_argument(device, "iface");
}

// Whether two names are one interface: the kernel lets an interface have several (`ip link property add altname`).
bool same_interface(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const unsigned index = if_nametoindex(a.c_str());
  return index != 0 && index == if_nametoindex(b.c_str());
}

// An interface of `ports[i]` that the other port receives from too, and the other's name for it.
std::pair<std::string, std::string> shared_interface(const port::PortOptions& port, const port::PortOptions& other) {
  const std::string mine = interface_of(port.device);
  const std::string theirs = interface_of(other.device);
  return !mine.empty() && !theirs.empty() && same_interface(mine, theirs) ? std::pair(mine, theirs)
                                                                          : std::pair<std::string, std::string>();
}

// Opening a capture to write it empties it: the file that one of the two writes and the other one uses too, in the
// words of the first; empty: none.
std::string shared_capture(const std::vector<Capture>& captures, std::size_t mine, const std::vector<Capture>& others,
                           std::size_t end) {
  for (std::size_t i = 0; i < end; ++i) {
    const Capture& a = captures[mine];
    const Capture& b = others[i];
    if ((a.written || b.written) && same_file(a.path, b.path)) {
      return a.path == b.path ? a.path : a.path + " is another name of " + b.path;
    }
  }
  return {};
}

// `to` is `from` itself or a port before it.
bool check_captures_apart(Settings& section, const std::string& from, const std::string& to, unsigned line) {
  const std::vector<Capture> mine = captures_of(from);
  const std::vector<Capture> theirs = captures_of(to);
  for (std::size_t i = 0; i < mine.size(); ++i) {
    const bool same_port = &from == &to;
    if (const std::string file = shared_capture(mine, i, theirs, same_port ? i : theirs.size()); !file.empty()) {
      section.error("device", (same_port ? std::string("uses a file twice: ")
                                         : "takes the file of line " + std::to_string(line) + ": ") +
                                  file + "; give each capture that is written a file of its own");
      return false;
    }
  }
  return true;
}

}  // namespace

std::vector<Capture> captures_of(const std::string& device) {
  std::vector<Capture> captures;
  if (!device.starts_with("net_pcap") && !device.starts_with("eth_pcap")) return captures;
  for (const bool written : {false, true}) {
    for (std::string& path : port::device_arguments(device, written ? "tx_pcap" : "rx_pcap")) {
      captures.push_back({std::move(path), written});
    }
  }
  return captures;
}

void check_device_setting(Settings& section, const std::string& device) {
  static const std::regex pci("([0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\\.[0-7](,.*)?");
  static const std::regex virtual_device("(net|eth)_[a-z0-9_]+(,.*)?");
  if (device.empty() && !section.has("device")) return;  // reported already
  if (port::is_virtual(device)) return;
  if (device == "replay" || device.starts_with("replay,")) {
    const auto replay = port::ReplayOptions::parse(device);
    if (!replay) {
      section.error("device", replay.error().message);
    } else if (const auto mix = packet::FrameMix::make(replay->mix); !mix) {
      section.error("device", mix.error().message);
    }
    return;
  }
  // Its length first: a regular expression takes stack for each character.
  const bool fits = device.size() <= longest_device;
  const bool is_virtual = fits && std::regex_match(device, virtual_device);
  if (!fits || (!is_virtual && !std::regex_match(device, pci))) {
    section.error("device",
                  "allowed is a PCI address (\"0000:3b:00.0\"), a virtual device with its arguments "
                  "(\"net_af_packet0,iface=eth1\"), or \"replay,...\"");
  } else if (is_virtual) {
    check_kind(section, device);
  }
}

void check_devices_apart(std::vector<Settings>& sections, const std::vector<port::PortOptions>& ports) {
  for (std::size_t i = 0; i < ports.size(); ++i) {
    for (std::size_t j = 0; j < ports.size(); ++j) {
      const std::string line = std::to_string(sections[j].line("device"));
      if (j < i && !identity(ports[i].device).empty() && identity(ports[i].device) == identity(ports[j].device)) {
        sections[i].error("device",
                          "the same as in line " + std::to_string(sections[j].line("")) +
                              ": devices are unique; number virtual ones, such as net_af_packet0, net_af_packet1");
        break;
      }
      if (j <= i && !check_captures_apart(sections[i], ports[i].device, ports[j].device, sections[j].line("device"))) {
        break;
      }
      if (const auto [mine, theirs] = shared_interface(ports[i], ports[j]); j < i && !mine.empty()) {
        sections[i].error("device", "takes the interface of line " + line + ": " +
                                        (mine == theirs ? mine : mine + " is another name of " + theirs) +
                                        "; give each port an interface of its own");
        break;
      }
      if (const std::string theirs = interface_of(ports[j].device);
          j != i && !ports[i].twin.empty() && !theirs.empty() && same_interface(theirs, ports[i].twin)) {
        sections[i].error(
            "twin", "is the interface that the device of line " + line + " uses: give the twin a name of its own");
        break;
      }
    }
  }
}

namespace {

// What the frames of a capture lack that looks whole.
void warn_of(const std::string& path, const port::CaptureFacts& facts, std::uint32_t frame_bytes) {
  constexpr std::uint32_t around = 22;  // of a buffer, which net_pcap leaves out
  if (facts.cut != 0) {
    spdlog::warn("{}: {} of {} packets are cut: what they had behind that is not looked at (tcpdump -s 0 keeps all)",
                 path, facts.cut, facts.packets);
  }
  if (!facts.left_out.empty()) spdlog::warn("{}: {}", path, facts.left_out);
  if (facts.longest + around > frame_bytes) {
    spdlog::warn(
        "{}: its longest packet has {} bytes, and those over {} are dropped as in_pieces: [memory] frame_bytes = {} or "
        "more takes them, up to 16384; longer ones come of segmentation offloads of the host that captured",
        path, facts.longest, frame_bytes - around, std::min<std::uint32_t>(facts.longest + around, 16384));
  }
}

}  // namespace

Expected<void> Config::check_captures(const engine::TableProgress& progress, Captures captures) {
  const std::size_t before = diagnostics_->lines.size();
  std::vector<Settings> sections = ports();
  for (std::size_t i = 0; i < engine.ports.size(); ++i) {
    for (const Capture& capture : captures_of(engine.ports[i].device)) {
      if (capture.written) continue;
      port::CaptureProgress look;
      if (progress) {
        look = [&](std::uint64_t done, std::uint64_t total) {
          return progress("reading " + capture.path, done, total);
        };
      }
      std::shared_ptr<const port::CaptureCopy> copy;
      const auto whole = port::check_capture(capture.path, look, captures == Captures::copied ? &copy : nullptr);
      if (copy != nullptr) engine.ports[i].copies.by_path[capture.path] = std::move(copy);
      if (!whole) {
        sections[i].error("device", whole.error().message);
      } else {
        warn_of(capture.path, *whole, engine.memory.frame_bytes);
      }
    }
  }
  if (diagnostics_->lines.size() > before) return make_error(mistakes(before));
  return {};
}

}  // namespace sluice::control
