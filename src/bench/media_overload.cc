#include "bench/media_overload.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cstdio>

#include "base/machine.h"
#include "base/units.h"
#include "packet/frame_mix.h"

namespace sluice::cli::bench {
namespace {

constexpr double least_overload = 0.05;  // of the frames late or not let in

struct Offered {
  Outcome outcome;
  engine::Timing timing;
  std::string device;  // its name; "cpu"
  double share_late() const {
    const auto due = static_cast<double>(std::max<std::uint64_t>(1, outcome.frames + outcome.not_let_in()));
    return static_cast<double>(outcome.own_misses() + outcome.not_let_in()) / due;
  }
};

// All that comes is let in, as long as the receive queues have capacity. `rate`: frames a second, 0: as fast as they
// go.
Expected<Offered> offer(MediaBed& bed, double rate, double seconds) {
  bed.rig.engine.mode = engine::Mode::full;
  bed.rig.engine.admission = engine::Admit::all;
  auto rig = Rig::make(bed.rig);
  if (!rig) return tl::unexpected(rig.error());
  (*rig)->set_rate(rate);
  const Offered offered{(*rig)->measure(1.0, seconds), (*rig)->engine().timing(),
                        (*rig)->engine().gpu() != nullptr ? (*rig)->engine().gpu()->info().name : "cpu"};
  if (auto finished = bed.finish(**rig); !finished) return tl::unexpected(finished.error());
  return offered;
}

void say_late(const std::string& label, const Offered& offered, unsigned streams) {
  const Outcome& outcome = offered.outcome;
  std::printf(
      "RESULT media %s: of the frames of %u streams %.2f %% late or not let in (%lu late, %lu of them explained; %lu "
      "not let in; %lu transmitted), p99.9 %.1f us, slowest %.1f us\n",
      label.c_str(), streams, 100 * offered.share_late(), outcome.deadline_misses,
      outcome.deadline_misses - outcome.own_misses(), outcome.not_let_in(), outcome.frames, outcome.p999_us,
      outcome.max_us);
}

}  // namespace

unsigned admitted_of(engine::StreamAdmission& admission, unsigned streams, const engine::StreamDemand& demand) {
  unsigned accepted = 0;
  for (unsigned i = 0; i < streams; ++i) accepted += admission.add(demand).accepted() ? 1 : 0;
  return accepted;
}

Expected<engine::StreamCapacity> capacity_of(const engine::Profile& profile, const engine::ProfileSubject& now,
                                             const engine::Timing& timing, std::uint32_t largest_packet) {
  if (const auto differences = profile.differences(now); !differences.empty()) {
    return make_error(fmt::format("--profile: {}", fmt::join(differences, "; ")));
  }
  if (largest_packet > profile.packet) {
    return make_error(fmt::format("--profile: it was measured with packets of {} bytes, and these have up to {}",
                                  profile.packet, largest_packet));
  }
  const engine::ProfileCapacity* const capacity = profile.capacity(timing.cycle);
  if (capacity == nullptr || capacity->rate == 0) {
    return make_error("--profile: there is no B_I of a cycle as short as this one, " + duration_text(timing.cycle));
  }
  // A GPU's, of the rig, has the estimate of µ.
  const bool on_gpu = timing.cycle.count() != 0;
  const auto collect = on_gpu ? std::max(engine::collect_time, profile.collect()) : engine::collect_time;
  return engine::StreamCapacity{.rate = capacity->rate,
                                .bound = timing.bound - engine::collect_time + collect,
                                .largest_packet = profile.packet,
                                .cycle = timing.cycle};
}

Expected<double> overload(const BenchOptions& options, const HeldCase& one, MediaBed& bed,
                          const MediaReporter& reporter, Goals& goals) {
  const auto saturated = offer(bed, 0, options.seconds);
  if (!saturated) return tl::unexpected(saturated.error());
  reporter.say("saturated", saturated->outcome);
  const double frames = 1e6 * saturated->outcome.mpps(), bits = 8 * mean_frame(one.mix);
  const unsigned streams = bed.streams.streams;
  const engine::StreamDemand demand{packet::FrameMix::make(one.mix)->largest(), saturated->timing.deadline,
                                    static_cast<std::uint64_t>(options.overload * frames * bits / streams)};

  engine::StreamCapacity capacity{
      .rate = static_cast<std::uint64_t>((options.at > 0 ? options.at : overload_capacity) * frames * bits),
      .bound = saturated->timing.bound,
      .largest_packet = demand.largest_packet};
  if (!options.profile.empty()) {
    const auto profile = engine::Profile::from_file(options.profile);
    if (!profile) return tl::unexpected(profile.error());
    const bool on_gpu = saturated->device != "cpu";
    const engine::ProfileSubject now{.machine = machine_text(),
                                     .device = saturated->device,
                                     .chain = {"srtp", "bridge"},
                                     .suite = std::string(srtp::facts(bed.streams.suite).name),
                                     .lanes = bed.streams.lanes,
                                     .overlap = on_gpu ? bed.rig.engine.overlap : 0,
                                     .stagger = saturated->timing.stagger};
    const auto measured = capacity_of(*profile, now, saturated->timing, demand.largest_packet);
    if (!measured) return tl::unexpected(measured.error());
    capacity = *measured;
  }

  const auto off = offer(bed, options.overload * frames, options.seconds);
  if (!off) return tl::unexpected(off.error());
  reporter.say("overload admission off", off->outcome);
  say_late(reporter.label("overload admission off"), *off, streams);
  if (off->share_late() < least_overload) {
    return make_error(
        fmt::format("{:.2f} times the saturated rate is no overload: {:.2f} % of the frames were late or "
                    "not let in",
                    options.overload, 100 * off->share_late()));
  }

  engine::StreamAdmission admission(capacity);
  const unsigned accepted = admitted_of(admission, streams, demand);
  std::printf("%s\n  of %u streams of %.3f Mbit/s %u are accepted, %u refused: %s\n",
              reporter.label("overload admission on").c_str(), streams, static_cast<double>(demand.rate) / 1e6,
              accepted, streams - accepted, admission.add(demand).text().c_str());
  if (accepted == 0) return make_error("no stream was accepted");
  bed.streams.streams = accepted;
  const auto on = offer(bed, static_cast<double>(demand.rate) * accepted / bits, options.seconds);
  if (!on) return tl::unexpected(on.error());
  reporter.say("overload admission on", on->outcome);
  say_late(reporter.label("overload admission on"), *on, accepted);
  goals.at_most(reporter.label("overload admission on: late or not let in of those accepted"),
                static_cast<double>(on->outcome.own_misses() + on->outcome.not_let_in()), 0, "frames");
  return reporter.share(on->outcome);
}

}  // namespace sluice::cli::bench
