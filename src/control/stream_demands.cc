#include "control/stream_demands.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "base/machine.h"
#include "base/units.h"
#include "control/section_views.h"
#include "engine/engine.h"

namespace sluice::control {
namespace {

// In alphabetical order with commas between.
std::string suites(Config& config) {
  std::set<std::string> names;
  each_of_chain<engine::StreamSource>(config, [&](const engine::StreamSource& source, engine::SectionView& view) {
    for (std::string& name : source.suites(view)) names.insert(std::move(name));
  });
  return fmt::format("{}", fmt::join(names, ","));
}

}  // namespace

engine::StreamSource::Later later_streams(Config& config) {
  engine::StreamSource::Later largest;
  each_of_chain<engine::StreamSource>(config, [&](const engine::StreamSource& source, engine::SectionView& view) {
    auto later = source.later(view);
    if (later.largest_packet > largest.largest_packet) largest = std::move(later);
  });
  return largest;
}

std::uint32_t largest_packet(Config& config) {
  std::uint32_t largest = 0;
  each_of_chain<engine::StreamSource>(config, [&](const engine::StreamSource& source, engine::SectionView& view) {
    largest = std::max(largest, source.largest_packet(view));
  });
  return largest;
}

std::vector<std::string> stream_kinds(Config& config) {
  std::set<std::string> kinds;
  each_of_chain<engine::StreamSource>(config, [&](const engine::StreamSource& source, engine::SectionView& view) {
    for (std::string& kind : source.kinds(view)) kinds.insert(std::move(kind));
  });
  return {kinds.begin(), kinds.end()};
}

engine::ProfileSubject profile_subject(Config& config, const std::string& device) {
  engine::ProfileSubject subject;
  subject.machine = machine_text();
  subject.device = device;
  subject.chain = config.engine.chain;
  subject.suite = suites(config);
  for (const port::PortOptions& port : config.engine.ports) subject.lanes += port.lane_count();
  subject.overlap = device == "cpu" ? 0 : config.engine.overlap;
  subject.stagger = device != "cpu" && engine::staggers(config.engine);
  return subject;
}

std::vector<StreamSection> stream_demands(Config& config) {
  std::vector<StreamSection> all;
  each_of_chain<engine::StreamSource>(config, [&](const engine::StreamSource& source, engine::SectionView& view) {
    std::ranges::move(source.streams(view), std::back_inserter(all));
  });
  return all;
}

Expected<std::unique_ptr<engine::StreamAdmission>> make_admission(Config& config, const engine::ProfileSubject& now,
                                                                  const engine::Timing& timing,
                                                                  std::vector<std::string>& notes) {
  if (!config.profile.profile) return nullptr;
  const engine::Profile& profile = *config.profile.profile;
  const auto differences = profile.differences(now);
  if (!differences.empty()) {
    const std::string text = fmt::format("[profile] file: {}", fmt::join(differences, "; "));
    if (config.profile.refuses_others) {
      const bool can_set = now.stagger != profile.subject.stagger;
      return make_error(
          fmt::format("{}: run sluice calibrate here, {}or set others = \"warn\"", text,
                      can_set ? fmt::format("set [engine] stagger = {}, ", profile.subject.stagger) : ""));
    }
    notes.push_back(text);
  }
  // Profiles of before did not say it, and were of this.
  const std::vector<std::string> measured =
      profile.media.empty() ? std::vector<std::string>{"protect IPv4"} : profile.media;
  std::vector<std::string> others = stream_kinds(config);
  std::erase_if(others, [&](const std::string& one) { return std::ranges::find(measured, one) != measured.end(); });
  if (!others.empty()) {
    notes.push_back(fmt::format(
        "[profile] file: it was measured with streams to {}, and what those to {} cost, which are here, is not "
        "in it",
        fmt::join(measured, ", "), fmt::join(others, ", ")));
  }
  if (const auto later = later_streams(config); config.profile.admits && later.largest_packet > profile.packet) {
    return make_error(
        fmt::format("[profile] file: it was measured with packets of {} bytes, and {} may have {}, so that "
                    "none would be admitted: run sluice calibrate without --packets, or with --packets {}",
                    profile.packet, later.what, later.largest_packet, later.largest_packet));
  }
  if (config.profile.counts_bursts && timing.cycle.count() == 0) {
    return make_error(
        "[profile] bursts = \"admit\": there is no cycle on the CPU into which bursts could fit: leave it out, or use "
        "a GPU");
  }
  const engine::ProfileCapacity* const capacity = profile.capacity(timing.cycle);
  if (capacity == nullptr) {
    return make_error("[profile] file: no cycle was measured that is as short as this one, " +
                      duration_text(timing.cycle) + ": run sluice calibrate with --cycles " +
                      duration_text(timing.cycle));
  }
  if (timing.cycle.count() != 0 && profile.collect().count() == 0) {
    notes.emplace_back(
        "[profile] file: it does not say what collecting and forwarding take, so the bound has an estimate of µ, "
        "and nothing says that the forwarder keeps up: run sluice calibrate again");
  }
  const std::chrono::nanoseconds forwarding = profile.forwarding(*capacity);
  const bool own_thread = !config.engine.forwarder_cores.empty();
  if (timing.cycle.count() != 0 && !engine::forwards_in_time(forwarding, capacity->cycle, own_thread)) {
    const bool on_one = engine::find_such(config.engine.chain, &engine::ElementType::one_thread) != nullptr;
    notes.push_back(fmt::format(
        "[profile] file: forwarding what a cycle of {} carries takes {}, and the bound needs {} of it within the "
        "cycle: frames may be late before the device carries what was measured; {}",
        duration_text(capacity->cycle), duration_text(forwarding), engine::forwarded_in_a_cycle(own_thread),
        on_one
            ? "give the port more lanes, or take a smaller overlap with a longer cycle, and run sluice calibrate again"
            : "give lanes forwarder_cores"));
  }
  return std::make_unique<engine::StreamAdmission>(
      engine::StreamCapacity{.rate = capacity->rate,
                             .bound = timing.bound,
                             .largest_packet = profile.packet,
                             .cycle = timing.cycle,
                             .counts_bursts = config.profile.counts_bursts},
      config.profile.admits);
}

bool admit_streams(engine::StreamAdmission& admission, const std::vector<engine::StreamDemand>& before,
                   std::vector<StreamSection>& streams, engine::StreamAdmission::Replaced* replaced) {
  std::vector<engine::StreamDemand> demands;
  for (const StreamSection& stream : streams) demands.push_back(stream.demand);
  const auto refused = admission.replace(before, demands, replaced);
  if (!refused) return true;
  const engine::StreamAnswer& answer = refused->answer;
  const char* const key = answer.verdict == engine::StreamVerdict::too_soon     ? "deadline"
                          : answer.verdict == engine::StreamVerdict::too_large  ? "packet_bytes"
                          : answer.verdict == engine::StreamVerdict::too_bursty ? "burst"
                                                                                : "rate";
  streams[refused->index].settings.error(key, answer.text());
  return false;
}

bool check_later_deadlines(const engine::StreamAdmission& admission, Config& config) {
  bool good = true;
  if (!admission.enforced()) return good;
  const std::chrono::nanoseconds bound = admission.state().capacity.bound;
  each_of_chain<engine::StreamSource>(config, [&](const engine::StreamSource& source, engine::SectionView& view) {
    good = source.check_deadlines(view, bound) && good;
  });
  return good;
}

void add_metrics(const engine::StreamAdmission::State& state, std::vector<MetricSnapshot>& metrics) {
  const auto deadline = static_cast<std::uint64_t>(state.shortest_deadline.count());
  metrics.push_back({"streams_admitted", "streams for which there is capacity", state.streams, false});
  metrics.push_back({"streams_rate_bits", "bits a second that they may bring together", state.rate, false});
  metrics.push_back(
      {"streams_capacity_bits", "bits a second that the device carries in time", state.capacity.rate, false});
  metrics.push_back({"streams_shortest_deadline_ns", "the shortest of their deadlines", deadline, false});
  metrics.push_back({"streams_burst_bytes", "bytes that they may bring at once", state.bursts, false});
  metrics.push_back({"streams_burst_capacity_bytes",
                     "bytes for which a cycle has capacity beside their rates; more at once may "
                     "make frames late",
                     state.burst_capacity, false});
  metrics.push_back({"streams_refused", "streams for which there was no capacity", state.refused, true});
  metrics.push_back({"streams_refused_not_measured", "of these, while the device that was measured did not compute",
                     state.refused_not_measured, true});
}

}  // namespace sluice::control
