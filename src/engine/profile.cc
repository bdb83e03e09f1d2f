#include "engine/profile.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/settings.h"
#include "engine/bound.h"

namespace sluice::engine {
namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr double picoseconds = 1e3, femtoseconds = 1e6;

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < ' ' ? '?' : c;
  }
  return out + "\"";
}

// A number that must be there.
std::int64_t number(Settings& settings, std::string_view key, std::int64_t largest = most) {
  if (!settings.has(key)) settings.error(key, "is missing: this is no profile of sluice calibrate");
  return settings.integer(key, 0, 0, largest);
}
std::uint64_t count(Settings& settings, std::string_view key) {
  return static_cast<std::uint64_t>(number(settings, key));
}
unsigned small(Settings& settings, std::string_view key) {
  return static_cast<unsigned>(number(settings, key, 1 << 30));
}
std::chrono::nanoseconds time(Settings& settings, std::string_view key) {
  return std::chrono::nanoseconds(number(settings, key));
}

// One that profiles of before do not have.
std::chrono::nanoseconds time_or_none(Settings& settings, std::string_view key) {
  return std::chrono::nanoseconds(settings.integer(key, 0, 0, most));
}

ProfileCell read_cell(Settings settings) {
  ProfileCell cell;
  cell.cycle = time(settings, "cycle_ns");
  cell.streams = small(settings, "streams");
  cell.packet = small(settings, "packet");
  cell.offered = count(settings, "offered");
  cell.carried = count(settings, "carried");
  cell.batches = count(settings, "batches");
  cell.batch_bytes = count(settings, "batch_bytes");
  cell.p50 = time(settings, "p50_ns");
  cell.p99 = time(settings, "p99_ns");
  cell.p999 = time(settings, "p999_ns");
  cell.longest = time(settings, "longest_ns");
  cell.round = time_or_none(settings, "round_ns");
  cell.forwarding = time_or_none(settings, "forwarding_ns");
  cell.overruns = count(settings, "overruns");
  cell.late = count(settings, "late");
  cell.lost = count(settings, "lost");
  cell.schedulable = settings.boolean("schedulable", false);
  settings.finish();
  return cell;
}

Profile read(Settings& root) {
  Profile profile;
  profile.date = root.required_text("date");
  profile.code = root.required_text("code");
  profile.subject.machine = root.required_text("machine");
  profile.subject.device = root.required_text("device");
  profile.subject.chain = root.texts("chain");
  profile.subject.suite = root.text("suite", "");
  profile.media = root.texts("media");
  profile.subject.lanes = small(root, "lanes");
  profile.subject.overlap = small(root, "overlap");
  profile.subject.stagger = root.boolean("stagger", false);
  profile.packet = small(root, "packet");
  profile.slope = static_cast<double>(root.integer("slope_fs_per_byte", 0, -most, most)) / femtoseconds;
  profile.intercept = static_cast<double>(root.integer("intercept_ps_per_batch", 0, -most, most)) / picoseconds;
  for (Settings& one : root.sections("capacity")) {
    profile.capacities.push_back(
        {time(one, "cycle_ns"), small(one, "streams"), count(one, "rate"), time_or_none(one, "held_ns")});
    one.finish();
  }
  for (const Settings& one : root.sections("cell")) profile.cells.push_back(read_cell(one));
  root.finish();
  return profile;
}

Expected<Profile> checked(Expected<Settings> root, const std::string& name, const Diagnostics& diagnostics) {
  if (!root) return tl::unexpected(root.error());
  // Before anything that another version may say otherwise.
  const std::int64_t version = root->integer("version", 0, 0, most);
  if (version != Profile::version) {
    return make_error(name + ": it is " +
                      (version == 0 ? "no profile of sluice calibrate"
                                    : "a profile of version " + std::to_string(version) + ", and this Sluice reads " +
                                          std::to_string(Profile::version)) +
                      ": make one with sluice calibrate");
  }
  Profile profile = read(*root);
  if (!diagnostics.ok()) return make_error(diagnostics.lines.front());
  return profile;
}

std::int64_t rounded(double value) {
  return static_cast<std::int64_t>(std::llround(value));
}

}  // namespace

Expected<Profile> Profile::from_file(const std::string& path) {
  Diagnostics diagnostics;
  return checked(Settings::from_file(path, diagnostics), path, diagnostics);
}

Expected<Profile> Profile::from_text(const std::string& text, const std::string& name) {
  Diagnostics diagnostics;
  return checked(Settings::from_text(text, name, diagnostics), name, diagnostics);
}

std::string Profile::text() const {
  std::vector<std::string> names;
  std::ranges::transform(subject.chain, std::back_inserter(names), quoted);
  std::vector<std::string> kinds;
  std::ranges::transform(media, std::back_inserter(kinds), quoted);
  std::string out = fmt::format(
      "# Written by sluice calibrate; docs/real-time.md says what it is. Rates are bits of whole frames per second.\n"
      "version = {}\ndate = {}\ncode = {}\nmachine = {}\ndevice = {}\nchain = [{}]\nsuite = {}\nmedia = [{}]\nlanes = "
      "{}\n"
      "overlap = {}\nstagger = {}\npacket = {}\nslope_fs_per_byte = {}\nintercept_ps_per_batch = {}\n",
      version, quoted(date), quoted(code), quoted(subject.machine), quoted(subject.device), fmt::join(names, ", "),
      quoted(subject.suite), fmt::join(kinds, ", "), subject.lanes, subject.overlap, subject.stagger, packet,
      rounded(slope * femtoseconds), rounded(intercept * picoseconds));
  for (const ProfileCapacity& one : capacities) {
    out += fmt::format("\n[[capacity]]\ncycle_ns = {}\nstreams = {}\nrate = {}\nheld_ns = {}\n", one.cycle.count(),
                       one.streams, one.rate, one.held.count());
  }
  for (const ProfileCell& one : cells) {
    out += fmt::format(
        "\n[[cell]]\ncycle_ns = {}\nstreams = {}\npacket = {}\noffered = {}\ncarried = {}\nbatches = {}\n"
        "batch_bytes = {}\np50_ns = {}\np99_ns = {}\np999_ns = {}\nlongest_ns = {}\nround_ns = {}\n"
        "forwarding_ns = {}\noverruns = {}\nlate = {}\nlost = {}\nschedulable = {}\n",
        one.cycle.count(), one.streams, one.packet, one.offered, one.carried, one.batches, one.batch_bytes,
        one.p50.count(), one.p99.count(), one.p999.count(), one.longest.count(), one.round.count(),
        one.forwarding.count(), one.overruns, one.late, one.lost, one.schedulable);
  }
  return out;
}

std::string Profile::csv() const {
  std::string out =
      "device,chain,suite,lanes,overlap,cycle_ns,streams,packet,offered,carried,batches,batch_bytes,p50_ns,p99_ns,"
      "p999_ns,longest_ns,round_ns,forwarding_ns,overruns,late,lost,schedulable,capacity\n";
  std::string device = subject.device, suite = subject.suite;
  std::ranges::replace(device, ',', ';');
  std::ranges::replace(suite, ',', ';');
  for (const ProfileCell& one : cells) {
    const auto of = std::ranges::find(capacities, one.cycle, &ProfileCapacity::cycle);
    out +=
        fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{:d},{}\n", device,
                    fmt::join(subject.chain, ";"), suite, subject.lanes, subject.overlap, one.cycle.count(),
                    one.streams, one.packet, one.offered, one.carried, one.batches, one.batch_bytes, one.p50.count(),
                    one.p99.count(), one.p999.count(), one.longest.count(), one.round.count(), one.forwarding.count(),
                    one.overruns, one.late, one.lost, one.schedulable, of == capacities.end() ? 0 : of->rate);
  }
  return out;
}

const ProfileCapacity* Profile::capacity(std::chrono::nanoseconds cycle) const {
  const ProfileCapacity* best = nullptr;
  for (const ProfileCapacity& one : capacities) {
    if (one.cycle <= cycle && (best == nullptr || one.cycle > best->cycle)) best = &one;
  }
  return best;
}

std::chrono::nanoseconds Profile::forwarding(const ProfileCapacity& capacity) const {
  const ProfileCell* best = nullptr;
  for (const ProfileCell& one : cells) {
    const bool is_of_it = one.cycle == capacity.cycle && one.streams == capacity.streams && one.packet == packet;
    if (!is_of_it || !one.schedulable || one.offered > capacity.rate) continue;
    if (best == nullptr || one.offered >= best->offered) best = &one;
  }
  return best == nullptr ? std::chrono::nanoseconds(0) : best->forwarding;
}

std::chrono::nanoseconds Profile::collect() const {
  std::chrono::nanoseconds longest(0);
  for (const ProfileCell& one : cells) longest = std::max(longest, one.round);
  return longest.count() == 0 ? longest : collect_time_of(longest);
}

std::chrono::nanoseconds Profile::inline_batch() const {
  const std::chrono::nanoseconds none(0);
  const ProfileCapacity* const carried = capacity(none);
  std::chrono::nanoseconds longest(0);
  for (const ProfileCell& one : cells) {
    const bool is_promised = one.cycle == none && one.packet == packet && one.schedulable && carried != nullptr &&
                             one.offered <= carried->rate;
    if (is_promised) longest = std::max(longest, one.p999);
  }
  return longest;
}

std::vector<std::string> Profile::differences(const ProfileSubject& now) const {
  std::vector<std::string> all;
  const auto compare = [&all](std::string_view what, const auto& is, const auto& was) {
    if (is != was) all.push_back(fmt::format("the {} is {}, and it was measured with {}", what, is, was));
  };
  const auto or_none = [](const std::string& suite) { return suite.empty() ? std::string("none") : suite; };
  compare("machine", now.machine, subject.machine);
  compare("device", now.device, subject.device);
  compare("chain", fmt::format("{}", fmt::join(now.chain, ", ")), fmt::format("{}", fmt::join(subject.chain, ", ")));
  compare("suite", or_none(now.suite), or_none(subject.suite));
  compare("number of lanes", now.lanes, subject.lanes);
  compare("overlap", now.overlap, subject.overlap);
  if (now.lanes > 1) compare("setting stagger", now.stagger, subject.stagger);  // one lane is alone in its cycle
  return all;
}

Line fit_line(const std::vector<std::pair<double, double>>& points) {
  if (points.empty()) return {};
  const auto n = static_cast<double>(points.size());
  double mean_x = 0, mean_y = 0;
  for (const auto& [x, y] : points) {
    mean_x += x / n;
    mean_y += y / n;
  }
  double xx = 0, xy = 0;
  for (const auto& [x, y] : points) {
    xx += (x - mean_x) * (x - mean_x);
    xy += (x - mean_x) * (y - mean_y);
  }
  const double slope = xx == 0 ? 0 : xy / xx;
  return {slope, mean_y - slope * mean_x};
}

}  // namespace sluice::engine
