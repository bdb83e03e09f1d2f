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
  s.away = {{"lanes", 5, 900'000, 400'000}, {"worker", 1, 60'000, 60'000}};
  s.rtsp_ailment = "rtsp: a rule is missing";
  s.forwarding_off = "IPv6 forwarding is off (sysctl -w net.ipv6.conf.all.forwarding=1)";
  s.conserved = true;
  s.lanes = {{0, "left", 0, 1, 1000, 64000, 900, 57600, 10, 20, 85, 5, 40, 2, 7, 4, 3, 6000, 3000},
             {1, "right", 0, -1, 2000, 128000, 2000, 128000, 0, 0, 0, 0, 50, 0, 0, 0, 0, 1000, 2000}};
  s.ports = {{0, "left", "net_af_packet0,iface=veth0", "twin0", "02:00:00:00:00:01", 1500, true, false, false, false,
              1000, 64000, 2000, 128000, 8, 9, 6, 3, 2},
             {1, "right", "0000:3b:00.0", "", "02:00:00:00:00:02", 9000, false, false, false, false, 2000, 128000, 900,
              57600, 0, 0, 0, 1, 0}};
  s.drops = {{"no_route", "no route matches", 80}, {"ttl_expired", "the TTL ended", 5}};
  s.icmp_errors = {{"ttl_expired", 7}, {"too_big", 2}};
  s.figures = {{"inspect_alerts", "alerts", 3, true}, {"inspect_flows", "conversations under way", 5, false}};
  s.devices = {{"cpu", "8 cores", "up", 30, 600, 1, 20}, {"cuda:0", "NVIDIA \"H200\"", "down", 60, 2300, 0, 0}};
  s.latency = {2900,      580'000'000,
               150'000,   250'000,
               400'000,   700'000,
               1'200'000, {{100'000, 500}, {200'000, 2000}, {500'000, 2880}, {1'000'000, 2896}, {2'000'000, 2900}}};
  s.routes = {600'000, 200'000, 12};
  s.mirror = {599'990, 599'985, 11, 5, 700'000, 1, 2, 3, 40, 6, 70, "the IPv4 route table is full"};
  s.loading = {"routes", 250'000, 500'000};
  return s;
}

}  // namespace sluice::control
