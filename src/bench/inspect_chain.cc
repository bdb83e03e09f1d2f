#include "bench/inspect_chain.h"

#include <spdlog/fmt/fmt.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <set>

#include "bench/acl_sets.h"
#include "bench/inspect_compared.h"
#include "bench/inspect_parts.h"
#include "bench/leaving_frames.h"
#include "bench/match_patterns.h"
#include "bench/progress.h"
#include "bench/verify.h"
#include "engine/lane.h"
#include "function/acl/acl.h"
#include "function/inspect/inspect.h"
#include "lookup/acl/classbench.h"
#include "lookup/acl/make_rules.h"
#include "match/rules/fast_pattern.h"
#include "packet/headers.h"
#include "port/replay_conversations.h"

namespace sluice::cli::bench {
namespace {

constexpr const char* default_patterns = "3000";
constexpr std::size_t words_for_each = 7;  // pieces of words for each of the contents among them
constexpr std::size_t made_acl_rules = 10'000;
constexpr std::size_t flow_count = 65'536;
constexpr std::size_t flows_looked_up = 8192;  // of these, one rule after the other
constexpr std::uint64_t seed = 2022;
// Of conversations, for each lane, where so many frames of all lanes fit into the bench's memory.
constexpr unsigned frames_of_many = 32768, most_lanes_of_many = 24;
constexpr std::uint32_t conversations_kept = 1U << 16;
// Those that are verified, of each lane, and how many of them: each three times.
constexpr unsigned verified_conversation_frames = 4096;
constexpr std::uint64_t verified_of_conversations = 12'288;
constexpr double least_verified = 0.9;  // of the frames that are wanted, those that the device has searched
constexpr std::uint64_t conversation_bytes = 512ULL << 20;  // of streams, and of HTTP; what is used of it is taken

// Kinds of flows.
struct FlowKind {
  std::string_view name;
  std::uint8_t protocol, flags;  // of all its frames
  std::uint16_t port;            // that they are sent to; 0: as the rules say
};
constexpr FlowKind flow_kinds[] = {{"UDP", 17, 0, 0},
                                   {"TCP", 6, packet::tcp_ack, 0},
                                   {"UDP to port 53", 17, 0, 53},
                                   {"TCP to port 80", 6, packet::tcp_ack, 80}};

bool admits(const lookup::acl::AclRule& rule, const FlowKind& kind) {
  return rule.is_of(4) && rule.protocol.contains(kind.protocol) && rule.flags.contains(kind.flags) &&
         (kind.port == 0 || rule.destination_port.contains(kind.port));
}

// Distinct ones, between addresses that a router forwards. Fewer than wanted where the rules are of few.
std::vector<lookup::acl::Key4> keys_of(const std::vector<lookup::acl::AclRule>& rules, const FlowKind& kind) {
  constexpr std::uint64_t most_turns = 16;
  std::vector<lookup::acl::Key4> keys;
  std::set<std::string> known;
  for (std::uint64_t turn = 0; turn < most_turns && keys.size() < flow_count; ++turn) {
    for (lookup::acl::Key4& key : lookup::acl::make_headers4(rules, flow_count, seed + turn)) {
      key.protocol = kind.protocol;
      key.flags = kind.flags;
      if (kind.port != 0) {
        key.destination_port[0] = static_cast<std::uint8_t>(kind.port >> 8);
        key.destination_port[1] = static_cast<std::uint8_t>(kind.port);
      }
      const bool forwarded = router_forwards(packet::IpAddress::from_bytes(4, key.source)) &&
                             router_forwards(packet::IpAddress::from_bytes(4, key.destination));
      if (!forwarded || keys.size() == flow_count) continue;
      if (known.emplace(reinterpret_cast<const char*>(&key), sizeof key).second) keys.push_back(key);
    }
  }
  return keys;
}

// How many rules decide them.
std::string depth_text(const std::vector<lookup::acl::AclRule>& rules, const std::vector<lookup::acl::Key4>& keys) {
  const FirstMatch first(rules);
  const std::size_t count = std::min(keys.size(), flows_looked_up);
  std::set<lookup::acl::RuleIndex> deciding;
  std::size_t unmatched = 0;
  for (std::size_t k = 0; k < count; ++k) {
    const lookup::acl::RuleIndex rule = first.of(keys[k]);
    if (rule == lookup::acl::no_match) {
      ++unmatched;
    } else {
      deciding.insert(rule);
    }
  }
  return fmt::format("{} flows; {} rules decide {} of them, and {} match none", keys.size(), deciding.size(), count,
                     unmatched);
}

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<std::uint8_t>(c));
  return text;
}

// A file in memory, by a path that this process can open.
Expected<std::string> memory_file(const char* name, const std::string& text, std::vector<int>& files) {
  const int fd = memfd_create(name, MFD_CLOEXEC);
  if (fd < 0 || write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    return make_error(fmt::format("no memory for {} bytes of {}", text.size(), name));
  }
  files.push_back(fd);
  return fmt::format("/proc/self/fd/{}", fd);
}

// So many pieces, in which no rule finds anything.
std::string common_words(std::size_t count) {
  static constexpr std::string_view words[] = {
      "when the long day was over they all went down to the water and sat there for a while ",
      "nobody could say who had been the first to find the way through the high and quiet hills ",
      "each of them took what was left and then made a small fire under the old tree by the road "};
  std::string pieces;
  for (std::size_t i = 0; i < count; ++i) pieces += hex(words[i % std::size(words)]) + "\n";
  return pieces;
}

// One a pattern.
std::string rules_of(const std::vector<match::Pattern>& patterns) {
  std::string text;
  unsigned sid = 0;
  for (const match::Pattern& pattern : patterns) {
    text += fmt::format("alert ip any any -> any any (msg:\"of a pattern\"; content:\"|{}|\"; {}sid:{};)\n",
                        hex(pattern.bytes), pattern.nocase ? "nocase; " : "", ++sid);
  }
  return text;
}

// The rules with `drop` for every second `alert`, of those that are commented out, too.
std::string dropping_rules(const std::string& path) {
  constexpr std::string_view action = "alert ";
  std::string all;
  unsigned alerts = 0;
  std::ifstream lines(path);
  for (std::string line; std::getline(lines, line); all += line + "\n") {
    const std::size_t at = line.find_first_not_of("# \t");
    if (at == std::string::npos || line.compare(at, action.size(), action) != 0) continue;
    if (++alerts % 2 == 0) line.replace(at, action.size(), "drop ");
  }
  return all;
}

match::ReadOptions all_rules() {
  match::ReadOptions options;
  options.commented_out = true;
  return options;
}

// What the replay port plants, each in a stream or a request that only looking across segments finds.
std::string planted_rules(std::string_view message) {
  return fmt::format(
      "alert tcp any any -> any any (msg:\"{0} in a stream\"; flow:established,to_server; content:\"{1}\"; "
      "sid:4294967001;)\n"
      "alert http any any -> any any (msg:\"{0} in a request\"; flow:established,to_server; http.uri; "
      "content:\"{2}\"; sid:4294967002;)\n",
      message, port::planted_text.whole(), port::planted_path.whole());
}

function::InspectOptions inspect_options(const InspectRules& rules, const ChainCase& one) {
  function::InspectOptions options;
  // The policy is about rules that drop.
  options.rules = {one.drop_on_overload ? rules.dropping() : rules.detection()};
  options.reading = all_rules();
  options.inspection.conversations.flows.capacity = 1U << 20;
  options.inspection.conversations.extras = 1U << 16;
  options.inspection.drop_on_overload = one.drop_on_overload;
  flow::StreamSettings& streams = options.inspection.conversations.streams;
  streams.drop_conflicts = true;  // as a gateway that forwards, this and the next
  streams.drop_without_capacity = one.drop_on_overload;
  if (!one.bounded) {
    options.budget = std::chrono::hours(1);
    options.inspection.budget =
        std::numeric_limits<std::uint32_t>::max();  // keys lead to more prefilter matches than patterns
  }
  if (!one.converses()) return options;
  // All lanes' conversations are kept at once: those that are over stay until their timeout, or the next of their
  // ports.
  options.rules.push_back(rules.planted());
  flow::ConversationSettings& tables = options.inspection.conversations;
  tables.extras = tables.http_connections = conversations_kept;
  tables.http_transactions = 2 * conversations_kept;
  tables.stream_bytes = tables.http_bytes = conversation_bytes;
  return options;
}

std::uint64_t figure(const std::vector<engine::Metric>& figures, std::string_view name) {
  const auto found = std::ranges::find(figures, name, &engine::Metric::name);
  return found == figures.end() ? 0 : found->value;
}

// Followed, each of them whole, and what is planted found.
Expected<void> check_conversations(const ChainCase& one, const InspectRules& rules,
                                   const std::vector<engine::Metric>& figures, const ChainCheck& seen) {
  if (const std::string broken = not_whole(one, figures); !broken.empty()) {
    return make_error("inspect: conversations were not followed whole:" + broken);
  }
  struct Pair {
    const char* what;
    std::uint64_t counted, there;
  };
  const bool http = one.protocol == "http";
  for (const Pair& pair : {Pair{"conversations", figure(figures, "inspect_flows_made"), seen.conversations},
                           Pair{"requests", figure(figures, "inspect_http_transactions"), seen.requests},
                           Pair{"alerts for what is planted", seen.planted_alerts, seen.planted}}) {
    // The contents of rules may be requests wherever they are.
    const bool none_wanted = pair.what == std::string_view("requests") && !http;
    if (none_wanted && one.payload == rules.contents()) continue;
    // Nothing is planted where resets come before what would make it whole.
    const bool none_there = none_wanted || one.payload == resets_payload;
    if (pair.counted != pair.there || (pair.there == 0 && !none_there)) {
      return make_error(
          fmt::format("inspect: {} {}, and there are {} in the frames", pair.counted, pair.what, pair.there));
    }
  }
  return {};
}

}  // namespace

InspectRules::~InspectRules() {
  for (const int fd : files_) close(fd);
}

Expected<std::unique_ptr<InspectRules>> InspectRules::load(const BenchOptions& options) {
  const Progress progress("reading rules");
  std::unique_ptr<InspectRules> rules(new InspectRules);
  if (auto ok = rules->load_detection(options); !ok) return tl::unexpected(ok.error());
  if (auto ok = rules->load_acl(options); !ok) return tl::unexpected(ok.error());
  return rules;
}

Expected<void> InspectRules::load_detection(const BenchOptions& options) {
  auto planted = memory_file("planted", planted_rules(planted_message), files_);
  if (!planted) return tl::unexpected(planted.error());
  planted_ = *planted;
  detection_ = options.rules;
  std::string name = "of " + options.rules;
  if (detection_.empty()) {
    auto patterns = choose_patterns(options.patterns.empty() ? default_patterns : options.patterns);
    if (!patterns) return tl::unexpected(patterns.error());
    name = "made of patterns: " + patterns->name;
    auto made = memory_file("rules", rules_of(patterns->patterns), files_);
    if (!made) return tl::unexpected(made.error());
    detection_ = *made;
  }
  const auto set = match::read_rules(std::vector<std::string>{detection_}, all_rules());
  if (!set) return tl::unexpected(set.error());
  if (set->rules.empty()) return make_error(detection_ + ": holds no rule that loads: sluice rules says why");
  auto file = memory_file("dropping", dropping_rules(detection_), files_);
  if (!file) return tl::unexpected(file.error());
  dropping_ = *file;
  std::string pieces;
  for (const match::Rule& rule : set->rules) {
    if (const auto best = match::best_pattern(rule)) pieces += hex(best->bytes) + "\n";
  }
  auto contents = memory_file("contents", pieces, files_);
  if (!contents) return tl::unexpected(contents.error());
  contents_ = *contents;
  const auto count = static_cast<std::size_t>(std::ranges::count(pieces, '\n'));
  auto words = memory_file("words", pieces + common_words(words_for_each * count), files_);
  if (!words) return tl::unexpected(words.error());
  words_with_contents_ = *words;
  text_ = fmt::format("{} detection rules {}, {} do not load", set->rules.size(), name, set->refused.size());
  return {};
}

Expected<void> InspectRules::load_acl(const BenchOptions& options) {
  if (options.acl.empty()) {
    acl_ = lookup::acl::make_rules(lookup::acl::RuleMix::acl, made_acl_rules, seed);
  } else {
    auto read = lookup::acl::read_classbench(options.acl);
    if (!read) return tl::unexpected(read.error());
    acl_ = std::move(*read);
  }
  for (lookup::acl::AclRule& rule : acl_) rule.action = {};
  text_ +=
      fmt::format("; {} ACL rules {}", acl_.size(), options.acl.empty() ? "that are made up" : "of " + options.acl);
  for (std::size_t kind = 0; kind < flows_.size(); ++kind) {
    if (auto made = make_flows(kind); !made) return made;
  }
  return {};
}

Expected<void> InspectRules::make_flows(std::size_t kind) {
  const FlowKind& wanted = flow_kinds[kind];
  std::vector<lookup::acl::AclRule> admitting;
  std::ranges::copy_if(acl_, std::back_inserter(admitting), [&](const auto& rule) { return admits(rule, wanted); });
  const std::vector<lookup::acl::Key4> keys = keys_of(admitting.empty() ? acl_ : admitting, wanted);
  if (keys.empty()) {
    return make_error(fmt::format("ACL rules: none is of addresses that a router forwards {} between", wanted.name));
  }
  std::string lines;
  const auto port = [](const std::uint8_t* bytes) { return bytes[0] << 8 | bytes[1]; };
  for (const lookup::acl::Key4& key : keys) {
    lines += fmt::format("{} {} {} {}\n", packet::IpAddress::from_bytes(4, key.source).str(), port(key.source_port),
                         packet::IpAddress::from_bytes(4, key.destination).str(), port(key.destination_port));
  }
  auto file = memory_file("flows", lines, files_);
  if (!file) return tl::unexpected(file.error());
  flows_[kind] = *file;
  text_ +=
      fmt::format("\nframes of {}: {} ACL rules admit such; {}", wanted.name, admitting.size(), depth_text(acl_, keys));
  return {};
}

const std::string& InspectRules::flows(const ChainCase& one) const {
  const bool of_rules = one.payload.empty() || one.payload == "text";
  return flows_[(one.protocol == "tcp" ? 1 : 0) + (of_rules ? 0 : 2)];
}

std::string ChainCase::name() const {
  return std::string(acl ? "acl + " : "") + (inspect ? "inspect + " : "") + "route" + (fused ? "" : " apart") +
         (mode == engine::Mode::zero_load ? " zero-load" : "");
}

std::string ChainCase::traffic() const {
  const std::string what = payload.empty()              ? "random bytes"
                           : payload == "text"          ? "text"
                           : payload == "web"           ? "web words"
                           : payload == codings_payload ? std::string(attack_of_codings_name)
                           : payload == resets_payload  ? std::string(attack_by_resets_name)
                           : rare_contents              ? "text with contents"
                                                        : std::string(attack_name);
  const std::string kind = protocol == "udp"    ? "UDP"
                           : protocol == "tcp"  ? "TCP"
                           : protocol == "http" ? "HTTP"
                                                : "TCP streams";
  return mix + " " + kind + " " + what;
}

std::string not_whole(const ChainCase& one, const std::vector<engine::Metric>& figures) {
  std::vector<std::string_view> names = {
      "inspect_without_flow",     "inspect_flows_evicted",       "inspect_stream_gaps",
      "inspect_stream_conflicts", "inspect_streams_refused",     "inspect_bad_sequence",
      "inspect_stream_not_taken", "inspect_stream_history_lost", "inspect_http_no_memory"};
  if (one.protocol == "http") {
    names.insert(names.end(), {"inspect_http_evicted", "inspect_http_stopped", "inspect_http_unanswered",
                               "inspect_http_fields_cut", "inspect_http_bad_chunks", "inspect_http_bodies_cut",
                               "inspect_http_bodies_lost", "inspect_http_bodies_undecoded"});
  }
  // What these attacks are made of.
  if (one.payload == codings_payload) std::erase(names, "inspect_http_bodies_cut");
  if (one.payload == resets_payload) std::erase(names, "inspect_stream_gaps");
  std::string text;
  for (const std::string_view name : names) {
    if (const std::uint64_t value = figure(figures, name); value != 0) text += fmt::format(" {} {}", name, value);
  }
  return text;
}

// At saturation a batch waits for all that are under way: of all lanes, as much as a PCIe 5 x16 link carries in 0.7 ms.
constexpr unsigned batches_under_way = 5;
constexpr double bytes_under_way = 38e6;

unsigned frames_of_batch(const RigOptions& rig) {
  const auto mix = packet::FrameMix::make(rig.mix);
  const double frames = bytes_under_way / (mix ? mix->mean() : 64) / (rig.lanes * rig.engine.batches);
  return std::clamp(static_cast<unsigned>(frames) / 32 * 32, 64U, 8192U);
}

RigOptions chain_rig(const BenchOptions& options, const RouterTable& table, const InspectRules& rules,
                     const ChainCase& one, const std::string& device, const std::shared_ptr<AclTurns>& turns) {
  RigOptions rig = router_rig(options, table, 4, one.mode, device);
  if (turns) {
    rig.elements.push_back({"acl", [&rules, turns](const engine::PortTable&) {
                              return std::make_unique<AclInTurns>(function::Acl::AclOptions{rules.acl()}, turns);
                            }});
  } else if (one.acl) {
    rig.elements.push_back({"acl", [&rules](const engine::PortTable&) {
                              return std::make_unique<function::Acl>(function::Acl::AclOptions{rules.acl()});
                            }});
  }
  if (one.inspect) {
    rig.elements.push_back({"inspect", [&rules, one](const engine::PortTable&) {
                              return std::make_unique<function::Inspect>(inspect_options(rules, one));
                            }});
  }
  rig.fused = turns || one.fused;
  rig.mix = options.mix.empty() ? one.mix : options.mix;
  rig.protocol = one.protocol;
  if (one.converses() && options.frames == 0 && rig.lanes <= most_lanes_of_many) rig.frames = frames_of_many;
  rig.payload = one.payload;
  // Frames that are dropped come back early; out of order they would be other conversations.
  rig.ordered = one.converses() && one.drop_on_overload;
  if (!one.converses()) {
    rig.destinations.clear();
    rig.flows = rules.flows(one);
  }
  rig.engine.cycle = std::chrono::microseconds(options.cycle_us > 0 ? static_cast<int>(options.cycle_us) : 100);
  rig.engine.streams = options.streams != 0 ? options.streams : 8;
  if (one.inspect && options.batches == 0) rig.engine.batches = batches_under_way;
  if (one.inspect && options.batch == 0) rig.engine.batch = frames_of_batch(rig);
  return rig;
}

std::uint64_t dropped_besides(const engine::EngineStats& stats, std::uint64_t by_verdicts) {
  const std::uint64_t known = by_verdicts + stats.drops[engine::stopped];
  return stats.total.dropped - std::min(stats.total.dropped, known);
}

Expected<void> verify_chain(const BenchOptions& options, const RouterTable& table, const RouteReference& reference,
                            const InspectRules& rules, const ChainCase& one, const std::string& device,
                            ChainSeen& seen) {
  const Progress progress("verifying the chain");
  ChainCheck &acl = seen.acl, &inspect = seen.inspect;
  RigOptions rig_options = chain_rig(options, table, rules, one, device);
  if (one.converses()) rig_options.frames = verified_conversation_frames;
  for (ChainCheck* const check : {&acl, &inspect}) {
    check->lanes = rig_options.lanes;
    check->frames_per_lane = one.converses() ? verified_of_conversations : rig_options.frames;
  }
  rig_options.settings = table.settings_on_ports(rig_options.ports);
  rig_options.elements.clear();
  if (one.acl) {
    std::vector<lookup::acl::AclRule> every_second = rules.acl();
    for (std::size_t r = 0; r < every_second.size(); ++r) {
      const bool is_last = r + 1 == every_second.size();
      if (r % 2 == 0 && !is_last) every_second[r].action.kind = lookup::acl::ActionKind::deny;
    }
    rig_options.elements.push_back(
        {"acl", [every_second, &acl](const engine::PortTable&) { return compared_acl(every_second, acl); }});
  }
  const engine::Metrics* compared = nullptr;
  function::InspectOptions settings = inspect_options(rules, one);
  if (!one.converses()) settings.rules = {rules.dropping()};
  if (one.inspect) {
    rig_options.elements.push_back({"inspect", [settings, &inspect, &compared](const engine::PortTable&) {
                                      auto element = compared_inspect(settings, inspect);
                                      compared = element->trait<engine::Metrics>();
                                      return element;
                                    }});
  }
  auto rig = Rig::make(rig_options);
  if (!rig) return tl::unexpected(rig.error());
  auto leaving = LeavingFrames::watch(**rig, rig_options, reference, 1);
  if (!leaving) return tl::unexpected(leaving.error());
  const ChainCheck& last = one.inspect ? inspect : acl;
  const std::uint64_t wanted = last.frames_per_lane * last.lanes;
  // Frames that were handed to it, and that cores have searched because its tables are of other rules, verify a core.
  const auto on_device = [&]() -> Expected<void> {
    if (device == "cpu" || compared == nullptr) return {};
    return searched_by_device(compared->metrics(), least_verified * static_cast<double>(wanted));
  };
  if (auto ran = run_until(**rig, last.wanted, wanted, on_device); !ran) return ran;
  const engine::EngineStats stats = (*rig)->engine().stats();
  const engine::EngineStats::Lane& total = stats.total;
  inspect.frames_a_batch =
      static_cast<double>(device == "cpu" ? total.frames_cpu : total.frames_gpu) /
      static_cast<double>(std::max<std::uint64_t>(1, device == "cpu" ? total.batches_cpu : total.batches_gpu));
  if (auto right = (*leaving)->judge(); !right) return make_error("route: " + right.error().message);
  seen.left = (*leaving)->frames();
  if (seen.left == 0) return make_error("route: no frame left, so that no route was verified");
  for (const ChainCheck* check : {&acl, &inspect}) {
    if (check->wrong != 0) {
      return make_error(fmt::format("{}: of {} frames {} have another verdict than a core gives",
                                    check == &acl ? "acl" : "inspect", check->frames.load(), check->wrong.load()));
    }
  }
  if (const std::uint64_t others = dropped_besides(stats, acl.dropped + inspect.dropped); others != 0) {
    return make_error(fmt::format("{} frames were dropped, of which acl and inspect should have dropped {} fewer: {}",
                                  stats.total.dropped, others, drops_text(stats)));
  }
  if (compared != nullptr) {
    const bool has_contents = one.payload == rules.contents() || one.payload == rules.words_with_contents();
    const bool drops = !one.converses() || one.drop_on_overload;
    if (drops && has_contents && inspect.dropped == 0) {
      return make_error(
          fmt::format("inspect: of {} frames with the rules' contents none is dropped", inspect.frames.load()));
    }
    // Whether a rule with a threshold makes one depends on the time, which is not the same for both.
    std::uint64_t alerts = 0;
    for (const char* const name : {"inspect_alerts", "inspect_threshold_no_alert", "inspect_threshold_no_effect"}) {
      alerts += figure(compared->metrics(), name);
    }
    if (alerts != inspect.alerts) {
      return make_error(
          fmt::format("inspect: rules hold {} times on {}, {} on a core", alerts, device, inspect.alerts.load()));
    }
    if (one.converses() && !one.drop_on_overload) return check_conversations(one, rules, compared->metrics(), inspect);
  }
  return {};
}

}  // namespace sluice::cli::bench
