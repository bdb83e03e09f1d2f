#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/spelling.h"
#include "base/units.h"
#include "control/chain_hints.h"
#include "control/config_sections.h"
#include "device/name.h"
#include "engine/bound.h"
#include "engine/element.h"
#include "packet/frame_mix.h"
#include "port/replay_port.h"
#include "port/virtual_device.h"

namespace sluice::control {
namespace {

constexpr std::chrono::nanoseconds longest_deadline = std::chrono::seconds(10);
constexpr std::int64_t highest_core = 1023;
constexpr int highest_gpu = 15;
constexpr std::uint64_t least_memory = 64ULL << 20;
constexpr std::uint64_t most_memory = 1ULL << 40;
constexpr std::uint64_t bytes_around_frame = 128 + 128 + 64;  // headroom, struct rte_mbuf, mempool header and alignment
constexpr unsigned ethernet_bytes = 14 + 2 * 4;               // header and two VLAN tags

std::string read_device(Settings& section, const std::string& fallback) {
  std::string devices;
  for (const std::string& name : section.values("device")) devices += (devices.empty() ? "" : ",") + name;
  if (devices.empty()) return fallback;
  if (devices == "auto" || devices == "cpu") return devices;
  const auto indices = device::gpu_indices(devices);
  if (indices && std::ranges::max(*indices) <= highest_gpu) return devices;
  section.error("device", "allowed is \"auto\", \"cpu\", or \"cuda:N\" with N from 0 to " +
                              std::to_string(highest_gpu) +
                              ", or a list of several of these, each once: [\"cuda:0\", \"cuda:1\"]");
  return fallback;
}

std::vector<int> read_cores(Settings& section, std::string_view key, std::string_view none) {
  std::vector<int> cores;
  if (section.is(key, none)) return cores;
  for (const std::int64_t core : section.integers(key)) {
    if (core < 0 || core > highest_core) {
      section.error(key, "a core is a number from 0 to " + std::to_string(highest_core));
      return {};
    }
    if (std::find(cores.begin(), cores.end(), core) != cores.end()) {
      section.error(key, "core " + std::to_string(core) + " is there twice: give each thread a core of its own");
      return {};
    }
    cores.push_back(static_cast<int>(core));
  }
  return cores;
}

// What is wrong with the function at place `at`; empty: nothing.
std::string chain_mistake(const std::vector<std::string>& chain, std::size_t at) {
  const std::string& name = chain[at];
  const engine::ElementType* const type = engine::find_element(name);
  if (type == nullptr) {
    std::vector<std::string> known;
    for (const engine::ElementType& one : engine::element_types()) known.emplace_back(one.name);
    const std::string close = spelling_hint(name, known);
    return "unknown function \"" + name + "\": " + functions_and_places() +
           (close.starts_with("; did you mean") ? close : "");
  }
  const bool is_last = at + 1 == chain.size(), is_stage = !type->ends_chain;
  if (is_last && is_stage) {
    return "\"" + name + "\" forwards nothing: the last function must be one of " + names_of_kind(false);
  }
  if (!is_last && !is_stage) {
    return "\"" + name + "\" forwards every frame, so nothing can stand behind it: in front of the last function " +
           (names_of_kind(true).empty() ? "there can be none in this version" : "there can be " + names_of_kind(true));
  }
  if (std::find(chain.begin(), chain.begin() + static_cast<std::ptrdiff_t>(at), name) !=
      chain.begin() + static_cast<std::ptrdiff_t>(at)) {
    return "\"" + name + "\" is there twice";
  }
  return {};
}

std::vector<std::string> read_chain(Settings& section, const std::vector<std::string>& fallback) {
  std::vector<std::string> chain = section.texts("chain", fallback);
  if (chain.empty()) {
    section.error("chain", "at least one function is needed: " + functions_and_places());
    return fallback;
  }
  for (std::size_t at = 0; at < chain.size(); ++at) {
    if (const std::string mistake = chain_mistake(chain, at); !mistake.empty()) {
      section.error("chain", mistake);
      break;
    }
  }
  return chain;
}

template <typename T>
T choose(Settings& section, std::string_view key, std::initializer_list<std::pair<std::string_view, T>> values,
         std::initializer_list<std::string_view> names, T fallback) {
  const std::string word = section.choice(key, {}, names);
  for (const auto& [name, value] : values) {
    if (word == name) return value;
  }
  return fallback;
}

// It has frames of its own number, which its device names.
bool is_replay(const port::PortOptions& port) {
  return port::device_name(port.device) == "replay";
}

// Of all ports but replays. The pool of a queue that lanes share has so many for each of them (engine/engine.cc).
std::uint64_t pool_frames(const engine::Options& options) {
  std::uint64_t frames = 0;
  for (const port::PortOptions& port : options.ports) {
    const std::uint64_t lanes_of_queue = (port.lane_count() + port.queues - 1) / port.queues;
    if (!is_replay(port)) frames += port.queues * lanes_of_queue * options.memory.frames;
  }
  return frames;
}

std::uint64_t frame_bytes(const port::MemoryOptions& memory) {
  return memory.frame_bytes + bytes_around_frame;
}

std::uint64_t pool_bytes(const engine::Options& options) {
  return pool_frames(options) * frame_bytes(options.memory);
}

// Of each queue; the device was checked, or a mistake of it is said already.
std::uint64_t replay_frames(const port::PortOptions& port) {
  const std::string given = port::device_argument(port.device, "frames");
  return given.empty() ? port::ReplayOptions().frames
                       : static_cast<std::uint64_t>(std::max(0.0, std::strtod(given.c_str(), nullptr)));
}

std::uint64_t replay_bytes(const port::PortOptions& port, const port::MemoryOptions& memory) {
  return is_replay(port) ? port.queues * replay_frames(port) * frame_bytes(memory) : 0;
}

// net_null would hand out frames that end behind their room.
void check_null_sizes(std::vector<Settings> sections, const engine::Options& options) {
  for (std::size_t i = 0; i < options.ports.size(); ++i) {
    const std::string& device = options.ports[i].device;
    const bool is_null = device.starts_with("net_null");
    const std::string given = is_null ? port::device_argument(device, "size") : std::string();
    const unsigned long size = std::strtoul(given.c_str(), nullptr, 10);
    if (!given.empty() && (size == 0 || size > options.memory.frame_bytes)) {
      sections[i].error("device", "frames of size=" + given + ": allowed is from 1 to [memory] frame_bytes, " +
                                      std::to_string(options.memory.frame_bytes));
    }
  }
}

// A replay port would refuse it at the start.
void check_replay_sizes(std::vector<Settings> sections, const engine::Options& options) {
  for (std::size_t i = 0; i < options.ports.size(); ++i) {
    if (!is_replay(options.ports[i])) continue;
    const std::string name = port::device_argument(options.ports[i].device, "mix");
    const auto mix = packet::FrameMix::make(name.empty() ? port::ReplayOptions().mix : name);
    if (mix && mix->largest() > options.memory.frame_bytes) {
      sections[i].error("device", "mix=" + name + " has frames of " + std::to_string(mix->largest()) +
                                      " bytes: allowed is up to [memory] frame_bytes, " +
                                      std::to_string(options.memory.frame_bytes));
    }
  }
}

}  // namespace

void read_engine(Settings root, engine::Options& options, bool& allow_busy_cores) {
  Settings section = root.section("engine");
  const auto number = [&section](std::string_view key, auto fallback, engine::Range allowed) {
    return static_cast<decltype(fallback)>(section.integer(key, fallback, allowed.least, allowed.most));
  };
  options.device = read_device(section, options.device);
  options.deadline = section.duration("deadline", options.deadline);
  if (!section.is("cycle", "auto")) options.cycle = section.duration("cycle", options.cycle);
  options.overlap = number("overlap", options.overlap, engine::overlap_range);
  if (!section.is("stagger", "auto") && section.has("stagger")) {
    options.stagger = section.boolean("stagger", false) ? engine::Stagger::on : engine::Stagger::off;
  }
  options.batch = number("batch", options.batch, engine::batch_range);
  options.batches = number("batches", options.batches, engine::batches_range);
  options.streams = number("streams", options.streams, engine::streams_range);
  using engine::Mode;
  using engine::Poll;
  options.poll =
      choose<Poll>(section, "poll", {{"auto", Poll::automatic}, {"busy", Poll::busy}, {"adaptive", Poll::adaptive}},
                   {"auto", "busy", "adaptive"}, options.poll);
  using engine::Scheduling;
  options.scheduling =
      choose<Scheduling>(section, "scheduling", {{"normal", Scheduling::normal}, {"realtime", Scheduling::realtime}},
                         {"normal", "realtime"}, options.scheduling);
  using engine::Admit;
  options.admission = choose<Admit>(section, "admission",
                                    {{"auto", Admit::automatic}, {"deadline", Admit::in_time}, {"all", Admit::all}},
                                    {"auto", "deadline", "all"}, options.admission);
  options.cores = read_cores(section, "cores", "auto");
  options.forwarder_cores = read_cores(section, "forwarder_cores", "shared");
  options.worker_core = number("worker_core", options.worker_core, {-1, highest_core});
  allow_busy_cores = section.choice("busy_cores", "refuse", {"refuse", "allow"}) == "allow";
  options.mode = choose<Mode>(
      section, "mode", {{"full", Mode::full}, {"zero-load", Mode::zero_load}, {"collector-only", Mode::collector_only}},
      {"full", "zero-load", "collector-only"}, options.mode);
  if (!section.is("cpu_below", "auto")) options.cpu_below = number("cpu_below", options.cpu_below, {0, 1'000'000'000});
  options.chain = read_chain(section, options.chain);
  section.finish();
  if (options.deadline > longest_deadline) {
    section.error("deadline", "allowed is at most " + duration_text(longest_deadline));
  }
}

// The engine's own rule, told at the key that the user can change. "auto" may fall back to the CPU, whose bound is
// below that of any cycle.
void check_timing(Settings section, const engine::Options& options) {
  if (options.deadline > longest_deadline) return;
  const bool on_gpu = options.device != "cpu";
  const auto timing = engine::plan_timing(options, on_gpu);
  if (timing) return;
  std::string message = timing.error().message;
  if (constexpr std::string_view place = "[engine] "; message.starts_with(place)) message.erase(0, place.size());
  section.error(on_gpu && section.has("cycle") ? "cycle" : "deadline", message);
}

void read_memory(Settings root, port::MemoryOptions& memory) {
  Settings section = root.section("memory");
  using port::Hugepages;
  memory.hugepages = choose<Hugepages>(
      section, "hugepages", {{"auto", Hugepages::automatic}, {"off", Hugepages::off}, {"require", Hugepages::require}},
      {"auto", "off", "require"}, memory.hugepages);
  memory.size = section.bytes("size", memory.size);
  if (memory.size < least_memory || memory.size > most_memory) {
    section.error("size", "allowed is from " + bytes_text(least_memory) + " to " + bytes_text(most_memory));
  }
  memory.frames = static_cast<unsigned>(section.integer("frames", memory.frames, 512, 1 << 22));
  memory.frame_bytes = static_cast<unsigned>(section.integer("frame_bytes", memory.frame_bytes, 256, 16384));
  section.finish();
}

std::string megabytes(std::uint64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + "M";
}

std::uint64_t frames_bytes(const engine::Options& options) {
  std::uint64_t bytes = pool_bytes(options);
  for (const port::PortOptions& port : options.ports) bytes += replay_bytes(port, options.memory);
  return bytes;
}

bool refuse_replay_frames(std::vector<Settings> ports, const engine::Options& options, std::uint64_t tables) {
  const std::uint64_t rest = pool_bytes(options) + tables;
  const std::uint64_t size = options.memory.size;
  if (rest > size || rest + frames_bytes(options) - pool_bytes(options) <= size) return false;
  const auto most = std::ranges::max_element(
      options.ports, {}, [&](const port::PortOptions& port) { return replay_bytes(port, options.memory); });
  ports.at(static_cast<std::size_t>(most - options.ports.begin()))
      .error("device", std::to_string(replay_frames(*most)) + " frames for each of its " +
                           std::to_string(most->queues) + " queues take " +
                           megabytes(replay_bytes(*most, options.memory)) + ", tables and other frames " +
                           megabytes(frames_bytes(options) + tables - replay_bytes(*most, options.memory)) +
                           ", and [memory] size is " + megabytes(size) + ": lower frames=, or raise size to \"" +
                           megabytes(frames_bytes(options) + tables) + "\"");
  return true;
}

void check_memory(Settings root, const engine::Options& options) {
  Settings section = root.section("memory");
  check_null_sizes(root.sections("port"), options);
  check_replay_sizes(root.sections("port"), options);
  const port::MemoryOptions& memory = options.memory;
  for (const port::PortOptions& port : options.ports) {
    if (port.mtu + ethernet_bytes > memory.frame_bytes) {
      section.error("frame_bytes", "port \"" + port.name + "\" has an MTU of " + std::to_string(port.mtu) +
                                       ": allowed is " + std::to_string(port.mtu + ethernet_bytes) + " or more");
    }
    if (2 * port.descriptors > memory.frames) {
      section.error("frames", "port \"" + port.name + "\" alone holds 2 x " + std::to_string(port.descriptors) +
                                  " in its descriptors: allowed is that or more");
    }
  }
  const std::uint64_t need = pool_bytes(options);
  if (need > memory.size) {
    section.error("size", "the ports' " + std::to_string(pool_frames(options)) + " frames take " + megabytes(need) +
                              ": allowed is that or more; or lower frames");
  } else {
    refuse_replay_frames(root.sections("port"), options, 0);
  }
}

}  // namespace sluice::control
