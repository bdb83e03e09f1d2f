// What a running gateway says about itself at one moment: the one shape that the API, /metrics, ctl and top share.
//
// Counters count since start. Times are nanoseconds. Frames: rx + injected + emitted + cloned = tx + consumed + punted
// + dropped + in flight. tx: taken by the port's driver.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "packet/ip_address.h"

namespace sluice::control {

struct LaneSnapshot {
  std::uint32_t index = 0;
  std::string port;  // name of the port that it receives from
  std::uint32_t queue = 0;
  std::int32_t core = -1;
  std::uint64_t rx_frames = 0, rx_bytes = 0, tx_frames = 0, tx_bytes = 0;
  std::uint64_t injected = 0;  // frames from the host's twin, to be transmitted
  std::uint64_t emitted = 0;   // made by an element besides what was received
  std::uint64_t cloned = 0;    // copies that an element made
  std::uint64_t consumed = 0;  // taken over by an element
  std::uint64_t punted = 0;    // frames to the host's twin
  std::uint64_t dropped = 0;
  std::uint64_t in_flight = 0;
  std::uint64_t batches = 0;
  std::uint64_t sealed_full = 0;     // batches handed on before the time point, because they were full
  std::uint64_t receive_stalls = 0;  // polls that could not receive: every batch was in use
  std::uint64_t misses = 0;          // frames sent after their deadline
  std::uint64_t misses_stalled = 0;  // of these: not the gateway's doing, its threads were kept from running
  std::uint64_t collecting_ns = 0;   // that its threads have worked, without polls that found nothing
  std::uint64_t forwarding_ns = 0;
  std::string device;  // where its batches are computed now: "cpu", its own core, or "cuda:0"
  // Of a lane that chooses (engine/device_choice.h); else empty and 0.
  std::string chosen;                            // why it is there
  std::uint64_t core_rate = 0, device_rate = 0;  // frames in a second when it was saturated there; 0: it was not
  std::uint64_t core_frame_ns = 0;   // that a frame takes the core, by a probe, while the GPU has the others
  std::uint64_t device_changes = 0;  // between core and GPU
};

struct PortSnapshot {
  std::uint32_t index = 0;
  std::string name, device, twin, mac;
  std::uint32_t mtu = 0;
  std::uint32_t interface_mtu = 0;  // of the kernel interface under it, now; 0: there is none
  bool link_up = false;
  // The interface under the port, or its twin, was deleted: until a restart nothing passes there.
  bool interface_deleted = false, twin_deleted = false;
  std::string drops_nearly_all_as;  // the reason (drop_watch.h); empty: it does not
  bool twin_down = false;           // the twin was set down, or is there no more: the host gets no frames of this port
  std::uint64_t rx_frames = 0, rx_bytes = 0, tx_frames = 0, tx_bytes = 0;
  std::uint64_t missed = 0;  // lost by the device before receive
  std::uint64_t rx_errors = 0;
  std::uint64_t tx_errors = 0;       // of tx_frames: the driver took them and failed to send them
  bool fails_to_send = false;        // second after second (send_watch.h)
  std::uint64_t to_host_lost = 0;    // punted, but the twin did not take them: it is down or gone
  std::uint64_t from_host_lost = 0;  // sent by the host, but the lane did not take them: never counted as injected
  // Of received frames: those whose checksum a local sender had left to a card that was not there; and packets longer
  // than the MTU, of which frames were made.
  std::uint64_t checksums_finished = 0, cut_up = 0;
  bool arrival_unseen = false;  // how long frames wait to be received is not known (port/virtual_device.h)
  // Of a driver that does not say which checksums are unfinished: TCP and UDP frames that were looked at, those of them
  // with a wrong checksum, and whether most are now (checksum_watch.h).
  std::uint64_t checksums_checked = 0, checksums_wrong = 0;
  bool checksums_unfinished = false;
  // A router's twin that others are to reach, and that has no address but its link's own.
  bool twin_unaddressed = false;
  std::vector<std::string> addresses_missing;  // of the configuration, that its twin does not have
};

struct DropSnapshot {
  std::string reason;  // packet/reason.h
  std::string text;
  std::uint64_t frames = 0;
};

// ICMP errors that Sluice itself sent, for routes that the kernel does not have; they are transmitted frames too.
struct IcmpErrorSnapshot {
  std::string reason;  // packet/reason.h: what they answer
  std::uint64_t frames = 0;
};

// What a function of the chain counts or holds besides (engine/element.h).
struct MetricSnapshot {
  std::string name;
  std::string text;
  std::uint64_t value = 0;
  bool counts = true;  // since start
};

struct DeviceSnapshot {
  std::string name;   // cpu | cuda:N
  std::string text;   // "NVIDIA H200"
  std::string state;  // up | down
  std::uint64_t batches = 0, frames = 0;
  std::uint64_t rescued_batches = 0, rescued_frames = 0;  // computed here because another device failed
  // Of a GPU that is lost:
  std::string why;
  std::uint64_t since = 0;           // Unix time, in seconds
  std::uint64_t longest_gap_ns = 0;  // the longest that a batch waited, from its sealing until a core had computed it
  std::uint64_t frames_aside = 0;    // now: buffers that are not used because it may still write to them
  std::uint64_t resets = 0;          // times that it was lost and came back
};

// "cuda:0 is down since 2026-11-28 23:59:59 UTC: it has not finished a batch for 10ms; a batch waited 12 ms at most".
std::string device_text(const DeviceSnapshot& device);

// A core of compute_cores.
struct HelperSnapshot {
  int core = -1;
  std::uint64_t spans = 0, jobs = 0, busy_ns = 0;  // parts of batches that it has computed, and their jobs
};

// How often the machine kept threads from their work for over 50 µs (engine/stall.h).
struct StallSnapshot {
  std::string thread;  // lanes | worker | helpers
  std::uint64_t times = 0, sum_ns = 0, longest_ns = 0;
};

// Jobs of a kind that functions of the chain submit (engine/jobs.h).
struct JobSnapshot {
  std::string kind;
  std::uint64_t submitted = 0, completed = 0, late = 0;
  std::uint64_t full = 0, too_late = 0, refused_stopped = 0;  // refused
  std::uint64_t expired = 0, failed_stopped = 0;              // failed
  std::uint64_t in_flight = 0;
  std::uint64_t batches_gpu = 0, jobs_gpu = 0, batches_cpu = 0, jobs_cpu = 0;
  std::uint64_t handed_over = 0, long_launches = 0;
};

struct LatencyBucket {
  std::uint64_t at_most_ns = 0;
  std::uint64_t frames = 0;  // all frames up to at_most_ns, those of lower buckets included
};

// From the receive burst to the transmit burst, of every transmitted frame.
struct LatencySnapshot {
  std::uint64_t frames = 0;
  std::uint64_t sum_ns = 0;
  std::uint64_t p50_ns = 0, p90_ns = 0, p99_ns = 0, p999_ns = 0, max_ns = 0;
  std::vector<LatencyBucket> buckets;
};

struct TroubleRow {
  std::string what, remedy;
};

struct RouteCounts {
  std::uint64_t ipv4 = 0, ipv6 = 0, neighbours = 0;
};

// A step of the control path that takes long, such as a reload of a big table.
struct LoadingSnapshot {
  std::string what;                   // empty: nothing is being loaded
  std::uint64_t done = 0, total = 0;  // total 0: not known
};

// A function of the chain.
struct FunctionRow {
  std::string name, text;
  std::string from;  // "built in", or a plug-in's path, name and version
  std::string view;  // JSON, what it shows of itself; empty: nothing
};

// The mirror of the kernel's routes and neighbours; all 0 without one.
struct MirrorSnapshot {
  std::uint64_t prefixes = 0;    // in the kernel's tables
  std::uint64_t routes = 0;      // of them in force here
  std::uint64_t neighbours = 0;  // of the kernel, in force here
  std::uint64_t refused = 0;     // routes and neighbours that have no capacity here now
  std::uint64_t messages = 0, malformed = 0, overruns = 0, resyncs = 0, probes = 0, unsent = 0, refusals = 0;
  std::string last_refusal;
  std::uint64_t mended = 0;  // routes and neighbours that comparisons found changed without a message
};

struct Snapshot {
  std::string version;
  std::uint64_t uptime_ns = 0;
  std::vector<std::string> chain;
  std::string mode;    // full | zero-load | collector-only
  std::string device;  // as configured: auto | cpu | cuda:N
  std::uint64_t deadline_ns = 0;
  std::uint64_t bound_ns = 0, cycle_ns = 0;  // 0: no cycle, each lane computes on its own core
  std::uint32_t overlap = 1;
  std::uint64_t cycles = 0, late_cycles = 0, overruns = 0, slow_launches = 0;
  // Of the worker: launches, and the time in which it launched or handed back, without looks that found nothing.
  std::uint64_t launches = 0, worker_busy_ns = 0;
  std::uint64_t reloads_done = 0, reloads_refused = 0;
  // What of the kernel's forwarding is off, and how to put it on, where it forwards what the fast path leaves to it;
  // empty: nothing.
  std::string forwarding_off;
  // Files that the program appends to and cannot write now, each with why (base/appended_file.h).
  std::vector<std::string> output_troubles;
  // What functions of the chain and their services say is wrong with them (engine/self_check.h, service.h).
  std::vector<TroubleRow> function_troubles;
  // The reason for which nearly all that came in by all ports together was dropped, where no port shows it; empty:
  // none.
  std::string drops_nearly_all_as;
  bool conserved = true;  // the equation above holds, as far as a running gateway can see
  std::vector<LaneSnapshot> lanes;
  std::vector<PortSnapshot> ports;
  std::vector<DropSnapshot> drops;
  std::vector<IcmpErrorSnapshot> icmp_errors;
  std::vector<MetricSnapshot> metrics;
  std::vector<DeviceSnapshot> devices;
  std::vector<HelperSnapshot> helpers;
  std::vector<JobSnapshot> jobs;
  std::vector<StallSnapshot> stalls;
  LatencySnapshot latency;
  RouteCounts routes;
  MirrorSnapshot mirror;
  LoadingSnapshot loading;
};

// The sum of all lanes; index, port, queue and core are of no meaning.
LaneSnapshot total(const Snapshot& snapshot);

struct NextHopRow {
  std::string port;     // empty: the gateway is not on-link, no port has a link that its address is on
  std::string gateway;  // empty: on the link
  std::uint32_t weight = 1;
  bool resolved = true;  // false: the gateway's link address is not known, or it is not on-link
};

struct RouteRow {
  std::string prefix;
  std::string kind;  // unicast | local | blackhole | unreachable
  std::vector<NextHopRow> next_hops;
  std::uint32_t metric = 0;
  std::string protocol;  // kernel | static | bgp | ... or a number
};

struct RouteQuery {
  // Only routes that contain this prefix or lie inside it.
  std::optional<packet::IpPrefix> prefix;
  std::uint32_t limit = 100;
  bool matches(const packet::IpPrefix& route) const;
};

struct RouteTable {
  std::vector<RouteRow> routes;  // `limit` at most
  std::uint64_t matching = 0;    // how many there are without the limit
};

struct NeighbourRow {
  std::string port, address, mac;
};

}  // namespace sluice::control
