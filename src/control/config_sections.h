// The readers of [engine], [memory] and [[port]]: each takes the file's settings, fills options, and records mistakes.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/option.h"
#include "base/settings.h"
#include "control/config.h"
#include "control/profile_options.h"
#include "engine/options.h"

namespace sluice::control {

// The settings of sections, each declared once: what reads them, /api/v1/config, what a reload compares and
// docs/configuration.md follow from it.
const std::vector<Option<engine::Options>>& engine_settings();
const std::vector<Option<port::MemoryOptions>>& memory_settings();
const std::vector<Option<port::PortOptions>>& port_settings();
const std::vector<Option<ApiOptions>>& api_settings();
const std::vector<Option<LogOptions>>& log_settings();
const std::vector<Option<ProfileOptions>>& profile_settings();
void read_engine(Settings root, engine::Options& options);
// µ of a chain that was not measured (engine/bound.h): three rounds of 64 frames of what its elements take for one
// (engine/element.h, classify_time).
std::chrono::nanoseconds usual_collect_time(const std::vector<std::string>& chain);
// Reads the profile's file, unless that is not wanted, which gives the engine the time of an inline batch, or µ.
void read_profile(Settings root, bool reads_file, engine::Options& engine, ProfileOptions& options);
// What it says, in the place of estimates.
void use_profile(engine::Profile profile, engine::Options& engine, ProfileOptions& options);
void read_memory(Settings root, port::MemoryOptions& memory);
// Also checks what one port says against the others.
void read_ports(Settings& root, std::vector<port::PortOptions>& ports);
// Whether `device` can be one at all: an address, a kind of virtual device that DPDK has, arguments of a replay.
void check_device_setting(Settings& section, const std::string& device);
// What two ports, each with its section, would both take: a device, an interface of the kernel (under whichever of its
// names), an interface as the twin.
void check_devices_apart(std::vector<Settings>& sections, const std::vector<port::PortOptions>& ports);
// A capture that a device reads or writes.
struct Capture {
  std::string path;
  bool written;
};
std::vector<Capture> captures_of(const std::string& device);
// A key of a section.
struct SettingKey {
  std::string_view section, key;
  std::string str() const { return "[" + std::string(section) + "] " + std::string(key); }
  bool operator==(const SettingKey&) const = default;
};
// Whose files are written as long as the gateway runs; the log's is the first.
std::vector<SettingKey> written_files();
// Files that are written, by the log or with alerts, and are this configuration (`file`), what it reads or writes as
// something else. Needs `ports` read.
void check_written_files(Settings root, const std::string& file, std::vector<Settings> port_sections,
                         const std::vector<port::PortOptions>& ports);
// What sections say together: frames that memory cannot hold, frames larger than their capacity. Needs all three read.
void check_memory(Settings root, const engine::Options& options);
// Lanes that a function of the chain could not follow conversations on (engine/placement.h, paired), and forwarders
// that it cannot have. Needs [engine] and [[port]] read.
void check_conversations(Settings root, const engine::Options& options);
// compute_cores are of use to the chain.
void check_helpers(Settings root, const engine::Options& options);
// A bound beyond the deadline. Needs [engine] and [[port]] read.
void check_timing(Settings section, const engine::Options& options);
// Whether the frames that replay ports have of their own are what [memory] size has no capacity for beside the other
// frames and `tables` bytes; then it is said at the device of the one that has most. `ports`: the [[port]] sections.
bool refuse_replay_frames(std::vector<Settings> ports, const engine::Options& options, std::uint64_t tables);
// Rounded up: "128M".
std::string megabytes(std::uint64_t bytes);
// Bytes that the frames of all ports take.
std::uint64_t frames_bytes(const engine::Options& options);

}  // namespace sluice::control
