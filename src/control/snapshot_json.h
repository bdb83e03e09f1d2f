// JSON of the snapshot, both ways: field names are the members' names. A field that is absent keeps its default, so
// that a newer ctl reads an older daemon.
#pragma once

#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "control/snapshot.h"

namespace sluice::control {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LaneSnapshot, index, port, queue, core, rx_frames, rx_bytes, tx_frames,
                                                tx_bytes, injected, emitted, cloned, consumed, punted, dropped,
                                                in_flight, batches, sealed_full, receive_stalls, misses, misses_stalled,
                                                collecting_ns, forwarding_ns, device, chosen, core_rate, device_rate,
                                                core_frame_ns, device_changes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(PortSnapshot, index, name, device, twin, mac, mtu, link_up,
                                                interface_deleted, twin_deleted, drops_nearly_all_as, twin_down,
                                                rx_frames, rx_bytes, tx_frames, tx_bytes, missed, rx_errors, tx_errors,
                                                to_host_lost, from_host_lost, checksums_finished, cut_up,
                                                arrival_unseen, checksums_checked, checksums_wrong,
                                                checksums_unfinished, fails_to_send, twin_unaddressed, interface_mtu,
                                                addresses_missing)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DropSnapshot, reason, text, frames)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(IcmpErrorSnapshot, reason, frames)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(MetricSnapshot, name, text, value, counts)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(DeviceSnapshot, name, text, state, batches, frames, rescued_batches,
                                                rescued_frames, why, since, longest_gap_ns, frames_aside, resets)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(JobSnapshot, kind, submitted, completed, late, full, too_late,
                                                refused_stopped, expired, failed_stopped, in_flight, batches_gpu,
                                                jobs_gpu, batches_cpu, jobs_cpu, handed_over, long_launches)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(HelperSnapshot, core, spans, jobs, busy_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StallSnapshot, thread, times, sum_ns, longest_ns)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LatencyBucket, at_most_ns, frames)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LatencySnapshot, frames, sum_ns, p50_ns, p90_ns, p99_ns, p999_ns,
                                                max_ns, buckets)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(TroubleRow, what, remedy)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RouteCounts, ipv4, ipv6, neighbours)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(MirrorSnapshot, prefixes, routes, neighbours, refused, messages,
                                                malformed, overruns, resyncs, probes, unsent, refusals, last_refusal,
                                                mended)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(LoadingSnapshot, what, done, total)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(Snapshot, version, uptime_ns, chain, mode, device, deadline_ns,
                                                bound_ns, cycle_ns, overlap, cycles, late_cycles, overruns,
                                                slow_launches, launches, worker_busy_ns, reloads_done, reloads_refused,
                                                forwarding_off, output_troubles, function_troubles, drops_nearly_all_as,
                                                conserved, lanes, ports, drops, icmp_errors, metrics, devices, helpers,
                                                jobs, stalls, latency, routes, mirror, loading)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NextHopRow, port, gateway, weight, resolved)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RouteRow, prefix, kind, next_hops, metric, protocol)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(RouteTable, routes, matching)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(NeighbourRow, port, address, mac)

// Any of the types above (or a vector of them).
using sluice::from_json_text;
using sluice::to_json_text;

}  // namespace sluice::control
