// The element "acl": judges every IPv4 and IPv6 frame by the first rule of a list that its 5-tuple and flags match.
//
//   permit  goes on            mark    goes on with this DSCP (RFC 2474; ECN bits stay)
//   deny    acl_denied         police  goes on within rate and burst (policer.h), else acl_policed
//   reject  acl_rejected, and its sender is notified (notify_sender.h), as often as Emitter::may_answer() allows; of a
//           frame whose payload an element behind may have changed by then (srtp) an ICMP error quotes headers alone
// A frame that no rule matches gets the default, permit or deny. What is not IP goes on: a bridge must carry ARP. An IP
// frame of which no key can be made is dropped as acl_malformed (frame_key.h says what that is).
//
// Where: keys are made when frames are classified, on the lane's core; rte_acl on the core or the tables of
// lookup/acl/gpu_classifier.h on the GPU find the rule; the action is taken when frames leave.
//
// Sets and ports: where rules ask for named sets or for the port that a frame came in by, keys get tags (tag_plan.h)
// when they are made. Rules that ask for the port that it leaves by are decided when it is judged (rule_set.h), by what
// an element behind says (traits.h, Egress); a frame that leaves by none matches none of these. Of what the kernel is
// to forward it is the port that the router's own table says.
//
// Reload: the new list is built beside the old one, for the CPU and for the GPU. Batches that a core computes are
// judged by it from then on, those of the GPU some cycles later, when its tables have arrived. Each batch is judged by
// one list as a whole, because it holds the list that its indices are of until it is judged. Buckets begin full. A list
// that does not fit changes nothing.
//
// Counters: each frame that is judged, with its bytes, at the rule that decided it, or at the default (rule_hits.h,
// which also says what a reload keeps); besides by action, since the start, as metrics.
//
// Threads: as of engine::Element. Memory: 69 pinned bytes for each frame of a batch; 16 bytes a rule and lane, with
// forwarders 32. Of an old list it is held until no batch is judged by it and the GPU has left it, at the latest at the
// next reload. Cost: per frame 5 to 10 ns for the key, one look-up, and some ns to judge and count (docs/acl.md).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/published.h"
#include "device/table_mirror.h"
#include "engine/counted_rules.h"
#include "engine/element.h"
#include "engine/named_sets.h"
#include "engine/tables.h"
#include "engine/traits.h"
#include "function/acl/rule_hits.h"
#include "function/acl/rule_set.h"
#include "function/fused/fusable.h"
#include "function/notify_sender.h"
#include "lookup/acl/gpu_classifier.h"
#include "packet/reason.h"

namespace sluice::function {

inline const packet::Reason acl_denied =
    packet::register_reason("acl_denied", "an ACL rule, or the default, denies it", packet::DroppedBy::purpose);
inline const packet::Reason acl_rejected = packet::register_reason(
    "acl_rejected", "an ACL rule rejects it; its sender is notified, but for what no answer may be sent to",
    packet::DroppedBy::purpose);
inline const packet::Reason acl_policed = packet::register_reason(
    "acl_policed", "it exceeds the rate of the ACL rule that it matches", packet::DroppedBy::purpose);
inline const packet::Reason acl_malformed = packet::register_reason(
    "acl_malformed", "it is IP, and the headers that ACL rules ask for are cut or contradictory");

class Acl final : public engine::Element,
                  public engine::NamedSets,
                  public engine::Metrics,
                  public engine::Output,
                  public engine::DeviceCycle,
                  public engine::NullDevice,
                  public Fusable {
 public:
  struct AclOptions {
    std::vector<lookup::acl::AclRule> rules;  // in match order; marks up to most_dscp
    bool deny_others = false;
    std::vector<std::string> notes = {};  // on the rules' and the sets' files, for check and start
    std::vector<lookup::acl::RuleText> texts = {};
    std::vector<lookup::acl::NamedSet> sets = {};
    lookup::acl::TagPlan plan = {};
    AclLogSettings log = {};
  };
  static constexpr std::uint32_t most_dscp = 63;

  explicit Acl(AclOptions options) : options_(std::move(options)), file_(options_.notes) {}

  engine::Shape shape() const override;
  void* find_trait(std::string_view name) override;
  Expected<void> prepare(const engine::Plan& plan) override;
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan& plan) override;
  void detach(std::uint32_t device) override;
  bool can_detach() const override { return true; }
  void classify(engine::Batch& batch, engine::Span span) override;
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override;
  // Not behind an inspector, which has to see what the rules deny.
  bool join(const engine::Batch& batch, FusedWork& work) override;
  void compute(engine::Batch& batch, engine::Span span) override;
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter& out) override;
  Expected<Change> reload(Element& fresh) override;

  void null_result(engine::Batch& batch) override;
  Expected<void> begin_cycle(std::uint32_t device, device::GpuStream& stream) override;
  std::vector<engine::Metric> metrics() const override;
  void stopped() override;
  std::string lost_output() const override;

  Expected<std::vector<Entry>> list_sets(std::string_view name, std::uint32_t limit) const override;
  Expected<std::string> add_to_set(std::string_view name, const std::vector<std::string>& entries) override;
  Expected<std::string> remove_from_set(std::string_view name, const std::vector<std::string>& entries) override;

  // Lists that are no longer in force and not freed yet. The thread that reloads.
  std::size_t reclaim();

 private:
  struct SetState {
    lookup::acl::NamedSet set;
    std::vector<lookup::acl::SetEntry> configured;
    std::uint64_t uses = 0;  // rules that ask for it
    bool changed() const { return set.entries != configured; }
  };
  // What there is to say of the file of rules, which is read with the settings.
  class File final : public engine::Tables {
   public:
    explicit File(const std::vector<std::string>& notes) : notes_(notes) {}
    Memory memory() const override { return {}; }
    void watch_loading(engine::TableProgress /*progress*/) override {}
    Expected<void> read() override { return {}; }
    void take_read(engine::Tables& /*checked*/) override {}
    void leave_to_eal() override {}
    std::vector<std::string> notes() const override { return notes_; }

   private:
    const std::vector<std::string>& notes_;
  };
  // A list and its counters, in full.
  struct Built {
    std::shared_ptr<const RuleSet> set;
    std::unique_ptr<RuleHits::Next> hits;
    std::vector<SetState> sets;
  };
  struct Area;
  Expected<Built> build(const AclOptions& options, std::uint64_t generation) const;
  Expected<void> add_log(const AclOptions& options, RuleSet& set) const;
  std::vector<SetState> sets_after(const AclOptions& options) const;
  std::string undone(const std::vector<SetState>& after) const;
  void publish(Built built);
  void end_old_logs();
  std::vector<std::shared_ptr<AclLog>> logs() const;
  void tag(const Area& area, const engine::Batch& batch, engine::Span rows, const RuleSet& set,
           std::uint32_t reader) const;
  void tag_for(const Area& area, const engine::Batch& batch, const RuleSet& set, std::uint32_t reader) const;
  packet::Reason act(const Area& area, engine::Batch& batch, std::uint32_t i, std::uint64_t tsc) const;
  const RuleSet& take_set(const Area& area, const engine::Batch& batch);
  bool notify(engine::Batch& batch, std::uint32_t i, engine::Emitter& out) const;
  std::size_t worker_of(std::uint32_t device) const { return std::size_t{3} * lanes_ + device; }
  Expected<std::string> change_set(std::string_view name, const std::vector<std::string>& entries, bool add);

  AclOptions options_;
  File file_;
  const engine::Egress* egress_ = nullptr;           // of the element that forwards; null: there is none
  Quote quote_ = Quote::packet;                      // in answers
  std::optional<Published<const RuleSet>> current_;  // its readers: batches, and each lane's collector
  std::atomic<bool> tags_{false};                    // keys of the list in force have tags
  mutable std::mutex sets_mutex_;                    // of what is below, which others read
  std::vector<SetState> sets_;
  // That a list has or had, the newest last; by sets_mutex_. Of those that have ended the counters.
  std::vector<std::shared_ptr<AclLog>> logs_;
  AclLogCounters logged_before_;
  std::uint32_t lanes_ = 0;
  std::optional<RuleHits> hits_;
  std::shared_ptr<const RuleSet> newest_;  // the thread's that reloads

  // Of RuleSet, by DevicePlan::device; none: no batch is launched.
  device::TableMirrors<lookup::acl::GpuClassifier> mirrors_;
};

}  // namespace sluice::function
