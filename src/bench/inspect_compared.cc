#include "bench/inspect_compared.h"

#include <string_view>
#include <utility>

#include "bench/acl_sets.h"
#include "function/acl/acl.h"
#include "function/acl/frame_key.h"
#include "packet/headers.h"
#include "port/replay_conversations.h"

namespace sluice::cli::bench {
namespace {

// A stage, and beside it what every verdict is compared with.
class Compared : public engine::Stage {
 public:
  Compared(std::unique_ptr<engine::Stage> inner, ChainCheck& check)
      : inner_(std::move(inner)), check_(check), of_lane_(check.lanes) {}

  std::uint32_t bytes_per_frame() const override { return inner_->bytes_per_frame(); }
  Expected<void> prepare(const engine::LanePlan& plan) override { return inner_->prepare(plan); }
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override { return inner_->attach(gpu, plan); }
  void describe(const engine::Batch& batch, std::byte* area, std::uint32_t first) override {
    inner_->describe(batch, area, first);
  }
  Expected<void> launch(const engine::Batch& batch, std::byte* area, device::GpuStream& stream) override {
    return inner_->launch(batch, area, stream);
  }
  bool join(const engine::Batch& batch, std::byte* area, function::FusedWork& work) override {
    return inner_->join(batch, area, work);
  }
  void compute(const engine::Batch& batch, std::byte* area, std::uint32_t first, std::uint32_t count) override {
    inner_->compute(batch, area, first, count);
  }
  void lost(const engine::Batch& batch, std::byte* area) override { inner_->lost(batch, area); }
  void stand_in(const engine::Batch& batch, std::byte* area) override { inner_->stand_in(batch, area); }
  packet::Reason judge(const engine::Batch& batch, std::byte* area, std::uint32_t i, std::uint64_t tsc) override {
    const packet::Reason reason = inner_->judge(batch, area, i, tsc);
    const packet::Reason expected = fate(batch, i);
    const bool is_wanted = ++of_lane_[batch.lane % of_lane_.size()] <= check_.frames_per_lane;
    check_.frames.fetch_add(1, std::memory_order_relaxed);
    check_.wanted.fetch_add(is_wanted ? 1 : 0, std::memory_order_relaxed);
    check_.wrong.fetch_add(reason != expected ? 1 : 0, std::memory_order_relaxed);
    check_.dropped.fetch_add(expected != packet::no_reason ? 1 : 0, std::memory_order_relaxed);
    return reason;
  }
  void judged(const engine::Batch& batch, std::byte* area) override { inner_->judged(batch, area); }
  void stopped() override { inner_->stopped(); }
  bool device_ready() override { return inner_->device_ready(); }
  Expected<void> begin_cycle(device::GpuStream& stream) override { return inner_->begin_cycle(stream); }
  std::vector<engine::Figure> figures() const override { return inner_->figures(); }

 protected:
  // What the stage must say of the frame.
  virtual packet::Reason fate(const engine::Batch& batch, std::uint32_t i) = 0;

  std::unique_ptr<engine::Stage> inner_;
  ChainCheck& check_;

 private:
  std::vector<std::uint64_t> of_lane_;  // frames, each its thread's
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

class ComparedInspect final : public Compared {
 public:
  ComparedInspect(const function::InspectOptions& options, ChainCheck& check)
      : Compared(std::make_unique<function::Inspect>(options), check), options_(options) {}

  Expected<void> prepare(const engine::LanePlan& plan) override {
    if (auto ok = inner_->prepare(plan); !ok) return ok;
    auto set = match::read_rules(options_.rules, options_.reading);
    if (!set) return tl::unexpected(set.error());
    auto rules = function::InspectionRules::make(std::move(*set));
    if (!rules) return tl::unexpected(rules.error());
    for (std::uint32_t thread = 0; thread < plan.threads; ++thread) {
      lanes_.push_back(std::make_unique<Lane>(*rules, options_.inspection, plan.threads, check_));
    }
    return {};
  }
  void stopped() override {
    inner_->stopped();
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
    return function::Inspect::reason_of(lane.inspection.frame(frame, ++lane.now));
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
  std::vector<std::unique_ptr<Lane>> lanes_;
};

}  // namespace

std::unique_ptr<engine::Stage> compared_acl(const std::vector<lookup::acl::AclRule>& rules, ChainCheck& check) {
  return std::make_unique<ComparedAcl>(rules, check);
}

std::unique_ptr<engine::Stage> compared_inspect(const function::InspectOptions& options, ChainCheck& check) {
  return std::make_unique<ComparedInspect>(options, check);
}

}  // namespace sluice::cli::bench
