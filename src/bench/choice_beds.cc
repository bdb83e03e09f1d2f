#include "bench/choice_beds.h"

#include <algorithm>
#include <utility>

#include "bench/inspect_chain.h"
#include "bench/ipsec_bed.h"
#include "bench/media_bed.h"
#include "bench/router_rig.h"

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
  explicit PlainRun(std::unique_ptr<Rig> rig) : rig_(std::move(rig)) {}
  Rig& rig() override { return *rig_; }
  Expected<void> finish() override { return rig_->finish(); }

 private:
  std::unique_ptr<Rig> rig_;
};

Expected<std::unique_ptr<ChoiceRun>> run_plain(RigOptions options, const std::string& device, const RigChange& change) {
  choose_devices(device, options.engine);
  if (change) change(options);
  auto rig = Rig::make(options);
  if (!rig) return tl::unexpected(rig.error());
  return std::make_unique<PlainRun>(std::move(*rig));
}

class MediaRun : public ChoiceRun {
 public:
  MediaRun(std::unique_ptr<MediaBed> bed, std::unique_ptr<Rig> rig) : bed_(std::move(bed)), rig_(std::move(rig)) {}
  Rig& rig() override { return *rig_; }
  Expected<void> finish() override { return bed_->finish(*rig_); }

 private:
  std::unique_ptr<MediaBed> bed_;
  std::unique_ptr<Rig> rig_;
};

class IpsecRun : public ChoiceRun {
 public:
  IpsecRun(std::unique_ptr<IpsecBed> bed, Rig& rig) : bed_(std::move(bed)), rig_(&rig) {}
  Rig& rig() override { return *rig_; }
  Expected<void> finish() override { return bed_->finish(); }

 private:
  std::unique_ptr<IpsecBed> bed_;
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
        {"route", "64 B",
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
    return {name, one.traffic(), [this, one](const std::string& device, const RigChange& change) {
              return run_plain(chain_rig(options_, *table_, *rules_, one, device), device, change);
            }};
  }
  ChoiceChain media(const std::string& name, const std::string& suite) {
    return {name, suite + " 1370 B", [this, suite](const std::string& device, const RigChange& change) {
              return run_media(suite, device, change);
            }};
  }
  ChoiceChain ipsec(const std::string& name, ipsec::Direction direction) {
    return {name, traffic_text({}), [this, direction](const std::string& device, const RigChange& change) {
              return run_ipsec(direction, device, change);
            }};
  }

  Expected<std::unique_ptr<ChoiceRun>> run_media(const std::string& suite, const std::string& device,
                                                 const RigChange& change) {
    media_options_ = options_;
    media_options_.suite = suite;
    auto bed = MediaBed::make(media_options_, {"1370", 5, 400, 4, 5, {0.73, 0.33}}, device, ceiling_);
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
    return std::make_unique<IpsecRun>(std::move(*bed), **rig);
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
  return all;
}

Expected<std::unique_ptr<ChoiceBeds>> ChoiceBeds::make(const BenchOptions& options, double ceiling) {
  auto beds = std::make_unique<Beds>(options, ceiling);
  if (auto loaded = beds->load(); !loaded) return tl::unexpected(loaded.error());
  return beds;
}

}  // namespace sluice::cli::bench
