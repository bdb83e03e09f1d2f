// A snapshot with a value of its own in every field, for tests.
#pragma once

#include "control/snapshot.h"

namespace sluice::control {

inline Snapshot sample_snapshot() {
  Snapshot s;
  s.version = "0.1.0";
  s.reloads_done = 5;
  s.reloads_refused = 2;
  s.uptime_ns = 3'723'000'000'000;
  s.chain = {"route"};
  s.mode = "full";
  s.device = "auto";
  s.deadline_ns = 1'000'000;
  s.bound_ns = 910'000;
  s.cycle_ns = 300'000;
  s.overlap = 2;
  s.cycles = 12;
  s.late_cycles = 1;
  s.overruns = 3;
  s.slow_launches = 9;
  s.launches = 11;
  s.worker_busy_ns = 5'000;
  s.stalls = {{"lanes", 5, 900'000, 400'000}, {"worker", 1, 60'000, 60'000}, {"helpers", 2, 140'000, 80'000}};
  s.helpers = {{5, 40, 900, 3'000'000'000}, {6, 30, 700, 2'500'000'000}};
  s.function_troubles = {{"rtsp: a rule is missing", ""}};
  s.forwarding_off = "IPv6 forwarding is off (sysctl -w net.ipv6.conf.all.forwarding=1)";
  s.output_troubles = {"/var/log/eve.json cannot be written: No space left on device"};
  s.conserved = true;
  s.lanes = {{0,       "left",    0,    1,  1000, 64000, 900, 57600, 10,   3,    2,        5,
              20,      85,        5,    40, 2,    7,     4,   3,     6000, 3000, "cuda:0", "the core carried less",
              500'000, 4'000'000, 1800, 3},
             {1, "right", 0, -1, 2000, 128000, 2000, 128000, 0, 0, 0, 0, 0, 0, 0, 50, 0, 0, 0, 0, 1000, 2000, "cpu"}};
  s.ports.resize(2);
  PortSnapshot& left = s.ports[0];
  left.name = "left";
  left.device = "net_af_packet0,iface=veth0";
  left.twin = "twin0";
  left.mac = "02:00:00:00:00:01";
  left.mtu = 1500;
  left.link_up = true;
  left.rx_frames = 1000;
  left.rx_bytes = 64000;
  left.tx_frames = 2000;
  left.tx_bytes = 128000;
  left.missed = 8;
  left.rx_errors = 9;
  left.tx_errors = 6;
  left.to_host_lost = 3;
  left.from_host_lost = 2;
  left.checksums_checked = 40;
  left.checksums_wrong = 4;
  left.twin_unaddressed = true;
  PortSnapshot& right = s.ports[1];
  right.index = 1;
  right.name = "right";
  right.device = "0000:3b:00.0";
  right.mac = "02:00:00:00:00:02";
  right.mtu = 9000;
  right.rx_frames = 2000;
  right.rx_bytes = 128000;
  right.tx_frames = 900;
  right.tx_bytes = 57600;
  right.to_host_lost = 1;
  s.drops = {{"no_route", "no route matches", 80}, {"ttl_expired", "the TTL ended", 5}};
  s.icmp_errors = {{"ttl_expired", 7}, {"too_big", 2}};
  s.metrics = {{"inspect_alerts", "alerts", 3, true}, {"inspect_flows", "conversations under way", 5, false}};
  s.devices = {{"cpu", "8 cores", "up", 30, 600, 1, 20}, {"cuda:0", "NVIDIA \"H200\"", "down", 60, 2300, 0, 0}};
  s.devices[1].since = 1'700'000'000;
  s.devices[1].longest_gap_ns = 12'300'000;
  s.devices[1].frames_aside = 64;
  s.devices[1].resets = 2;
  s.jobs = {{"crypto", 1000, 900, 7, 30, 20, 1, 5, 2, 42, 25, 700, 10, 200, 3, 4}};
  s.latency = {2900,      580'000'000,
               150'000,   250'000,
               400'000,   700'000,
               1'200'000, {{100'000, 500}, {200'000, 2000}, {500'000, 2880}, {1'000'000, 2896}, {2'000'000, 2900}}};
  s.routes = {600'000, 200'000, 12};
  s.mirror = {599'990, 599'985, 11, 5, 700'000, 1, 2, 3, 40, 6, 70, "the IPv4 route table is full", 9};
  s.loading = {"routes", 250'000, 500'000};
  return s;
}

}  // namespace sluice::control
