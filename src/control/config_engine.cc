#include <fmt/ranges.h>

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
constexpr std::chrono::nanoseconds least_return = std::chrono::seconds(1), most_return = std::chrono::hours(1);
constexpr std::chrono::nanoseconds least_silence = std::chrono::milliseconds(1), most_silence = std::chrono::minutes(1);
constexpr std::int64_t highest_core = 1023;
constexpr int highest_gpu = 15;
constexpr std::uint64_t least_memory = 64ULL << 20;
constexpr std::uint64_t most_memory = 1ULL << 40;
constexpr std::uint64_t bytes_around_frame = 128 + 128 + 64;  // headroom, struct rte_mbuf, mempool header and alignment
constexpr unsigned ethernet_bytes = 14 + 2 * 4;               // header and two VLAN tags

void read_device(Settings& section, engine::Options& to) {
  static const std::string allowed = "\"auto\", \"cpu\", or \"cuda:N\" with N from 0 to " +
                                     std::to_string(highest_gpu) +
                                     ", or a list of GPUs, each once, and \"cpu\": [\"cuda:0\", \"cuda:1\", \"cpu\"]";
  std::vector<std::string> names = section.values("device", allowed);
  if (names.empty()) return;
  const bool cores_too = names.size() > 1 && std::ranges::count(names, "cpu") == 1;
  if (cores_too) std::erase(names, "cpu");
  std::string devices;
  for (const std::string& name : names) devices += (devices.empty() ? "" : ",") + name;
  const auto indices = device::gpu_indices(devices);
  const bool is_word = (devices == "auto" && !cores_too) || devices == "cpu";
  if (is_word || (indices && std::ranges::max(*indices) <= highest_gpu)) {
    to.device = devices;
    to.cores_too = cores_too;
    return;
  }
  if (std::ranges::count(names, "auto") != 0 && (names.size() > 1 || cores_too)) {
    section.error("device", "\"auto\" stands alone: allowed is " + allowed);
    return;
  }
  section.error("device", "allowed is " + allowed);
}

std::string shown_device(const engine::Options& of) {
  const auto indices = device::gpu_indices(of.device);
  if (!indices || (indices->size() == 1 && !of.cores_too)) return option::literal(of.device);
  std::vector<std::string> names;
  for (const int index : *indices) names.push_back(device::gpu_name(index));
  if (of.cores_too) names.emplace_back("cpu");
  return option::list_literal(names);
}

void read_stagger(Settings& section, engine::Options& to) {
  if (section.is("stagger", "auto") || !section.has("stagger")) return;
  to.stagger = section.boolean("stagger", false) ? engine::Stagger::on : engine::Stagger::off;
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

Option<engine::Options> cores_option(const std::string& key, std::vector<int> engine::Options::*member,
                                     const std::string& none, std::string text) {
  return {key,
          std::move(text),
          [=](Settings& section, engine::Options& to) { to.*member = read_cores(section, key, none); },
          [=](const engine::Options& of) {
            const std::vector<int>& cores = of.*member;
            return cores.empty() ? option::literal(none) : fmt::format("[{}]", fmt::join(cores, ", "));
          },
          false,
          fmt::format("`\"{}\"`, or list of 0 to {}", none, highest_core)};
}

option::Range range_of(engine::Range range, const char* unit) {
  return {range.least, range.most, unit};
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
  const bool is_last = at + 1 == chain.size();
  if (is_last && !type->ends_chain) {
    return "\"" + name + "\" forwards nothing: the last function must be one of " + names_of_kind(false);
  }
  if (!is_last && type->ends_chain) {
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

// net_null would hand out frames that end behind their capacity.
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

const std::vector<Option<engine::Options>>& engine_settings() {
  using namespace engine;  // NOLINT(google-build-using-namespace): each line names several of its words
  static const std::vector<Option<Options>> all = {
      Option<Options>{"device",
                      "what executes batches; lanes are dealt to several GPUs, as many to each, those of their NUMA "
                      "node first. `\"auto\"`: each lane chooses "
                      "between its core and the first GPU, [whichever carries its load better](devices.md); without a "
                      "GPU its core, with one line in the log. A list with `\"cpu\"` does the same with these GPUs. "
                      "GPUs that are named without it compute all but low loads (`cpu_below`)",
                      read_device, [](const Options& of) { return shown_device(of); }}
          .takes("`\"auto\"`, `\"cpu\"`, `\"cuda:N\"` with N from 0 to 15, or a list such as `[\"cuda:0\", \"cuda:1\", "
                 "\"cpu\"]`"),
      option::duration("deadline", &Options::deadline, "",
                       "from receive to transmit, for every frame. Frames that miss it are counted. A configuration "
                       "whose bound exceeds it is refused ([time](engine.md#time)); on the CPU that bound is an "
                       "estimate")
          .takes("time up to `" + option::literal(duration_text(longest_deadline)) + "`"),
      option::duration("cycle", &Options::cycle, "auto",
                       "the scheduling period I: at each time point every open batch is handed on. `\"auto\"`: the "
                       "longest that the deadline allows, a tenth of it kept in reserve. Not used on the CPU alone, "
                       "where each lane computes at once"),
      option::number("overlap", &Options::overlap, range_of(overlap_range, "cycles"),
                     "cycles that a batch may spend on the device. The bound is (2 + overlap)·I + µ, and "
                     "the sleep of a lane where lanes sleep"),
      Option<Options>{"stagger",
                      "`true`: the lanes' time points are spread over the cycle, so that the GPU gets their batches "
                      "one after the other instead of all at once; `false`: all at once. `\"auto\"`: `true` where a "
                      "function of the chain has its batches go to the GPU lane by lane "
                      "([real time](real-time.md): what staggering is worth). The bound is the same. Not used on the "
                      "CPU alone",
                      read_stagger,
                      [](const Options& of) {
                        return std::string(of.stagger == Stagger::automatic ? "\"auto\""
                                           : of.stagger == Stagger::on      ? "true"
                                                                            : "false");
                      }}
          .takes("`\"auto\"`, `true`, `false`"),
      option::number("batch", &Options::batch, range_of(batch_range, "frames"), "frames of a batch at most"),
      option::number("batches", &Options::batches, range_of(batches_range, "batches"), "batches of a lane"),
      option::number("streams", &Options::streams, range_of(streams_range, "streams"), "CUDA streams"),
      option::duration("device_silence", &Options::device_silence, "auto",
                       "for so long a GPU may not answer for what it has before it is given up, and its lanes compute; "
                       "a call of its driver may take ten times as long. `\"auto\"`: by how long batches take, 100 ms "
                       "at least and two seconds at most ([when a GPU fails](device-failure.md))")
          .takes("`\"auto\"`, or a time from `\"1ms\"` to `\"60s\"`"),
      option::duration("device_return", &Options::device_return, "never",
                       "after so long a lost GPU is taken again, where that can be; each time after twice as long, up "
                       "to ten minutes, until it has been well for ten minutes. `\"never\"`: by `sluice ctl device "
                       "reset` alone ([when a GPU fails](device-failure.md#the-way-back))")
          .takes("`\"never\"`, or a time from `\"1s\"` to `\"3600s\"`"),
      option::word(
          "poll", &Options::poll, {{"auto", Poll::automatic}, {"busy", Poll::busy}, {"adaptive", Poll::adaptive}},
          "`\"busy\"`: lanes never sleep; `\"adaptive\"`: they sleep when idle, up to a quarter of the deadline where "
          "the port cannot wake them, which is part of the bound; `\"auto\"`: adaptive on four cores or fewer"),
      option::word(
          "admission", &Options::admission,
          {{"auto", Admit::automatic}, {"deadline", Admit::in_time}, {"all", Admit::all}},
          "`\"deadline\"`: a frame that has waited so long that it could not leave before its deadline is refused when "
          "it is collected, and counted as `overdue`, so that those behind it are on time. `\"all\"`: it is let in and "
          "leaves late. `\"auto\"`: `\"deadline\"` with a GPU. Ports that do not say when a frame arrived, which are "
          "all but `net_af_packet` and the memory replay port, have nothing to refuse. Only lanes which share a queue "
          "know how long a frame has waited for its lane behind it; else a lane that is too slow shows in the port's "
          "`missed`"),
      option::word(
          "scheduling", &Options::scheduling, {{"normal", Scheduling::normal}, {"realtime", Scheduling::realtime}},
          "`\"realtime\"`: lanes and the worker run above every ordinary thread (SCHED_FIFO); for cores that nothing "
          "else needs. Busy polling then wants `sysctl kernel.sched_rt_runtime_us=-1`"),
      cores_option("cores", &Options::cores, "auto",
                   "cores of the lanes, such as `[2, 3]`; lanes are dealt to them in turn. `\"auto\"`: on the NUMA "
                   "node of the lane's port, from the highest down; the first one is left to the rest"),
      cores_option("forwarder_cores", &Options::forwarder_cores, "shared",
                   "cores that forward what lanes have collected, such as `[4]`; lanes are dealt to them in turn. "
                   "`\"shared\"`: each lane forwards on its own core. Not with functions whose conversations or "
                   "streams are one thread's: `sluice check` names them"),
      cores_option(
          "compute_cores", &Options::compute_cores, "none",
          "cores that do a part of what lanes compute, such as `[5, 6]`, so that a flow is not bound to the "
          "speed of one core; all lanes share them. Lanes, forwarders and the worker are on other cores. For "
          "functions whose work is many jobs, such as cryptography: `sluice check` names them where none is in "
          "the chain ([engine](engine.md#helpers))"),
      option::number("worker_core", &Options::worker_core, {-1, highest_core},
                     "core of the device's worker; -1: chosen, on the NUMA node of the GPU"),
      option::word(
          "busy_cores", &Options::allow_busy_cores, {{"refuse", false}, {"allow", true}},
          "whether a core named above on which other programs take more than half of the time at the start is refused, "
          "or `\"allow\"`ed: its threads then wait for theirs, and frames miss deadlines"),
      option::word(
          "mode", &Options::mode,
          {{"full", Mode::full}, {"zero-load", Mode::zero_load}, {"collector-only", Mode::collector_only}},
          "for measuring: `\"zero-load\"` does everything but the device's work, `\"collector-only\"` receives, "
          "collects and frees"),
      option::number_or("cpu_below", &Options::cpu_below, {0, 1'000'000'000, "frames"}, "auto", -1,
                        "with fewer frames per cycle than this a lane computes on its own core, whatever the device; "
                        "0: never; `\"auto\"`: where lanes choose ([devices](devices.md)) what they choose, else "
                        "256, as long as they take less than half of the core's time"),
      Option<Options>{
          "chain",
          "the functions that are applied, in this order: `sluice functions` lists them. The last one "
          "forwards frames, or takes those that were only to be looked at; those before it look at frames, "
          "may drop, mark or copy them, or change what they carry. Each sees what those before it have made "
          "of a frame: an inspection before an encryption reads what is in clear, which is protected then",
          [](Settings& section, Options& to) { to.chain = read_chain(section, to.chain); },
          [](const Options& of) { return option::list_literal(of.chain); }}
          .takes("list of [functions](#functions)")};
  return all;
}

const std::vector<Option<port::MemoryOptions>>& memory_settings() {
  using port::Hugepages;
  using port::MemoryOptions;
  static const std::vector<Option<MemoryOptions>> all = {
      option::word(
          "hugepages", &MemoryOptions::hugepages,
          {{"auto", Hugepages::automatic}, {"off", Hugepages::off}, {"require", Hugepages::require}},
          "`\"auto\"`: when enough are free; `\"require\"`: refuse to start without; `\"off\"`: ordinary pages"),
      option::bytes("size", &MemoryOptions::size, "all that DPDK may take: frames and tables")
          .takes(option::Sizes{least_memory, most_memory}.text()),
      option::number("frames", &MemoryOptions::frames, {512, 1 << 22, "buffers"},
                     "frame buffers of each port queue, for each lane that shares it; at least twice its descriptors"),
      option::number("frame_bytes", &MemoryOptions::frame_bytes, {256, 16384, "bytes"},
                     "capacity for one frame; at least the largest MTU and 22")};
  return all;
}

void read_engine(Settings root, engine::Options& options) {
  Settings section = root.section("engine");
  option::read(engine_settings(), section, options);
  section.finish();
  if (options.deadline > longest_deadline) {
    section.error("deadline", "allowed is at most " + duration_text(longest_deadline));
  }
  const auto silence = options.device_silence;
  if (silence.count() != 0 && (silence < least_silence || silence > most_silence)) {
    section.error("device_silence",
                  "allowed is from " + duration_text(least_silence) + " to " + duration_text(most_silence));
  }
  const auto back = options.device_return;
  if (back.count() != 0 && (back < least_return || back > most_return)) {
    section.error("device_return", "allowed is from " + duration_text(least_return) + " to " +
                                       duration_text(most_return) + ", and \"never\"");
  }
}

// The engine's own rule, reported at the key that the user can change. "auto" may fall back to the CPU, whose bound is
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
  option::read(memory_settings(), section, memory);
  if (memory.size < least_memory || memory.size > most_memory) {
    section.error("size", "allowed is from " + bytes_text(least_memory) + " to " + bytes_text(most_memory));
  }
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
