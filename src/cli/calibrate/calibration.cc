#include "cli/calibrate/calibration.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cli/text.h"
#include "engine/bound.h"
#include "engine/element.h"

namespace sluice::cli {
namespace {

using engine::Profile;
using engine::ProfileCapacity;
using engine::ProfileCell;
using std::chrono::nanoseconds;

constexpr unsigned first_lowered_part = 16;  // of a B_I that did not hold
constexpr unsigned most_holds = 6;           // then there is none

struct Place {
  nanoseconds cycle;
  unsigned streams, packet;
};

class Calibration {
 public:
  Calibration(const CalibrationPlan& plan, const BenchOpener& open, const CalibrationProgress& progress,
              const ProfileCheck& accepts, Profile& profile)
      : plan_(plan), open_(open), progress_(progress), accepts_(accepts), profile_(profile) {}

  Expected<void> run() {
    const std::size_t grid = plan_.cycles.size() * plan_.streams.size();
    const std::size_t one = plan_.shares.size();
    const std::size_t holds = plan_.hold.count() > 0 ? plan_.cycles.size() : 0;
    total_ = static_cast<unsigned>(1 + grid * one + plan_.cycles.size() * plan_.steps + holds +
                                   (plan_.packets.size() - 1) * one);
    profile_.packet = plan_.packets.front();
    auto step = saturate();
    if (step && accepts_) step = accepts_(planned_profile(plan_, profile_));
    for (const nanoseconds cycle : plan_.cycles) {
      step = step ? measure_cycle(cycle) : step;
    }
    // The other sizes where the largest packets do best.
    const auto best = std::ranges::max_element(profile_.capacities, {}, &ProfileCapacity::rate);
    for (std::size_t i = 1; step && i < plan_.packets.size(); ++i) {
      step = measure_shares({best->cycle, best->streams, plan_.packets[i]});
    }
    if (!step) return step;
    fit(*best);
    return accepts_ ? accepts_(profile_) : step;
  }

 private:
  Expected<void> saturate() {
    const Place place{plan_.cycles[plan_.cycles.size() / 2], plan_.streams.back(), plan_.packets.front()};
    auto bench = open(place);
    if (!bench) return tl::unexpected(bench.error());
    const auto cell = measure(**bench, place, 0);
    if (!cell) return tl::unexpected(cell.error());
    saturated_ = cell->carried;
    if (saturated_ == 0) return make_error("nothing was carried at the highest rate, so there is nothing to measure");
    return {};
  }

  Expected<void> measure_cycle(nanoseconds cycle) {
    ProfileCapacity capacity{cycle, plan_.streams.front(), 0};
    for (const unsigned streams : plan_.streams) {
      const std::size_t first = profile_.cells.size();
      if (auto ok = measure_shares({cycle, streams, plan_.packets.front()}); !ok) return ok;
      // Fewer streams win where more carry no more.
      std::uint64_t carried = 0;
      for (std::size_t i = first; i < profile_.cells.size() && profile_.cells[i].schedulable; ++i) {
        carried = profile_.cells[i].offered;
      }
      if (carried > capacity.rate) capacity = {cycle, streams, carried};
    }
    return search(capacity);
  }

  Expected<void> measure_shares(const Place& place) {
    auto bench = open(place);
    if (!bench) return tl::unexpected(bench.error());
    for (const double share : plan_.shares) {
      const auto cell = measure(**bench, place, static_cast<std::uint64_t>(static_cast<double>(saturated_) * share));
      if (!cell) return tl::unexpected(cell.error());
    }
    return {};
  }

  // Between the highest share that was schedulable and the next one.
  Expected<void> search(ProfileCapacity capacity) {
    auto bench = open({capacity.cycle, capacity.streams, plan_.packets.front()});
    if (!bench) return tl::unexpected(bench.error());
    std::uint64_t low = capacity.rate, high = saturated_;
    for (const double share : plan_.shares) {
      const auto rate = static_cast<std::uint64_t>(static_cast<double>(saturated_) * share);
      if (rate > low) high = std::min(high, rate);
    }
    for (unsigned step = 0; step < plan_.steps && low < high; ++step) {
      const std::uint64_t middle = low + (high - low) / 2;
      const auto cell = measure(**bench, {capacity.cycle, capacity.streams, plan_.packets.front()}, middle);
      if (!cell) return tl::unexpected(cell.error());
      (cell->schedulable ? low : high) = middle;
    }
    capacity.rate = low;
    if (auto held = hold(**bench, capacity); !held) return held;
    profile_.capacities.push_back(capacity);
    return {};
  }

  // The best of some short tries is what the machine carries at its best. Each failure lowers it by twice as large a
  // part as the one before, a half at most.
  Expected<void> hold(Bench& bench, ProfileCapacity& capacity) {
    const Place place{capacity.cycle, capacity.streams, plan_.packets.front()};
    unsigned part = first_lowered_part;
    if (capacity.rate != 0) capacity.held = std::chrono::duration_cast<nanoseconds>(plan_.hold);
    for (unsigned tried = 0; plan_.hold.count() > 0 && capacity.rate != 0; ++tried) {
      if (tried != 0) ++total_;
      say(place, capacity.rate, fmt::format(", for {:.0f} s", plan_.hold.count()));
      ++done_;
      auto cell = bench.measure(capacity.rate, plan_.hold);
      if (!cell) return tl::unexpected(cell.error());
      add(*cell, place, capacity.rate);
      if (cell->schedulable) return {};
      capacity.rate = tried + 1 < most_holds ? capacity.rate - capacity.rate / part : 0;
      part = std::max(2U, part / 2);
    }
    return {};
  }

  Expected<std::unique_ptr<Bench>> open(const Place& place) {
    progress_("setting up", done_, total_);
    return open_(place.cycle, place.streams, place.packet);
  }

  void say(const Place& place, std::uint64_t rate, const std::string& length = {}) {
    const std::string where =
        place.cycle.count() == 0
            ? ""
            : fmt::format("cycle {}, {} streams, ", short_duration(static_cast<std::uint64_t>(place.cycle.count())),
                          place.streams);
    progress_(
        fmt::format("{}{} B, {}{}", where, place.packet,
                    rate == 0 ? "as fast as can be" : fmt::format("{:.3g} Gbit/s", static_cast<double>(rate) / 1e9),
                    length),
        done_, total_);
  }
  void add(ProfileCell& cell, const Place& place, std::uint64_t rate) {
    cell.cycle = place.cycle;
    cell.streams = place.streams;
    cell.packet = place.packet;
    cell.offered = rate;
    profile_.cells.push_back(cell);
  }

  Expected<ProfileCell> measure(Bench& bench, const Place& place, std::uint64_t rate) {
    say(place, rate);
    ++done_;
    ProfileCell best;
    for (unsigned tried = 0; tried < std::max(1U, plan_.tries); ++tried) {
      auto cell = bench.measure(rate);
      if (!cell) return cell;
      if (tried == 0 || cell->schedulable || cell->longest < best.longest) best = *cell;
      if (best.schedulable || rate == 0) break;
    }
    add(best, place, rate);
    return best;
  }

  // T_S over the bytes of a batch, of what was measured with the same number of streams and was not saturated: there a
  // batch waits for others, but not on a core of its own.
  void fit(const ProfileCapacity& best) {
    std::vector<std::pair<double, double>> points;
    for (const ProfileCell& cell : profile_.cells) {
      if ((cell.schedulable || cell.cycle.count() == 0) && cell.streams == best.streams && cell.batches != 0) {
        points.emplace_back(static_cast<double>(cell.batch_bytes), static_cast<double>(cell.p50.count()));
      }
    }
    const engine::Line line = engine::fit_line(points);
    profile_.slope = line.slope;
    profile_.intercept = line.intercept;
  }

  const CalibrationPlan& plan_;
  const BenchOpener& open_;
  const CalibrationProgress& progress_;
  const ProfileCheck& accepts_;
  Profile& profile_;
  std::uint64_t saturated_ = 0;
  unsigned done_ = 0, total_ = 0;
};

std::string time_text(nanoseconds time) {
  return short_duration(static_cast<std::uint64_t>(time.count()));
}

std::string gbits(std::uint64_t rate) {
  return fmt::format("{:.3f} Gbit/s", static_cast<double>(rate) / 1e9);
}

// Whether it may be promised: not where nothing holds with that cycle, however good a short try was.
bool is_good(const Profile& profile, const ProfileCell& cell) {
  const auto of = std::ranges::find(profile.capacities, cell.cycle, &ProfileCapacity::cycle);
  return cell.schedulable && (of == profile.capacities.end() || of->rate != 0);
}

std::string capacity_text(const ProfileCapacity& one) {
  const std::string held = one.held.count() == 0 ? "" : "held for " + time_text(one.held);
  if (one.rate == 0) return held.empty() ? "no rate that was tried is schedulable" : "none " + held;
  return gbits(one.rate) + (one.streams == 0 ? "" : fmt::format(" with {} streams", one.streams)) +
         (held.empty() ? "" : ", " + held);
}

// Of the rates that were tried with most cycles and streams the highest at which one of these is schedulable; where
// none is at any, the highest.
std::uint64_t rate_of_grid(const Profile& profile) {
  struct Tried {
    std::set<std::pair<nanoseconds, unsigned>> cells;  // what is held has been tried before
    bool good = false;
  };
  std::map<std::uint64_t, Tried> rates;
  for (const ProfileCell& cell : profile.cells) {
    if (cell.packet != profile.packet) continue;
    Tried& one = rates[cell.offered];
    one.cells.emplace(cell.cycle, cell.streams);
    one.good |= is_good(profile, cell);
  }
  const auto best = std::ranges::max_element(
      rates, {}, [](const auto& one) { return std::tuple(one.second.cells.size(), one.second.good, one.first); });
  return best == rates.end() ? 0 : best->first;
}

// One row for each cycle, a column for each number of streams.
std::string grid_text(const Profile& profile, bool bold) {
  std::map<nanoseconds, std::map<unsigned, const ProfileCell*>> rows;
  std::map<unsigned, bool> columns;
  const std::uint64_t rate = rate_of_grid(profile);
  for (const ProfileCell& cell : profile.cells) {
    if (cell.packet != profile.packet || cell.offered != rate) continue;
    rows[cell.cycle].try_emplace(cell.streams, &cell);
    columns[cell.streams] = true;
  }
  std::string out =
      fmt::format("{}, the longest, at {} of {} B\n{:>10}", profile.subject.overlap != 0 ? "T_S" : "an inline batch",
                  gbits(rate), profile.packet, "cycle");
  for (const auto& column : columns) {
    out += fmt::format("{:>20}", column.first == 0 ? "" : fmt::format("{} streams", column.first));
  }
  for (const auto& [cycle, cells] : rows) {
    out += fmt::format("\n{:>10}", cycle.count() == 0 ? "none" : time_text(cycle));
    for (const auto& column : columns) {
      const auto cell = cells.find(column.first);
      const bool good = cell != cells.end() && is_good(profile, *cell->second);
      const std::string text = cell == cells.end() ? "-" : time_text(cell->second->longest) + (good ? " *" : "  ");
      const std::string padded = fmt::format("{:>20}", text);
      out += good && bold ? "\033[1m" + padded + "\033[0m" : padded;
    }
  }
  return out + "\n* schedulable: carried, nothing lost or late" +
         (profile.subject.overlap != 0
              ? fmt::format(", no T_S above {} cycles, and forwarded in time\n", profile.subject.overlap)
              : ", and the bound within the deadline\n");
}

// What kept the next rate above B_I from being schedulable; empty: none that is not was tried with what reached B_I.
std::string limit_text(const Profile& profile, const ProfileCapacity& one) {
  const ProfileCell* next = nullptr;
  for (const ProfileCell& cell : profile.cells) {
    if (cell.cycle != one.cycle || cell.packet != profile.packet || cell.streams != one.streams) continue;
    if (cell.schedulable || cell.offered <= one.rate) continue;
    if (next == nullptr || cell.offered < next->offered) next = &cell;
  }
  if (next == nullptr) return {};
  const unsigned overlap = profile.subject.overlap;
  std::vector<std::string> reasons;
  if (next->lost != 0) reasons.push_back(fmt::format("{} frames lost", next->lost));
  if (next->late != 0) reasons.push_back(fmt::format("{} frames late", next->late));
  if (overlap != 0 && next->longest > one.cycle * overlap) {
    reasons.push_back("T_S up to " + time_text(next->longest));
  }
  if (overlap != 0 && !engine::forwards_in_time(next->forwarding, one.cycle, false)) {
    const bool on_one = engine::find_such(profile.subject.chain, &engine::ElementType::one_thread) != nullptr;
    reasons.push_back(fmt::format("forwarding a batch {}, {} of which have to fit a cycle{}",
                                  time_text(next->forwarding), engine::forwarded_in_a_cycle(false),
                                  on_one ? "" : " where a lane has no core of forwarder_cores"));
  }
  if (overlap == 0 && reasons.empty()) reasons.push_back("an inline batch of " + time_text(next->p999));
  if (reasons.empty()) reasons.push_back("only " + gbits(next->carried) + " carried");
  return fmt::format("{:<18} at {}: {}\n", "", gbits(next->offered), fmt::join(reasons, "; "));
}

}  // namespace

std::vector<unsigned> usual_packets(unsigned largest) {
  std::vector<unsigned> packets;
  for (const unsigned packet : {largest, std::max(largest / 2, 128U), std::min(largest / 2, 128U)}) {
    if (packet >= least_packet && packet <= largest && std::ranges::find(packets, packet) == packets.end()) {
      packets.push_back(packet);
    }
  }
  return packets;
}

Profile planned_profile(const CalibrationPlan& plan, Profile profile) {
  profile.packet = plan.packets.front();
  profile.capacities.clear();
  for (const nanoseconds cycle : plan.cycles) profile.capacities.push_back({cycle, plan.streams.front(), 0});
  return profile;
}

Expected<void> calibrate(const CalibrationPlan& plan, const BenchOpener& open, const CalibrationProgress& progress,
                         Profile& profile, const ProfileCheck& accepts) {
  return Calibration(plan, open, progress, accepts, profile).run();
}

std::string calibration_table(const Profile& profile, bool bold) {
  std::string out = grid_text(profile, bold);
  for (const ProfileCapacity& one : profile.capacities) {
    const std::string name = one.cycle.count() == 0 ? "B" : "B_I of " + time_text(one.cycle);
    out += fmt::format("{:<18} {}\n", name, capacity_text(one)) + limit_text(profile, one);
  }
  return out +
         fmt::format("a batch takes {:.2f} us and {:.4f} ns for each byte\n", profile.intercept / 1e3, profile.slope);
}

std::string nothing_carried_text(const Profile& profile) {
  if (std::ranges::any_of(profile.capacities, [](const ProfileCapacity& one) { return one.rate != 0; })) return {};
  const bool cycles = profile.subject.overlap != 0;
  return fmt::format(
      "no rate that was tried was carried in time for as long as it had to be, so that no profile is written. Try a "
      "longer [engine] deadline{}, other numbers of lanes{}, on cores that have nothing else to do; or a shorter "
      "--hold, which promises less",
      cycles ? " or longer --cycles" : "", cycles ? " and --streams" : "");
}

}  // namespace sluice::cli
