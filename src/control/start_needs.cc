#include "control/start_needs.h"

#include <fcntl.h>
#include <net/if.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/in_use.h"
#include "control/api.h"
#include "control/api_client.h"
#include "control/api_socket.h"
#include "control/config_sections.h"
#include "control/open_files.h"
#include "control/section_views.h"
#include "control/twin_addresses.h"
#include "device/gpu.h"
#include "device/name.h"
#include "engine/advice.h"
#include "port/interface_lock.h"
#include "port/tap_twin.h"
#include "port/virtual_device.h"

namespace sluice::control {
namespace {

using Lacks = std::vector<std::string>;

void look(Lacks& lacks, const Expected<void>& usable) {
  if (!usable) lacks.push_back(usable.error().message);
}

// Of the gateway that answers at the API's place; empty: none does.
std::string file_of_gateway(const ApiOptions& api) {
  const auto address = api.listen.empty() ? Expected<ListenAddress>() : parse_listen(api.listen);
  if (!address) return {};
  const auto answer = ApiClient(*address, api.listen.empty() ? api.socket : "").get("/api/v1/config");
  if (!answer) return {};
  const auto described = nlohmann::json::parse(*answer, nullptr, false);
  return described.is_object() && described.contains("file") && described["file"].is_string()
             ? described["file"].get<std::string>()
             : "";
}

void look_at_api(const ApiOptions& api, bool runs, Lacks& lacks) {
  look(lacks, check_group(api.group));
  const auto free = runs ? Expected<void>() : Api::check_address(api);
  if (free || std::ranges::find(lacks, free.error().message) != lacks.end()) return;
  lacks.push_back(free.error().message);
}

void look_at_interfaces(const engine::Options& options, Lacks& lacks) {
  for (const port::PortOptions& port : options.ports) {
    const std::string name = "[[port]] '" + port.name + "' (" + port.device + "): ";
    if (const std::string interface = port::device_argument(port.device, "iface"); !interface.empty()) {
      if (const auto free = port::InterfaceLock::take(interface); !free) lacks.push_back(name + free.error().message);
    }
    if (port.twin.empty()) continue;
    if (const auto usable = port::TapTwin::check_name(port.twin); !usable) {
      lacks.push_back("[[port]] '" + port.name + "': " + usable.error().message);
    }
  }
}

// Whose setting switches IPv6 off on the twin; empty: it is on. New interfaces are as net.ipv6.conf.default says.
std::string without_ipv6(const std::string& twin) {
  const std::string settings = "/proc/sys/net/ipv6/conf/";
  for (const std::string& name : {twin, std::string("default")}) {
    std::ifstream file(settings + name + "/disable_ipv6");
    if (std::string disabled; file >> disabled) return disabled == "0" ? "" : name;
  }
  return "default";
}

void look_at_addresses(const engine::Options& options, Lacks& lacks) {
  for (const port::PortOptions& port : options.ports) {
    const auto of6 =
        std::ranges::find_if(port.addresses, [](const port::InterfaceAddress& one) { return one.address.family == 6; });
    if (of6 == port.addresses.end()) continue;
    if (const std::string off = without_ipv6(port.twin); !off.empty()) {
      lacks.push_back(address_refusal(port, *of6, ipv6_is_off(off)));
    }
  }
}

void look_at_files(Config& config, Lacks& lacks) {
  for (const SettingKey& one : written_files()) {
    const std::string path = config.section(one.section).text(one.key, "");
    const std::string why = path.empty() || path == "-" ? "" : why_not_writable(path);
    if (why.empty()) continue;
    lacks.push_back(one.str() + " = \"" + path + "\": cannot be written: " + why);
  }
}

// Of captures, of the interface that net_pcap sends to, and of memif's socket, the drivers say less.
void look_at_devices(const engine::Options& options, Lacks& lacks) {
  for (const port::PortOptions& port : options.ports) {
    const std::string name = "[[port]] '" + port.name + "' (" + port.device + "): ";
    for (const Capture& capture : captures_of(port.device)) {
      if (!capture.written) continue;
      if (const std::string why = why_not_writable(capture.path); !why.empty()) {
        lacks.push_back(name + "tx_pcap=" + capture.path + " cannot be written: " + why);
      }
    }
    if (const std::string to = port::device_argument(port.device, "tx_iface");
        port::is_driver(port.device, "net_pcap") && !to.empty() && if_nametoindex(to.c_str()) == 0) {
      lacks.push_back(name + "there is no interface '" + to + "' in this network namespace");
    }
    if (!port::is_driver(port.device, "net_memif") || port::device_argument(port.device, "socket-abstract") != "no") {
      continue;
    }
    const std::string folder = std::filesystem::path(port::device_argument(port.device, "socket")).parent_path();
    struct stat about {};
    if (!folder.empty() && (stat(folder.c_str(), &about) != 0 || !S_ISDIR(about.st_mode))) {
      lacks.push_back(name + "there is no folder " + folder + " for its socket: make it");
    }
  }
}

void look_at_gpu(const engine::Options& options, Lacks& lacks) {
  const auto indices = device::gpu_indices(options.device);
  if (!indices) return;
  const auto gpus = device::list_gpus();
  const std::string setting = "[engine] device = \"" + options.device + "\": ";
  if (!gpus) {
    lacks.push_back(setting + gpus.error().message);
  } else if (static_cast<std::size_t>(std::ranges::max(*indices)) >= gpus->size()) {
    lacks.push_back(setting + "this machine has " + std::to_string(gpus->size()) + " of them, from cuda:0 on");
  }
}

// A pipe is one whose other end is open for reading.
std::string why_not_written_to(const std::string& pipe) {
  const int fd = open(pipe.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno == ENXIO ? "it is a pipe that nobody reads" : std::strerror(errno);
  close(fd);
  return {};
}

}  // namespace

bool is_running(const Config& config) {
  const auto free = Api::check_address(config.api);
  if (free || !says_in_use(free.error().message)) return false;
  const std::string file = file_of_gateway(config.api);
  return !file.empty() && same_path(file, config.file());
}

std::string why_not_writable(const std::string& path, unsigned links) {
  struct stat about {};
  if (stat(path.c_str(), &about) == 0) {
    if (S_ISDIR(about.st_mode)) return "it is a folder";
    if (S_ISSOCK(about.st_mode)) return "it is a socket";
    if (S_ISFIFO(about.st_mode)) return why_not_written_to(path);
    return access(path.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
  }
  if (errno != ENOENT) return std::strerror(errno);
  // A link to what is not there: that is what would be made.
  if (std::error_code none; links != 0 && std::filesystem::is_symlink(path, none)) {
    const auto target = std::filesystem::path(path).parent_path() / std::filesystem::read_symlink(path, none);
    return why_not_writable(target, links - 1);
  }
  const std::string folder = std::filesystem::path(path).parent_path();
  const std::string in = folder.empty() ? "." : folder;
  if (stat(in.c_str(), &about) != 0 || !S_ISDIR(about.st_mode)) return "there is no folder " + in + ": make it";
  return access(in.c_str(), W_OK | X_OK) == 0 ? "" : "no file can be made in " + in + ": " + std::strerror(errno);
}

std::vector<std::string> find_start_lacks(Config& config) {
  Lacks lacks;
  look(lacks, check_open_files(config.engine));
  // What the gateway of this file has already, it has again after a restart.
  const bool runs = is_running(config);
  look_at_api(config.api, runs, lacks);
  if (!runs) {
    look_at_interfaces(config.engine, lacks);
    each_of_chain<engine::Advice>(config, [&](const engine::Advice& advice, engine::SectionView& view) {
      for (std::string& lack : advice.lacks(view)) lacks.push_back(std::move(lack));
    });
  }
  look_at_addresses(config.engine, lacks);
  look_at_files(config, lacks);
  look_at_devices(config.engine, lacks);
  look_at_gpu(config.engine, lacks);
  return lacks;
}

}  // namespace sluice::control
