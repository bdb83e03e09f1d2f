#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "cli/report.h"
#include "cli/text.h"

namespace sluice::cli {
namespace {

using control::LaneSnapshot;
using control::LatencySnapshot;
using control::Snapshot;

// What changed between two snapshots of the same gateway. Rows are matched by position: a running gateway's do not
// change.
class Rates {
 public:
  Rates(const Snapshot& now, const Snapshot* before) : now_(now), before_(usable(now, before) ? before : nullptr) {
    const std::uint64_t since = before_ == nullptr ? 0 : before_->uptime_ns;
    seconds_ = std::max(1e-3, static_cast<double>(now.uptime_ns - since) / 1e9);
  }
  template <typename Row>
  std::uint64_t change(std::vector<Row> Snapshot::*rows, std::size_t i, std::uint64_t Row::*field) const {
    const bool known = before_ != nullptr && i < (before_->*rows).size();
    const std::uint64_t old = known ? (before_->*rows)[i].*field : 0;
    const std::uint64_t value = (now_.*rows)[i].*field;
    return value >= old ? value - old : 0;
  }
  template <typename Row>
  double per_second(std::vector<Row> Snapshot::*rows, std::size_t i, std::uint64_t Row::*field) const {
    return static_cast<double>(change(rows, i, field)) / seconds_;
  }
  double lanes_per_second(std::uint64_t LaneSnapshot::*field) const {
    double sum = 0;
    for (std::size_t i = 0; i < now_.lanes.size(); ++i) sum += per_second(&Snapshot::lanes, i, field);
    return sum;
  }
  // By name: a reason appears with its first frame.
  double drops_per_second(const control::DropSnapshot& now) const {
    std::uint64_t old = 0;
    for (std::size_t i = 0; before_ != nullptr && i < before_->drops.size(); ++i) {
      if (before_->drops[i].reason == now.reason) old = before_->drops[i].frames;
    }
    return static_cast<double>(now.frames - std::min(old, now.frames)) / seconds_;
  }
  // The bucket that `fraction` of the frames sent in between do not exceed; 0 when there were none.
  std::uint64_t latency(double fraction) const {
    const LatencySnapshot& now = now_.latency;
    const LatencySnapshot none;
    const LatencySnapshot& old =
        before_ != nullptr && before_->latency.buckets.size() == now.buckets.size() ? before_->latency : none;
    const double frames = static_cast<double>(now.frames - old.frames);
    if (frames == 0) return 0;
    for (std::size_t i = 0; i < now.buckets.size(); ++i) {
      const std::uint64_t up_to = now.buckets[i].frames - (old.buckets.empty() ? 0 : old.buckets[i].frames);
      if (static_cast<double>(up_to) >= fraction * frames) return now.buckets[i].at_most_ns;
    }
    return now.max_ns;
  }

 private:
  // Not after a restart of the gateway.
  static bool usable(const Snapshot& now, const Snapshot* before) {
    return before != nullptr && before->uptime_ns < now.uptime_ns && before->latency.frames <= now.latency.frames &&
           before->lanes.size() == now.lanes.size();
  }

  const Snapshot& now_;
  const Snapshot* before_;
  double seconds_ = 1;
};

std::string head(const Snapshot& s, const Rates& rates) {
  const LaneSnapshot sum = control::total(s);
  std::string out = fmt::format("sluice {}  {}  up {}\ndeadline {}", s.version, fmt::join(s.chain, ","),
                                clock_text(s.uptime_ns / 1'000'000'000), short_duration(s.deadline_ns));
  if (s.bound_ns != 0) out += "  " + bound_text(s.bound_ns, s.cycle_ns != 0);
  if (s.cycle_ns != 0) out += fmt::format("  cycle {}", short_duration(s.cycle_ns));
  const auto flow = [&](const char* name, auto frames, auto bytes) {
    return fmt::format(
        "{} {} frames/s, {}bit/s", name, short_number(rates.lanes_per_second(frames)),
        short_number(8 * rates.lanes_per_second(bytes)) + (8 * rates.lanes_per_second(bytes) < 999.5 ? " " : ""));
  };
  out += "\n" + flow("rx", &LaneSnapshot::rx_frames, &LaneSnapshot::rx_bytes) + "   " +
         flow("tx", &LaneSnapshot::tx_frames, &LaneSnapshot::tx_bytes);
  out += fmt::format("\ndropped {}/s   punted to the host {}/s   injected by it {}/s   in flight {}\n",
                     short_number(rates.lanes_per_second(&LaneSnapshot::dropped)),
                     short_number(rates.lanes_per_second(&LaneSnapshot::punted)),
                     short_number(rates.lanes_per_second(&LaneSnapshot::injected)), sum.in_flight);
  const LatencySnapshot& l = s.latency;
  const auto recent = [&](double fraction) {
    const std::uint64_t ns = rates.latency(fraction);
    return ns == 0 ? std::string("-") : "< " + short_duration(ns);
  };
  out += fmt::format("latency now   p50 {}   p99 {}\n", recent(0.5), recent(0.99));
  out += fmt::format("since start   p50 {}   p90 {}   p99 {}   p99.9 {}   max {}\n", short_duration(l.p50_ns),
                     short_duration(l.p90_ns), short_duration(l.p99_ns), short_duration(l.p999_ns),
                     short_duration(l.max_ns));
  out += fmt::format("missed deadlines {} ({}/s)   routes {} IPv4, {} IPv6   counters {}\n", sum.misses,
                     short_number(rates.lanes_per_second(&LaneSnapshot::misses)), s.routes.ipv4, s.routes.ipv6,
                     s.conserved ? "add up" : "DO NOT add up");
  std::string unseen;
  for (const control::PortSnapshot& port : s.ports) {
    if (port.arrival_unseen) unseen += (unseen.empty() ? "" : ", ") + port.name;
  }
  if (!unseen.empty()) out += "latencies are without the wait to be received at: " + unseen + "\n";
  return out + degraded_line(s, "degraded: ");
}

std::string port_table(const Snapshot& s, const Rates& rates, bool color) {
  using control::PortSnapshot;
  Table table({"PORT", "LINK", ">RX/s", ">RX bit/s", ">TX/s", ">TX bit/s", ">MISSED", ">ERRORS"});
  for (std::size_t i = 0; i < s.ports.size(); ++i) {
    const PortSnapshot& port = s.ports[i];
    const auto rate = [&](auto field) { return rates.per_second(&Snapshot::ports, i, field); };
    table.add({port.name, link_text(port), short_number(rate(&PortSnapshot::rx_frames)),
               short_number(8 * rate(&PortSnapshot::rx_bytes)), short_number(rate(&PortSnapshot::tx_frames)),
               short_number(8 * rate(&PortSnapshot::tx_bytes)), std::to_string(port.missed),
               std::to_string(port.rx_errors + port.tx_errors)});
  }
  return table.str(color);
}

std::string lane_table(const Snapshot& s, const Rates& rates, bool color) {
  Table table({">LANE", "PORT", ">QUEUE", ">CORE", ">RX/s", ">TX/s", ">BATCHES/s", ">FRAMES/BATCH", ">BUSY",
               ">NS/FRAME", ">IN FLIGHT", ">STALLS", ">MISSED"});
  for (std::size_t i = 0; i < s.lanes.size(); ++i) {
    const LaneSnapshot& lane = s.lanes[i];
    const auto rate = [&](auto field) { return rates.per_second(&Snapshot::lanes, i, field); };
    const double batches = rate(&LaneSnapshot::batches);
    const double busy = rate(&LaneSnapshot::collecting_ns) + rate(&LaneSnapshot::forwarding_ns);  // ns each second
    const double frames = rate(&LaneSnapshot::rx_frames);
    table.add({std::to_string(lane.index), lane.port, std::to_string(lane.queue),
               lane.core < 0 ? "-" : std::to_string(lane.core), short_number(rate(&LaneSnapshot::rx_frames)),
               short_number(rate(&LaneSnapshot::tx_frames)), short_number(batches),
               batches > 0 ? short_number(frames / batches) : "-", fmt::format("{:.0f} %", busy / 1e7),
               frames > 0 ? short_number(busy / frames) : "-", std::to_string(lane.in_flight),
               std::to_string(lane.receive_stalls), std::to_string(lane.misses)});
  }
  return table.str(color);
}

std::string device_table(const Snapshot& s, const Rates& rates, bool color) {
  using control::DeviceSnapshot;
  Table table({"DEVICE", "STATE", ">BATCHES/s", ">FRAMES/s", ">RESCUED", "IS"});
  for (std::size_t i = 0; i < s.devices.size(); ++i) {
    const auto rate = [&](auto field) { return short_number(rates.per_second(&Snapshot::devices, i, field)); };
    table.add({s.devices[i].name, s.devices[i].state, rate(&DeviceSnapshot::batches), rate(&DeviceSnapshot::frames),
               std::to_string(s.devices[i].rescued_frames), s.devices[i].text});
  }
  return table.str(color);
}

std::string drop_table(const Snapshot& s, const Rates& rates, bool color) {
  Table table({"DROPPED", ">/s", ">FRAMES", "BECAUSE"});
  for (const control::DropSnapshot& drop : s.drops) {
    if (drop.frames == 0) continue;
    table.add({drop.reason, short_number(rates.drops_per_second(drop)), std::to_string(drop.frames), drop.text});
  }
  if (!table.empty()) return table.str(color);
  std::uint64_t missed = 0;
  for (const control::PortSnapshot& port : s.ports) missed += port.missed;
  return missed == 0 ? "nothing dropped\n"
                     : fmt::format("nothing dropped; {} missed by ports\n", fmt::group_digits(missed));
}

// Cuts lines to `width` columns; the sequences of bold type take none.
std::string cut(const std::string& text, unsigned width) {
  std::string out;
  unsigned column = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      const std::size_t end = std::min(text.find('m', i), text.size() - 1);
      out.append(text, i, end - i + 1);
      i = end;
    } else if (text[i] == '\n') {
      out.push_back('\n');
      column = 0;
    } else if (width == 0 || column < width) {
      out.push_back(text[i]);
      ++column;
    }
  }
  return out;
}

}  // namespace

std::string top_report(const Snapshot& now, const Snapshot* before, const TopStyle& style) {
  const Rates rates(now, before);
  return cut(head(now, rates) + "\n" + port_table(now, rates, style.color) + "\n" +
                 lane_table(now, rates, style.color) + "\n" + device_table(now, rates, style.color) + "\n" +
                 drop_table(now, rates, style.color),
             style.width);
}

}  // namespace sluice::cli
