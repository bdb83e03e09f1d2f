// sluice bench inspect: the chain acl + route + inspect in the engine, whole and in parts, beside the link's ceiling.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "bench/bench.h"
#include "bench/csv.h"
#include "bench/goals.h"
#include "bench/hold_text.h"
#include "bench/inspect_chain.h"
#include "bench/inspect_parts.h"

namespace sluice::cli::bench {
namespace {

constexpr unsigned rounds = 5, rounds_beside = 3;  // of chains that inspect on a device, and of what stands beside
constexpr double rounds_below = 3;                 // as long as so many
constexpr double window_below = 0.01;              // seconds; what was late is reported by these, too
constexpr double settle_seconds = 0.05;
constexpr const char* protocols[] = {"udp", "tcp", "streams", "http"};
constexpr double goal_heavy_tail = 85, goal_large = 90;  // % of the upload ceiling
constexpr double goal_small = 400;                       // Mpps at 64 B
constexpr double goal_acl = 5;                           // % of the rate that acl may cost
constexpr double goal_device_us = 1000;                  // of the slowest batch

// Those that are not 0.
std::string figures_text(const std::vector<engine::Metric>& figures) {
  std::string text;
  for (const engine::Metric& figure : figures) {
    if (figure.value != 0) text += fmt::format(" {} {}", figure.name, figure.value);
  }
  return text;
}

double deadline_us(const BenchOptions& options) {
  return options.deadline_ms > 0 ? options.deadline_ms * 1e3 : 1000;
}

// `window`: length of windows in which it is measured, too; 0: none.
void measure_round(Rig& rig, double seconds, Part& part, double window = 0) {
  const std::vector<engine::Metric> before = rig.engine().pipeline().metrics();
  if (window != 0) {
    Hold hold = rig.hold_in_windows_of(window, seconds, false);
    part.outcomes.push_back(hold.whole);
    part.windows = std::move(hold.windows);
  } else {
    part.outcomes.push_back(rig.measure(0, seconds));
  }
  part.mpps.push_back(part.outcomes.back().mpps());
  add_figures(before, rig.engine().pipeline().metrics(), part.figures);
}

// Parts of one engine, round by round in turns, every other round backwards: so that the machine's mood is the same for
// all of them, and none is always the first.
Expected<void> measure_in_turns(const BenchOptions& options, const RouterTable& table, const InspectRules& rules,
                                const std::string& device, std::span<Part> parts) {
  const auto turns = parts.size() > 1 ? std::make_shared<AclTurns>() : nullptr;
  auto rig = Rig::make(chain_rig(options, table, rules, parts.front().one, device, turns));
  if (!rig) return tl::unexpected(rig.error());
  (*rig)->measure(1.0, 0);
  const ChainCase& one = parts.front().one;
  const unsigned count = one.inspect && one.mode == engine::Mode::full ? rounds : rounds_beside;
  for (unsigned round = 0; round < count; ++round) {
    for (std::size_t p = 0; p < parts.size(); ++p) {
      Part& part = parts[round % 2 == 0 ? p : parts.size() - 1 - p];
      part.lanes = (*rig)->lanes();
      if (turns) turns->set(part.one.acl, part.one.fused);
      (*rig)->measure(settle_seconds, 0);
      measure_round(**rig, options.seconds, part);
    }
  }
  if (auto finished = (*rig)->finish(); !finished) return finished;
  for (const Part& part : parts) {
    if (auto there = on_its_device(part, device); !there) return there;
  }
  // A rate of conversations that were not followed would be one of something else.
  if (const std::string broken = not_whole(one, (*rig)->engine().pipeline().metrics());
      one.converses() && !one.bounded && !broken.empty()) {
    return make_error(
        fmt::format("{} {}: conversations were not followed whole:{}", one.name(), one.traffic(), broken));
  }
  return {};
}

// Parts that can be had of one engine stand behind each other.
Expected<void> measure(const BenchOptions& options, const RouterTable& table, const InspectRules& rules,
                       const std::string& device, std::vector<Part>& parts) {
  for (std::size_t first = 0, end = 0; first < parts.size(); first = end) {
    end = first + 1;
    while (end < parts.size() && parts[end].one.takes_turns_with(parts[first].one)) ++end;
    if (auto done = measure_in_turns(options, table, rules, device, std::span(parts).subspan(first, end - first));
        !done) {
      return done;
    }
  }
  return {};
}

// The share of the ceiling that is aimed at, in %; 0: another goal, or none.
double goal_share(const std::string& device, const ChainCase& one) {
  const bool whole = one.acl && one.inspect && one.fused && one.mode == engine::Mode::full && !one.bounded;
  if (device == "cpu" || !whole || one.mix == "64") return 0;
  return one.mix == "heavy-tail" ? goal_heavy_tail : goal_large;
}

// Of the round with the middle rate, and the rates of all.
std::string cores_text(const Part& part) {
  const Outcome median = part.median();
  const auto [least, most] = std::ranges::minmax(part.mpps);
  return fmt::format("{:.1f} to {:.1f} Mpps; {:.0f} + {:.0f} ns a frame and lane's core, {:.0f} % busy", least, most,
                     median.collecting_ns(), median.forwarding_ns(),
                     100 * (median.collecting_us + median.forwarding_us) / (1e6 * median.seconds * part.lanes));
}

// Those that say something.
std::string joined(const std::vector<std::string>& texts) {
  std::string all;
  for (const std::string& text : texts) {
    if (!text.empty()) all += (all.empty() ? "" : "; ") + text;
  }
  return all;
}

void report(const BenchOptions& options, const std::string& device, double ceiling, const std::vector<Part>& parts) {
  for (const Part& part : parts) {
    const Outcome median = part.median();
    const std::string label = fmt::format("{} {} {}", device, part.one.name(), part.one.traffic());
    const double share = ceiling > 0 ? median.gbytes() / ceiling : 0;
    std::printf("%s\n", row(label, median).c_str());
    std::printf(
        "RESULT inspect %s: %.1f Mpps, %.2f GB/s%s\n", label.c_str(), median.mpps(), median.gbytes(),
        share > 0 ? fmt::format(" = {:.1f} % of the upload ceiling of {:.1f}", 100 * share, ceiling).c_str() : "");
    std::printf("  rounds: %s\n  %s\n", cores_text(part).c_str(), late_text(part).c_str());
    if (median.launches != 0) {
      std::printf("  the worker's core: %.1f batches in a launch, %.1f us for one, %.0f %% of its time\n",
                  static_cast<double>(median.gpu_batches) / static_cast<double>(median.launches),
                  median.launching_us / static_cast<double>(median.launches),
                  100 * median.launching_us / (1e6 * median.seconds));
    }
    const std::string prefilter_matches = prefilter_matches_text(part, device);
    const std::string where = device_text(part, device);
    if (!prefilter_matches.empty()) std::printf("  inspected: %s\n", prefilter_matches.c_str());
    if (!where.empty()) std::printf("  %s\n", where.c_str());
    if (!part.figures.empty()) std::printf("  in all:%s\n", figures_text(part.figures).c_str());
    Yardsticks yardsticks;
    yardsticks.setting = joined(
        {fmt::format("{} rounds", part.outcomes.size()), cores_text(part), prefilter_matches, late_text(part), where});
    yardsticks.goal = goal_share(device, part.one) / 100;
    yardsticks.share = share;
    yardsticks.ceiling_gbytes = ceiling;
    yardsticks.deadline_us = deadline_us(options);
    append_csv(options, "inspect", label, median, yardsticks);
  }
  std::fflush(stdout);
}

void judge(const std::string& device, double ceiling, const std::vector<Part>& parts, Goals& goals) {
  const Part* const whole = find(parts, true, true, true);
  const Part* const without_acl = find(parts, false, true, true);
  if (whole == nullptr || device == "cpu") return;
  const std::string label = fmt::format("{} {}", device, whole->one.traffic());
  const Outcome median = whole->median();
  if (whole->one.mix == "64") {
    goals.at_least(label + ": the whole chain", median.mpps(), goal_small, "Mpps");
  } else {
    goals.at_least(label + ": the whole chain, of the upload ceiling", 100 * median.gbytes() / ceiling,
                   goal_share(device, whole->one), "%");
  }
  goals.at_most(label + ": the slowest batch on the device, of all rounds", median.device_max_us, goal_device_us, "us");
  if (without_acl != nullptr) goals.at_most(label + ": what acl costs", acl_cost(parts)->median, goal_acl, "%");
}

// `all`: those that stand beside the whole chain, too; `whole`: none of them.
std::vector<Part> parts_of(const ChainCase& traffic, bool all, bool whole) {
  std::vector<Part> parts;
  const auto add = [&](bool acl, bool inspect, bool fused) {
    ChainCase one = traffic;
    one.acl = acl;
    one.inspect = inspect;
    one.fused = fused;
    parts.push_back({one, {}, {}, {}, 1, {}});
  };
  add(true, true, true);
  if (whole) return parts;
  if (!traffic.converses()) add(false, true, true);
  if (all) add(true, true, false);
  add(true, true, true);
  parts.back().one.mode = engine::Mode::zero_load;
  if (!all) return parts;
  add(true, false, true);
  add(false, false, true);
  return parts;
}

std::string followed_text(const ChainCase& one, const ChainCheck& seen) {
  if (!one.converses()) return {};
  const std::string requests = seen.requests == 0 ? "" : fmt::format(" with {} requests", seen.requests.load());
  if (one.drop_on_overload) {
    return fmt::format(", {} conversations until a rule drops them", seen.conversations.load());
  }
  if (one.payload == resets_payload) {
    return fmt::format(", {} conversations followed but for what resets cut off", seen.conversations.load());
  }
  return fmt::format(
      ", {} conversations{} followed without a gap, and {} alerts for what is planted across two segments of theirs",
      seen.conversations.load(), requests, seen.planted_alerts.load());
}

// What is made to cost the gateway most. Of the rules: every payload is their contents, one after the other; of HTTP
// requests and bodies. Of codings: bodies of HTTP that are little until they are decoded. By resets: frames that
// release what hundreds of others brought.
struct Attack {
  const char* protocol;
  std::string_view name;  // in ChainCase::traffic()
};
constexpr Attack attacks[] = {
    {"tcp", attack_name}, {"http", attack_name}, {"http", attack_of_codings_name}, {"streams", attack_by_resets_name}};

// Of the rules' contents by their name alone, which is not yet what is sent.
ChainCase case_of(const BenchOptions& options, const Attack& attack) {
  ChainCase one;
  if (!options.mix.empty()) one.mix = options.mix;
  one.protocol = attack.protocol;
  one.payload = attack.name == attack_name              ? attack_name
                : attack.name == attack_of_codings_name ? codings_payload
                                                        : resets_payload;
  return one;
}

ChainCase attack_on(const BenchOptions& options, const InspectRules& rules, const Attack& attack,
                    bool drop_on_overload) {
  ChainCase one = case_of(options, attack);
  if (attack.name == attack_name) one.payload = rules.contents();
  one.bounded = true;
  one.drop_on_overload = drop_on_overload;
  return one;
}

// In its place, text in which few rules find anything.
ChainCase ordinary_for(const BenchOptions& options, const InspectRules& rules, const Attack& attack) {
  ChainCase ordinary = attack_on(options, rules, attack, false);
  ordinary.payload = "text";
  return ordinary;
}

// Each traffic of `protocol` that is measured, and the rules' contents, which most of them match; of conversations with
// every second rule dropping, too, as it is of packets.
Expected<void> verify(const BenchOptions& options, const RouterTable& table, const RouteReference& reference,
                      const InspectRules& rules, const std::string& device, const std::string& protocol,
                      const std::vector<ChainCase>& measured) {
  std::vector<ChainCase> cases{attack_on(options, rules, {protocol.c_str(), attack_name}, false)};
  std::ranges::copy_if(measured, std::back_inserter(cases),
                       [&](const ChainCase& one) { return one.protocol == protocol; });
  // Of text alone hardly a frame holds what a rule looks for: a search that found nothing would be right.
  for (ChainCase& one : cases) {
    if (one.payload != "text" || one.converses()) continue;
    one.payload = rules.words_with_contents();
    one.rare_contents = true;
  }
  if (cases.front().converses()) {
    cases.insert(cases.begin() + 1, attack_on(options, rules, {protocol.c_str(), attack_name}, true));
  }
  for (ChainCase one : cases) {
    one.bounded = false;
    one.acl = !one.converses();  // what it denied would be missing in them
    ChainSeen seen;
    if (auto right = verify_chain(options, table, reference, rules, one, device, seen); !right) {
      return make_error("NOT VERIFIED: " + one.traffic() + ": " + right.error().message);
    }
    const ChainCheck &acl = seen.acl, &inspect = seen.inspect;
    std::printf(
        "verified on %s, %s: %s%lu verdicts of inspect against a core with Hyperscan (%lu dropped, %lu alerts)%s, and "
        "the next hops of %lu frames that left against the longest prefix, in batches of %.0f frames\n",
        device.c_str(), one.traffic().c_str(),
        one.acl ? fmt::format("{} verdicts of acl against the first match ({} denied), ", acl.frames.load(),
                              acl.dropped.load())
                      .c_str()
                : "",
        inspect.frames.load(), inspect.dropped.load(), inspect.alerts.load(), followed_text(one, inspect).c_str(),
        seen.left, inspect.frames_a_batch);
  }
  return {};
}

// Late frames, and those that were not let in, that the machine does not explain.
std::uint64_t too_late(const Outcome& outcome) {
  return outcome.own_misses() + outcome.not_let_in();
}

std::uint64_t offered(const Outcome& outcome) {
  return outcome.frames + outcome.dropped + outcome.offered_missed;
}

// What it cost that so few were late.
std::string price_text(const Part& part) {
  const Outcome outcome = part.median();
  const double all = static_cast<double>(std::max<std::uint64_t>(1, offered(outcome))) / 100;
  return fmt::format("{:.1f} % dropped, {:.1f} % over their time", static_cast<double>(outcome.dropped) / all,
                     part.figure("inspect_overloaded_frames") / all);
}

// So many frames a second of this traffic, with the default budget. With --cpu-below-auto cores may have all of it: who
// had how much stands beside the figure.
Expected<Part> measure_below(const BenchOptions& options, const RouterTable& table, const InspectRules& rules,
                             const std::string& device, const ChainCase& traffic, double rate) {
  RigOptions rig_options = chain_rig(options, table, rules, traffic, device);
  if (options.cpu_below_auto) rig_options.engine.cpu_below = -1;
  auto rig = Rig::make(rig_options);
  if (!rig) return tl::unexpected(rig.error());
  (*rig)->set_rate(rate);
  Part part{traffic, {}, {}, {}, (*rig)->lanes(), {}};
  (*rig)->measure(1.0, 0);
  measure_round(**rig, options.seconds * rounds_below, part, window_below);
  if (auto finished = (*rig)->finish(); !finished) return tl::unexpected(finished.error());
  if (options.cpu_below_auto) return part;
  if (auto there = on_its_device(part, device); !there) return tl::unexpected(there.error());
  return part;
}

// Bodies that nobody decodes are no attack of codings, and resets of streams in which nothing waits none by resets.
Expected<void> was_attacked(const Part& part) {
  if (part.one.payload == codings_payload && part.figure("inspect_http_bodies_cut") == 0) {
    return make_error(part.one.traffic() + ": no body was decoded as far as the frames' time allows");
  }
  if (part.one.payload == resets_payload && part.figure("inspect_stream_gaps") == 0) {
    return make_error(part.one.traffic() + ": no reset released anything of a stream");
  }
  return {};
}

// At half of what the slowest lane has, saturated, for each lane: as many frames of ordinary traffic, of which none is
// late where the machine is quiet, and the attack, of which no more may be. Twice as many is what a machine's noise
// makes of the same.
Expected<void> attack_below(const BenchOptions& options, const RouterTable& table, const InspectRules& rules,
                            const std::string& device, const Attack& attack, const AttackRate& rate, Goals& goals) {
  std::uint64_t late_ordinary = 0;
  bool is_noisy = false;
  std::printf("at half: %s:\n", rate.str().c_str());
  for (const ChainCase& traffic : {ordinary_for(options, rules, attack), attack_on(options, rules, attack, false),
                                   attack_on(options, rules, attack, true)}) {
    auto part = measure_below(options, table, rules, device, traffic, rate.offered());
    if (!part) return tl::unexpected(part.error());
    const Outcome outcome = part->median();
    const bool is_attack = traffic.payload != "text";
    const std::string label = fmt::format("{} {} {}{} at half{}", device, traffic.name(), traffic.traffic(),
                                          !is_attack                 ? ""
                                          : traffic.drop_on_overload ? " drop"
                                                                     : " pass",
                                          options.cpu_below_auto ? " cpu_below auto" : "");
    std::printf("%s\n", row(label, outcome).c_str());
    std::printf(
        "RESULT inspect %s: %lu of %lu frames late or not let in, in %u of %u lanes, p99 %.1f us, p99.9 %.1f us; %s; a "
        "lane's core: %.0f ns to collect a frame, %.0f to forward it\n",
        label.c_str(), too_late(outcome), offered(outcome), outcome.lanes_late, part->lanes, outcome.p99_us,
        outcome.p999_us, price_text(*part).c_str(), outcome.collecting_ns(), outcome.forwarding_ns());
    std::printf("  in all:%s\n  %s\n", figures_text(part->figures).c_str(), hold_text(part->windows).c_str());
    if (auto there = was_attacked(*part); !there) return there;
    Yardsticks yardsticks;
    yardsticks.setting =
        joined({price_text(*part), prefilter_matches_text(*part, device), rate.str(), device_text(*part, device)});
    yardsticks.share = rate.of_text();
    yardsticks.deadline_us = deadline_us(options);
    append_csv(options, "inspect", label, outcome, yardsticks);
    if (!is_attack) {
      late_ordinary = too_late(outcome);
      is_noisy = late_ordinary * 1'000 > offered(outcome);
    } else if (is_noisy) {
      goals.without(label + ": frames late or not let in, of twice those of ordinary traffic",
                    "of ordinary traffic, too, one frame in a thousand or more is late here");
    } else {
      goals.at_most(label + ": frames late or not let in, of twice those of ordinary traffic",
                    static_cast<double>(too_late(outcome)), 2 * static_cast<double>(late_ordinary), "frames");
    }
  }
  std::fflush(stdout);
  return {};
}

// Of uploads: what the link does after a run counts, too, where it does more; 0 without a GPU.
Expected<double> ceiling_now(const BenchOptions& options, const std::string& device, device::LinkCeilings& ceilings) {
  if (device != "cpu") {
    if (auto probed = probe_again(options, ceilings); !probed) return tl::unexpected(probed.error());
  }
  return ceilings.large.up;
}

// Saturated by the traffic, in frames a second: what is carried, and what the slowest lane has, times lanes, for frames
// come to all alike; those that are dropped, too.
Expected<AttackRate> saturated_rate(const BenchOptions& options, const RouterTable& table, const InspectRules& rules,
                                    const std::string& device, device::LinkCeilings& ceilings,
                                    const ChainCase& traffic) {
  std::vector<Part> parts{{traffic, {}, {}, {}, 1, {}}};
  if (auto done = measure(options, table, rules, device, parts); !done) return tl::unexpected(done.error());
  auto ceiling = ceiling_now(options, device, ceilings);
  if (!ceiling) return tl::unexpected(ceiling.error());
  report(options, device, *ceiling, parts);
  const Outcome median = parts.front().median();
  return AttackRate{1e6 * median.mpps(),
                    static_cast<double>(median.slowest_lane * parts.front().lanes) / median.seconds};
}

// An attack of which most is let by, or dropped, comes at a higher rate than any traffic that is looked at.
Expected<void> run_attack(const BenchOptions& options, const RouterTable& table, const InspectRules& rules,
                          const std::string& device, const Attack& attack, device::LinkCeilings& ceilings,
                          Goals& goals) {
  ChainCase ordinary = ordinary_for(options, rules, attack);
  ordinary.bounded = false;
  std::printf("beside the %s:\n", std::string(attack.name).c_str());
  auto rate = saturated_rate(options, table, rules, device, ceilings, ordinary);
  if (!rate) return tl::unexpected(rate.error());
  for (const bool drops : {false, true}) {
    std::printf("%s, on_overload = \"%s\":\n", std::string(attack.name).c_str(), drops ? "drop" : "pass");
    const auto of_attack =
        saturated_rate(options, table, rules, device, ceilings, attack_on(options, rules, attack, drops));
    if (!of_attack) return tl::unexpected(of_attack.error());
    rate->slowest = std::min(rate->slowest, of_attack->slowest);
  }
  return attack_below(options, table, rules, device, attack, *rate, goals);
}

// What stands between the commas of --only; one that is empty without it.
std::vector<std::string> names_of(const BenchOptions& options) {
  std::vector<std::string> names;
  std::istringstream text(options.only);
  for (std::string name; std::getline(text, name, ',');) names.push_back(name);
  if (names.empty()) names.emplace_back();
  return names;
}

// --only: all that is measured of a traffic, by a part of its name.
bool wanted(const BenchOptions& options, std::string_view traffic) {
  return std::ranges::any_of(names_of(options),
                             [&](const std::string& name) { return traffic.find(name) != std::string_view::npos; });
}

// Whether it is to be measured: all of them, or by name.
bool attacks_by(const BenchOptions& options, const Attack& attack) {
  if (wanted(options, attack.name)) return true;
  const std::string traffic = case_of(options, attack).traffic();
  return std::ranges::any_of(names_of(options), [&](const std::string& name) {
    return name.find(attack_name) != std::string::npos && traffic.find(name) != std::string::npos;
  });
}

std::vector<Attack> chosen_attacks(const BenchOptions& options) {
  std::vector<Attack> chosen;
  std::ranges::copy_if(attacks, std::back_inserter(chosen),
                       [&](const Attack& attack) { return attacks_by(options, attack); });
  return chosen;
}

std::vector<ChainCase> all_traffic(const BenchOptions& options) {
  std::vector<std::string> mixes{"heavy-tail", "1500", "64"};
  if (!options.mix.empty()) mixes = {options.mix};
  std::vector<ChainCase> all;
  for (const std::string& mix : mixes) {
    for (const char* const protocol : protocols) {
      for (const char* const payload : {"text", "", "web"}) {
        ChainCase traffic;
        traffic.mix = mix;
        traffic.protocol = protocol;
        traffic.payload = payload;
        // At 64 B a conversation has no space for more than its acknowledgements.
        if (traffic.converses() && mix == "64") continue;
        // No words at 64 B, and conversations have their own.
        if (traffic.payload == "web" && (traffic.converses() || mix == "64")) continue;
        all.push_back(traffic);
      }
    }
  }
  return all;
}

std::vector<ChainCase> chosen_traffic(const BenchOptions& options) {
  std::vector<ChainCase> all = all_traffic(options);
  std::erase_if(all, [&](const ChainCase& one) { return !wanted(options, one.traffic()); });
  return all;
}

// An Error when a name of --only chooses nothing.
Expected<void> check_only(const BenchOptions& options) {
  const std::vector<std::string> given = names_of(options);
  const auto chooses_nothing = [&](const std::string& name) {
    BenchOptions one = options;
    one.only = name;
    return chosen_traffic(one).empty() && chosen_attacks(one).empty();
  };
  const auto nobody = std::ranges::find_if(given, chooses_nothing);
  if (nobody == given.end()) return {};
  std::string names;
  for (const ChainCase& one : all_traffic(options)) names += "'" + one.traffic() + "', ";
  return make_error(fmt::format("--only {}: no traffic is named so: a part of {}'{}', '{}' or '{}'", *nobody, names,
                                attack_name, attack_of_codings_name, attack_by_resets_name));
}

Expected<void> run_device(const BenchOptions& options, const RouterTable& table, const RouteReference& reference,
                          const InspectRules& rules, const std::string& device, device::LinkCeilings& ceilings,
                          Goals& goals) {
  const std::vector<ChainCase> chosen = chosen_traffic(options);
  const std::vector<Attack> attacking = chosen_attacks(options);
  for (const char* const protocol : protocols) {
    const bool used = std::ranges::any_of(chosen, [&](const ChainCase& one) { return one.protocol == protocol; });
    const auto attack = std::ranges::find(attacking, std::string_view(protocol), &Attack::protocol);
    if (!used && attack == attacking.end()) continue;
    std::vector<ChainCase> measured = chosen;
    if (attack != attacking.end()) measured.push_back(ordinary_for(options, rules, *attack));
    for (const Attack& other : attacking) {
      if (other.protocol == std::string_view(protocol) && other.name != attack_name) {
        measured.push_back(attack_on(options, rules, other, false));
      }
    }
    if (auto right = verify(options, table, reference, rules, device, protocol, measured); !right) return right;
  }
  for (const ChainCase& traffic : chosen) {
    std::vector<Part> parts = parts_of(traffic, traffic.protocol == "udp" && traffic.payload == "text", options.whole);
    if (auto done = measure(options, table, rules, device, parts); !done) return done;
    const auto ceiling = ceiling_now(options, device, ceilings);
    if (!ceiling) return tl::unexpected(ceiling.error());
    report(options, device, *ceiling, parts);
    if (const auto cost = acl_cost(parts)) {
      const std::string text = fmt::format("acl costs {:.1f} % ({:.1f} to {:.1f} in {} pairs of rounds)", cost->median,
                                           cost->low, cost->high, rounds);
      std::printf("RESULT inspect %s %s: %s\n", device.c_str(), traffic.traffic().c_str(), text.c_str());
      Outcome no_rate;
      no_rate.seconds = 1;
      append_csv(options, "inspect", fmt::format("{} {} what acl costs", device, traffic.traffic()), no_rate,
                 {.share = cost->median / 100, .setting = text});
    }
    judge(device, *ceiling, parts, goals);
  }
  for (const Attack& attack : attacking) {
    if (auto done = run_attack(options, table, rules, device, attack, ceilings, goals); !done) return done;
  }
  return {};
}

}  // namespace

int bench_inspect(const BenchOptions& options) {
  if (auto some = check_only(options); !some) {
    std::fprintf(stderr, "bench inspect: %s\n", some.error().message.c_str());
    return 2;
  }
  auto routes = RouterTable::read(options);
  const auto rules = InspectRules::load(options);
  for (const auto& error :
       {routes ? std::string() : routes.error().message, rules ? std::string() : rules.error().message}) {
    if (error.empty()) continue;
    std::fprintf(stderr, "bench inspect: %s\n", error.c_str());
    return 2;
  }
  const auto fail = [](const Error& error) {
    std::fprintf(stderr, "bench inspect: %s\n", error.message.c_str());
    return 1;
  };
  if (auto eal = start_bench_eal(router_memory); !eal) return fail(eal.error());
  const auto probed = print_ceilings(options, true);
  if (!probed) std::printf("%s\n", no_gpu_line(probed.error()).c_str());
  device::LinkCeilings ceilings = probed ? *probed : device::LinkCeilings{};
  // No frame is IPv6, and the gateway is set up anew for every row.
  const auto table = RouterTable::make(std::move(*routes), {.ipv6 = 1'000});
  if (!table) return fail(table.error());
  RouteReference reference;
  if (auto read = reference.read((*table)->routes_path()); !read) return fail(read.error());
  std::printf("rules: %s\n", (*rules)->text().c_str());
  std::vector<std::string> devices;
  if (probed && options.device != "cpu") devices.push_back(options.device == "auto" ? "cuda:0" : options.device);
  if (options.device == "auto" || options.device == "cpu") devices.emplace_back("cpu");
  Goals goals("inspect", options.goals);
  int status = 0;
  for (const std::string& device : devices) {
    if (auto done = run_device(options, **table, reference, **rules, device, ceilings, goals); !done) {
      status = fail(done.error());
    }
  }
  return status | goals.status();
}

}  // namespace sluice::cli::bench
