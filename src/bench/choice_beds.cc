#include "bench/choice_beds.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "bench/inspect_chain.h"
#include "bench/ipsec_bed.h"
#include "bench/live_changes.h"
#include "bench/media_bed.h"
#include "bench/router_rig.h"
#include "function/acl/acl.h"

namespace sluice::cli::bench {
namespace {

constexpr double without_a_gpu = 10;  // GB/s, for the sizes of queues
constexpr std::uint64_t verified_packets = 20'000;

// The lanes of a GPU that is named never compute themselves: it is the one that is measured.
void choose_devices(const std::string& device, engine::Options& options) {
  options.device = device;
  options.cpu_below = device == "auto" ? -1 : 0;
}

class PlainRun : public ChoiceRun {
 public:
  PlainRun(std::unique_ptr<Rig> rig, std::vector<RigOptions> versions)
      : reload_(std::move(versions)), rig_(std::move(rig)) {}
  Rig& rig() override { return *rig_; }
  Expected<void> change() override { return reload_.make(rig_->engine()); }
  Expected<void> finish() override { return rig_->finish(); }

 private:
  ReloadInTurns reload_;
  std::unique_ptr<Rig> rig_;
};

// A reload is of the same files or, of the acl, of the same rules the other way round, and back. They all permit, so no
// other frame is let by.
Expected<std::unique_ptr<ChoiceRun>> run_plain(RigOptions options, const std::string& device, const RigChange& change,
                                               std::optional<RigElement> other_acl = {}) {
  choose_devices(device, options.engine);
  if (change) change(options);
  auto rig = Rig::make(options);
  if (!rig) return tl::unexpected(rig.error());
  std::vector<RigOptions> versions;
  if (other_acl) {
    versions.push_back(options);
    versions.back().elements.front() = std::move(*other_acl);
  }
  versions.push_back(std::move(options));
  return std::make_unique<PlainRun>(std::move(*rig), std::move(versions));
}

class MediaRun : public ChoiceRun {
 public:
  MediaRun(std::unique_ptr<MediaBed> bed, std::unique_ptr<Rig> rig)
      : bed_(std::move(bed)), rekey_(StreamRekey::of(bed_->streams)), rig_(std::move(rig)) {}
  Rig& rig() override { return *rig_; }
  Expected<void> change() override {
    return rekey_ ? rekey_->make(rig_->engine()) : Expected<void>(tl::unexpected(rekey_.error()));
  }
  Expected<void> finish() override { return bed_->finish(*rig_); }

 private:
  std::unique_ptr<MediaBed> bed_;
  Expected<StreamRekey> rekey_;
  std::unique_ptr<Rig> rig_;
};

class IpsecRun : public ChoiceRun {
 public:
  IpsecRun(std::unique_ptr<IpsecBed> bed, Rig& rig, ipsec::Direction direction)
      : bed_(std::move(bed)), rekey_(bed_->tunnels(), direction), rig_(&rig) {}
  Rig& rig() override { return *rig_; }
  Expected<void> change() override { return rekey_.make(bed_->element()); }
  Expected<void> finish() override { return bed_->finish(); }

 private:
  std::unique_ptr<IpsecBed> bed_;
  SaRekey rekey_;
  Rig* rig_;
};

class Beds : public ChoiceBeds {
 public:
  Beds(const BenchOptions& options, double ceiling)
      : options_(options), ceiling_(ceiling > 0 ? ceiling : without_a_gpu) {}

  Expected<void> load() {
    auto routes = RouterTable::read(options_);
    if (!routes) return tl::unexpected(routes.error());
    auto table = RouterTable::make(std::move(*routes), {.ipv4 = 200'000, .ipv6 = 1'000});
    if (!table) return tl::unexpected(table.error());
    table_ = std::move(*table);
    const auto has_rules = [](const std::string& name) { return name.starts_with("acl"); };
    if (std::ranges::none_of(names(options_.only), has_rules)) return {};
    auto rules = InspectRules::load(options_);
    if (!rules) return tl::unexpected(rules.error());
    rules_ = std::move(*rules);
    return {};
  }

  std::vector<ChoiceChain> chains() override {
    std::vector<ChoiceChain> all = {
        {"route", "64 B", "reloads of the routes",
         [this](const std::string& device, const RigChange& change) {
           return run_plain(router_rig(options_, *table_, 4, engine::Mode::full, device), device, change);
         }},
        chain("acl + route", {.inspect = false, .mix = "64", .protocol = "udp", .payload = ""}),
        chain("acl + inspect + route", {.mix = "heavy-tail", .protocol = "udp", .payload = "text", .bounded = true}),
        media("srtp", "AES_CM_128_HMAC_SHA1_80"),
        media("srtp gcm", "AEAD_AES_128_GCM"),
        ipsec("ipsec out", ipsec::Direction::out),
        ipsec("ipsec in", ipsec::Direction::in),
    };
    const std::vector<std::string> chosen = names(options_.only);
    std::erase_if(all, [&](const ChoiceChain& one) { return std::ranges::find(chosen, one.name) == chosen.end(); });
    return all;
  }

 private:
  ChoiceChain chain(const std::string& name, const ChainCase& one) {
    return {name, one.traffic(),
            one.inspect ? "reloads of detection rules, ACL and routes" : "reloads with the ACL the other way round",
            [this, one](const std::string& device, const RigChange& change) {
              return run_plain(chain_rig(options_, *table_, *rules_, one, device), device, change,
                               one.inspect ? std::optional<RigElement>() : other_acl());
            }};
  }
  RigElement other_acl() const {
    return {"acl", [this](const engine::PortTable&) {
              std::vector<lookup::acl::AclRule> rules = rules_->acl();
              std::ranges::reverse(rules);
              return std::make_unique<function::Acl>(function::Acl::AclOptions{std::move(rules)});
            }};
  }
  ChoiceChain media(const std::string& name, const std::string& suite) {
    return {
        name, suite + " 1370 B", "reloads with other keys for a tenth of the streams",
        [this, suite](const std::string& device, const RigChange& change) { return run_media(suite, device, change); }};
  }
  ChoiceChain ipsec(const std::string& name, ipsec::Direction direction) {
    return {name, traffic_text({}), "rekeys of a tenth of the SAs",
            [this, direction](const std::string& device, const RigChange& change) {
              return run_ipsec(direction, device, change);
            }};
  }

  Expected<std::unique_ptr<ChoiceRun>> run_media(const std::string& suite, const std::string& device,
                                                 const RigChange& change) {
    media_options_ = options_;
    media_options_.suite = suite;
    auto bed = MediaBed::make(media_options_, {"1370", 5, 400, 4, 5, {0.73, 0.33}}, device, ceiling_);
    bed->streams.spare_keys = bed->streams.keys();  // of streams that come in place of others, which lanes still use
    choose_devices(device, bed->rig.engine);
    if (change) change(bed->rig);
    auto rig = Rig::make(bed->rig);
    if (!rig) return tl::unexpected(rig.error());
    return std::make_unique<MediaRun>(std::move(bed), std::move(*rig));
  }

  Expected<std::unique_ptr<ChoiceRun>> run_ipsec(ipsec::Direction direction, const std::string& device,
                                                 const RigChange& change) {
    auto bed = IpsecBed::make(options_, *table_, {}, device, ceiling_, change);
    if (!bed) return tl::unexpected(bed.error());
    auto rig = (*bed)->begin(direction, verified_packets);
    if (!rig) return tl::unexpected(rig.error());
    return std::make_unique<IpsecRun>(std::move(*bed), **rig, direction);
  }

  const BenchOptions options_;
  BenchOptions media_options_;
  const double ceiling_;
  std::unique_ptr<RouterTable> table_;
  std::unique_ptr<InspectRules> rules_;
};

}  // namespace

std::vector<std::string> ChoiceBeds::names(const std::string& only) {
  std::vector<std::string> all = {"route",     "acl + route", "acl + inspect + route", "srtp", "srtp gcm",
                                  "ipsec out", "ipsec in"};
  if (only.empty()) return all;
  std::erase_if(
      all, [&](const std::string& name) { return ("," + only + ",").find("," + name + ",") == std::string::npos; });
  const auto named = static_cast<std::size_t>(std::ranges::count(only, ',')) + 1;
  return all.size() == named ? all : std::vector<std::string>();
}

Expected<std::unique_ptr<ChoiceBeds>> ChoiceBeds::make(const BenchOptions& options, double ceiling) {
  auto beds = std::make_unique<Beds>(options, ceiling);
  if (auto loaded = beds->load(); !loaded) return tl::unexpected(loaded.error());
  return beds;
}

}  // namespace sluice::cli::bench
