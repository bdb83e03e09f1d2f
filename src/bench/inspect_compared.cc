#include "bench/inspect_compared.h"

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "bench/acl_sets.h"
#include "engine/wrapped_element.h"
#include "function/acl/acl.h"
#include "function/acl/frame_key.h"
#include "packet/headers.h"
#include "port/replay_conversations.h"

namespace sluice::cli::bench {
namespace {

// An element, and beside it what every verdict is compared with.
class Compared : public engine::WrappedElement {
 public:
  Compared(std::unique_ptr<engine::Element> inner, ChainCheck& check)
      : WrappedElement(std::move(inner)), check_(check), of_lane_(check.lanes) {}

  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) override {
    Lane& lane = of_lane_[batch.lane % of_lane_.size()];
    lane.expected.assign(span.count, std::nullopt);
    // Before the element makes answers of frames.
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      if (!batch.is_live(i)) continue;
      lane.expected[i - span.first] = {fate(batch, i), is_reset(batch, i)};
    }
    WrappedElement::apply(batch, span, out);
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      const auto& expected = lane.expected[i - span.first];
      if (!expected) continue;
      const bool is_wanted = ++lane.frames <= check_.frames_per_lane;
      check_.frames.fetch_add(1, std::memory_order_relaxed);
      check_.wanted.fetch_add(is_wanted ? 1 : 0, std::memory_order_relaxed);
      check_.wrong.fetch_add(verdict(batch, i, *expected) != expected->reason ? 1 : 0, std::memory_order_relaxed);
      check_.dropped.fetch_add(expected->reason != packet::no_reason ? 1 : 0, std::memory_order_relaxed);
    }
  }

 protected:
  // What the element must say of the frame.
  virtual packet::Reason fate(const engine::Batch& batch, std::uint32_t i) = 0;

  ChainCheck& check_;

 private:
  struct Expectation {
    packet::Reason reason;
    bool was_reset;
  };
  struct alignas(64) Lane {  // each its thread's
    std::uint64_t frames = 0;
    std::vector<std::optional<Expectation>> expected;
  };

  // Of Ethernet, IPv4 and TCP without options.
  static bool is_reset(const engine::Batch& batch, std::uint32_t i) {
    constexpr std::size_t protocol = 14 + 9, flags = 14 + 20 + 13;
    const std::uint8_t* const frame = batch.data(i);
    return batch.length[i] > flags && frame[protocol] == packet::protocol_tcp && (frame[flags] & packet::tcp_rst) != 0;
  }
  // What it has said. A frame of which it has made a reset for the receiver goes on, and was rejected.
  static packet::Reason verdict(const engine::Batch& batch, std::uint32_t i, const Expectation& expected) {
    if (!batch.is_live(i)) return batch.row[i].reason;
    const bool became_reset = expected.reason != packet::no_reason && !expected.was_reset && is_reset(batch, i);
    return became_reset ? function::inspect_rejected : packet::no_reason;
  }

  std::vector<Lane> of_lane_;
};

class ComparedAcl final : public Compared {
 public:
  ComparedAcl(const std::vector<lookup::acl::AclRule>& rules, ChainCheck& check)
      : Compared(std::make_unique<function::Acl>(function::Acl::AclOptions{rules}), check),
        rules_(rules),
        first_(rules_) {}

 private:
  packet::Reason fate(const engine::Batch& batch, std::uint32_t i) override {
    lookup::acl::Key4 key4;
    lookup::acl::Key6 key6;
    if (function::make_key(reinterpret_cast<const std::uint8_t*>(batch.frame[i]), batch.length[i], key4, key6) !=
        function::KeyKind::ipv4) {
      return packet::no_reason;
    }
    const lookup::acl::RuleIndex first = first_.of(key4);
    const bool denies = first != lookup::acl::no_match && rules_[first].action.kind == lookup::acl::ActionKind::deny;
    return denies ? function::acl_denied : packet::no_reason;
  }
  const std::vector<lookup::acl::AclRule> rules_;
  const FirstMatch first_;
};

class ComparedInspect final : public Compared, public engine::Output {
 public:
  ComparedInspect(const function::InspectOptions& options, ChainCheck& check)
      : Compared(std::make_unique<function::Inspect>(options), check),
        options_(options),
        inspect_(static_cast<function::Inspect&>(inner())) {}

  void* find_trait(std::string_view name) override {
    void* const own = engine::offer<engine::Output>(name, this);
    return own != nullptr ? own : Compared::find_trait(name);
  }
  Expected<void> prepare(const engine::Plan& plan) override {
    if (auto ok = Compared::prepare(plan); !ok) return ok;
    auto set = match::read_rules(options_.rules, options_.reading);
    if (!set) return tl::unexpected(set.error());
    auto rules = function::InspectionRules::make(std::move(*set));
    if (!rules) return tl::unexpected(rules.error());
    for (std::uint32_t thread = 0; thread < plan.threads; ++thread) {
      lanes_.push_back(std::make_unique<Lane>(*rules, options_.inspection, plan.threads, check_));
    }
    return {};
  }
  std::string lost_output() const override { return inspect_.lost_output(); }
  void stopped() override {
    inspect_.stopped();
    for (const auto& lane : lanes_) {
      lane->inspection.finish();  // as the other has: what conversations still hold is inspected
      const match::RateCounters& rates = lane->inspection.rate_counters();
      check_.alerts += lane->inspection.counters().alerts + rates.action_only + rates.nothing;
    }
  }

 private:
  struct Planted final : function::AlertSink {
    explicit Planted(ChainCheck& in) : check(in) {}
    void alert(const function::Alert& alert) override {
      const bool is = InspectRules::is_planted(alert.rules->detector().rules().rules[alert.rule]);
      check.planted_alerts.fetch_add(is ? 1 : 0, std::memory_order_relaxed);
    }
    ChainCheck& check;
  };
  struct Lane {
    Lane(std::shared_ptr<const function::InspectionRules> rules, function::InspectionSettings settings,
         std::uint32_t threads, ChainCheck& check)
        : sink(check),
          inspection(std::make_unique<function::InspectionSearch>(std::move(rules)), of_thread(settings, threads),
                     sink) {}
    static function::InspectionSettings of_thread(function::InspectionSettings settings, std::uint32_t threads) {
      flow::ConversationSettings& tables = settings.conversations;
      tables.flows.capacity = tables.flows.capacity / threads + 1;
      for (std::uint32_t* const count : {&tables.extras, &tables.http_connections, &tables.http_transactions}) {
        *count = *count / threads + 1;
      }
      tables.stream_bytes /= threads;
      tables.http_bytes /= threads;
      return settings;
    }
    Planted sink;
    std::uint64_t now = 0;
    function::Inspection inspection;
  };

  packet::Reason fate(const engine::Batch& batch, std::uint32_t i) override {
    Lane& lane = *lanes_[batch.lane % lanes_.size()];
    const std::string_view frame(reinterpret_cast<const char*>(batch.frame[i]), batch.length[i]);
    count(frame);
    const packet::Reason reason = function::Inspect::reason_of(lane.inspection.frame(frame, ++lane.now));
    // Of what the kernel is to forward nobody is notified.
    return reason == function::inspect_rejected && !batch.goes_on(i) ? function::inspect_dropped : reason;
  }

  // By the bytes of the frame alone, Ethernet, IPv4 and TCP without options.
  void count(std::string_view frame) {
    constexpr std::size_t port = 14 + 20 + 2, flags = 14 + 20 + 13, payload = 14 + 20 + 20;
    if (frame.size() < payload || frame[23] != 6) return;
    const std::string_view bytes = frame.substr(payload);
    const bool http = frame.substr(port, 2) == std::string_view("\0P", 2);  // to port 80
    const auto add = [](std::atomic<std::uint64_t>& to, bool what) {
      to.fetch_add(what ? 1 : 0, std::memory_order_relaxed);
    };
    add(check_.conversations, frame[flags] == packet::tcp_syn);
    add(check_.requests, http && bytes.starts_with("GET /"));
    add(check_.planted, bytes.starts_with(http ? port::planted_path.second : port::planted_text.second));
  }

  const function::InspectOptions options_;
  function::Inspect& inspect_;
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace

std::unique_ptr<engine::Element> compared_acl(const std::vector<lookup::acl::AclRule>& rules, ChainCheck& check) {
  return std::make_unique<ComparedAcl>(rules, check);
}

std::unique_ptr<engine::Element> compared_inspect(const function::InspectOptions& options, ChainCheck& check) {
  return std::make_unique<ComparedInspect>(options, check);
}

}  // namespace sluice::cli::bench
