// The chain acl + route + inspect, and parts of it, on a replay port, as sluice bench inspect wants it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "bench/acl_in_turns.h"
#include "bench/bench.h"
#include "bench/route_reference.h"
#include "bench/router_rig.h"
#include "lookup/acl/acl_rule.h"
#include "match/rules/rule_set.h"

namespace sluice::cli::bench {

struct ChainCase;

// In the names of traffic, and the replay port's payloads of the last two.
inline constexpr std::string_view attack_name = "attack", attack_of_codings_name = "attack of codings",
                                  attack_by_resets_name = "attack by resets";
inline constexpr std::string_view codings_payload = "codings", resets_payload = "resets";

// What the chain is made of, besides the routes.
class InspectRules {
 public:
  // Those of --rules and --acl, or made-up ones. Errors: files that cannot be read, or hold no rule that loads.
  static Expected<std::unique_ptr<InspectRules>> load(const BenchOptions& options);
  ~InspectRules();
  InspectRules(const InspectRules&) = delete;
  InspectRules& operator=(const InspectRules&) = delete;

  const std::string& text() const { return text_; }            // of how many rules of which kind
  const std::string& detection() const { return detection_; }  // path of the detection rules
  const std::string& dropping() const { return dropping_; }    // of the same, of which every second one drops
  // Path of two rules more, for what the replay port plants into conversations (port/replay_conversations.h), and
  // whether a rule is one of them.
  const std::string& planted() const { return planted_; }
  static bool is_planted(const match::Rule& rule) { return rule.msg.starts_with(planted_message); }
  const std::vector<lookup::acl::AclRule>& acl() const { return acl_; }
  // A file for the replay port's `payload`: pieces that are the contents of the rules.
  const std::string& contents() const { return contents_; }
  // The same among common words, one in 600 bytes: text in which rules find something now and then.
  const std::string& words_with_contents() const { return words_with_contents_; }
  // A file for the replay port's `flows`: distinct 5-tuples drawn from those of the ACL rules that admit such frames,
  // as make_headers4() draws them, so that rules at all depths decide. Of words of the web, and of attacks, to port
  // 53 or 80. Not of conversations.
  const std::string& flows(const ChainCase& one) const;

 private:
  static constexpr std::string_view planted_message = "sluice bench: planted";
  InspectRules() = default;
  Expected<void> load_detection(const BenchOptions& options);
  Expected<void> load_acl(const BenchOptions& options);
  Expected<void> make_flows(std::size_t kind);

  std::string text_, detection_, dropping_, planted_, contents_, words_with_contents_;
  std::array<std::string, 4> flows_;  // by kind
  std::vector<lookup::acl::AclRule> acl_;
  std::vector<int> files_;  // of memory, gone with the program
};

struct ChainCase {
  bool acl = true, inspect = true, fused = true;
  std::string mix = "heavy-tail";
  std::string protocol = "udp";  // as RigOptions, like payload
  std::string payload;
  bool bounded = false;  // by the default budget; else every prefilter match is confirmed
  bool drop_on_overload = false;
  bool rare_contents = false;  // `payload` is InspectRules::words_with_contents()
  // In zero-load mode the device finds nothing, at once: what is left is what the lanes' cores do.
  engine::Mode mode = engine::Mode::full;
  // Whether it is of the same engine as `other`, whose parts take turns (acl_in_turns.h).
  bool takes_turns_with(const ChainCase& other) const {
    return inspect && other.inspect && mode == engine::Mode::full && other.mode == mode;
  }
  std::string name() const;     // "acl + inspect + route"
  std::string traffic() const;  // "heavy-tail TCP text"
  // Frames are whole TCP conversations.
  bool converses() const { return protocol == "streams" || protocol == "http"; }
};

// What a verification run saw.
struct ChainCheck {
  std::uint64_t lanes = 1, frames_per_lane = 0;  // how many are wanted
  std::atomic<std::uint64_t> frames{0};          // judged by the element that is compared
  std::atomic<std::uint64_t> wanted{0};          // of these: the first frames_per_lane of each lane
  std::atomic<std::uint64_t> wrong{0};    // of these: let by, or dropped for a reason, otherwise than by the core
  std::atomic<std::uint64_t> dropped{0};  // of these: frames that both drop
  std::atomic<std::uint64_t> alerts{0};   // of the core
  // Of conversations, as their frames say, and of the core's alerts those for what is planted there.
  std::atomic<std::uint64_t> conversations{0}, requests{0}, planted{0}, planted_alerts{0};
  double frames_a_batch = 0;  // on average, of the device that is verified
};

// Of a whole chain.
struct ChainSeen {
  ChainCheck acl, inspect;
  std::uint64_t left = 0;  // frames that left, by the port and to the next hop of their route
};

// Of the figures of a chain that inspects conversations without loss: those that are not 0, but should be; empty: all
// were followed whole. Other streams than HTTP's may begin like a request, by a rule's contents, and go on otherwise.
std::string not_whole(const ChainCase& one, const std::vector<engine::Metric>& figures);

// How many frames were dropped besides those whose verdict says so and those that no element had judged when the engine
// stopped: where a batch takes seconds to compare, some are under way then.
std::uint64_t dropped_besides(const engine::EngineStats& stats, std::uint64_t by_verdicts);

// `turns`: by which acl comes and goes while the engine runs; null: it does as `one` says.
RigOptions chain_rig(const BenchOptions& options, const RouterTable& table, const InspectRules& rules,
                     const ChainCase& one, const std::string& device, const std::shared_ptr<AclTurns>& turns = nullptr);

// In a run of its own, saturated like the one that is measured and by as many lanes. It goes on until each lane has
// judged as many frames as it comes round with (of conversations 12,288, of fewer of them than are measured, each three
// times), nine in ten of them handed to the device, and searched by it with the rules that judge them. Each frame's
// verdict of the chain's classifier is the first match of its rules, tried one after the other, every second of which
// denies. The verdict of its inspection, every second of whose rules drops, with its reason, and how many alerts there
// are, of all rules and lanes together, are those of a core that inspects the same frames in the same order with
// Hyperscan. Which rules the alerts are of is not compared here (scripts/compare-alerts does, of captures). Of
// conversations, which would end, no rule drops. Where frames are conversations, besides: it has followed as many, and
// as many requests, as there are SYNs and requests in the frames, none with a gap, and what is planted there has made
// an alert each time. Every frame that leaves goes to the next hop that `reference`, which has read the table, names
// for it, and is changed as a router does and in nothing else (leaving_frames.h). The measured run has the rules as
// they are, and is not compared frame by frame.
Expected<void> verify_chain(const BenchOptions& options, const RouterTable& table, const RouteReference& reference,
                            const InspectRules& rules, const ChainCase& one, const std::string& device,
                            ChainSeen& seen);

}  // namespace sluice::cli::bench
