#include "bench/fused_bed.h"

#include <rte_malloc.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>

#include "bench/gpu_only.h"
#include "bench/match_patterns.h"
#include "bench/match_verify.h"
#include "bench/progress.h"
#include "device/name.h"
#include "function/fused/fused.h"
#include "lookup/route_file.h"

namespace sluice::cli::bench {
namespace {

using lookup::acl::ActionKind;

constexpr std::uint32_t frames_in_all = 1U << 17;
constexpr std::size_t frame_memory = std::size_t{frames_in_all} * MatchFrames::pitch;
constexpr std::uint32_t route_count = 600'000;
constexpr unsigned default_batch = 8192, default_streams = 4;
constexpr std::uint32_t forgotten = 0xdead'beef;

}  // namespace

std::uint64_t FusedBed::memory_needed() {
  return frame_memory + lookup::Fib::memory_needed(4, route_count + frames_in_all) + (std::size_t{512} << 20);
}

FusedBed::~FusedBed() = default;

Expected<std::unique_ptr<FusedBed>> FusedBed::make(const BenchOptions& options) {
  const Progress progress("making rules, routes and patterns");
  std::unique_ptr<FusedBed> bed(new FusedBed);
  bed->batch_ = options.batch != 0 ? options.batch : default_batch;
  auto sets = load_acl_sets(options);
  if (!sets) {
    return tl::unexpected(sets.error());
  }
  bed->set_ = std::move(sets->front());
  const unsigned streams = options.streams != 0 ? options.streams : default_streams;
  auto ok = keep(device::Gpu::open(device::gpu_index(options.device).value_or(0), streams), bed->gpu_);
  ok = ok ? bed->make_memory() : ok;
  ok = ok ? bed->make_routes() : ok;
  ok = ok ? bed->make_patterns(options) : ok;
  if (!ok) {
    return tl::unexpected(ok.error());
  }
  return bed;
}

Expected<void> FusedBed::make_memory() {
  memory_ = {rte_malloc("fused-frames", frame_memory, 4096), rte_free};
  if (memory_ == nullptr) {
    return make_error("no memory for frames");
  }
  if (auto ok = gpu_->register_host(memory_.get(), frame_memory); !ok) {
    return ok;
  }
  auto arrays = gpu_->allocate_host(std::size_t{frames_in_all} * (sizeof *key_ + 4 * sizeof(std::uint32_t)));
  if (!arrays) {
    return tl::unexpected(arrays.error());
  }
  key_ = static_cast<lookup::acl::Key4*>(*arrays);
  place_ = reinterpret_cast<std::uint32_t*>(key_ + frames_in_all);
  rule_ = place_ + frames_in_all;
  address_ = rule_ + frames_in_all;
  hop_ = address_ + frames_in_all;
  for (std::uint32_t i = 0; i < frames_in_all; ++i) {
    key_[i] = set_.keys[i % set_.keys.size()];
    place_[i] = i % batch_;  // of its batch's keys
  }
  return {};
}

Expected<void> FusedBed::make_routes() {
  constexpr std::uint32_t some = 1000;
  auto ok = keep(lookup::Trie::create(4, lookup::Fib::default_groups(4, route_count + frames_in_all)), trie4_);
  ok = ok ? keep(lookup::Trie::create(6, some), trie6_) : ok;
  ok =
      ok ? keep(lookup::Fib::create({.name = "fused", .max_routes4 = route_count + frames_in_all, .max_routes6 = some}),
                fib_)
         : ok;
  ok = ok ? fib_->attach(*trie4_) : ok;
  ok = ok ? fib_->attach(*trie6_) : ok;
  if (!ok) {
    return ok;
  }
  const lookup::RouteList list = lookup::make_routes(route_count, 0, 1);
  for (const lookup::RouteLine& route : list.routes) {
    if (auto added = fib_->add(route.prefix, route.next_hop); !added) {
      return added;
    }
  }
  // Frames go to where their rules say; there, too, are routes with the Internet's spread of lengths.
  std::mt19937_64 random(3);
  for (std::uint32_t i = 0; i < frames_in_all; ++i) {
    const packet::IpAddress to = packet::IpAddress::from_bytes(4, key_[i].destination);
    address_[i] = to.v4_host_order();
    const lookup::RouteLine& like = list.routes[random() % list.routes.size()];
    const packet::IpPrefix prefix = packet::IpPrefix::of(to, like.prefix.length);
    if (auto added = fib_->add(prefix, like.next_hop); !added) {
      return added;
    }
  }
  return keep(lookup::GpuFib::create(*gpu_, *trie4_, *trie6_), gpu_fib_);
}

Expected<void> FusedBed::make_patterns(const BenchOptions& options) {
  auto choice = choose_patterns(options.patterns);
  if (!choice) {
    return tl::unexpected(choice.error());
  }
  patterns_ = std::move(choice->patterns);
  keys_ = std::make_unique<match::KeySet>(patterns_);
  auto ok =
      keep(match::GpuMatcher::create(*gpu_, match::GramTable(*keys_), match::GpuMatcher::default_sync_bytes, true),
           matcher_);
  ok = ok ? keep(matcher_of(*keys_), reference_) : ok;
  about_ = fmt::format("{} {} rules; {} routes; {} {} patterns; batches of {}; {} streams", set_.rules.size(),
                       set_.name, route_count, patterns_.size(), choice->name, batch_, gpu_->stream_count());
  return ok;
}

Expected<void> FusedBed::load(const std::string& mix) {
  auto made = MatchFrames::make(*gpu_, memory_.get(), frames_in_all, mix, PayloadKind::ordinary, patterns_);
  if (!made) {
    return tl::unexpected(made.error());
  }
  frames_ = std::make_unique<MatchFrames>(std::move(*made));
  return {};
}

// Rules in any order, each as far as it does not deny too many.
Expected<void> FusedBed::deny(unsigned percent) {
  std::vector<std::size_t> hits(set_.rules.size());
  for (const lookup::acl::RuleIndex rule : set_.expected) {
    if (rule < hits.size()) {
      ++hits[rule];
    }
  }
  std::vector<std::size_t> order(hits.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::mt19937_64 random(5);
  std::shuffle(order.begin(), order.end(), random);
  std::size_t left = set_.expected.size() * percent / 100;
  for (const std::size_t rule : order) {
    const bool denies = hits[rule] != 0 && hits[rule] <= left;
    set_.rules[rule].action.kind = denies ? ActionKind::deny : ActionKind::permit;
    left -= denies ? hits[rule] : 0;
  }
  return keep(lookup::acl::GpuClassifier::create(*gpu_, set_.rules), classifier_);
}

bool FusedBed::is_denied(std::uint32_t frame) const {
  const lookup::acl::RuleIndex rule = set_.expected[frame % set_.expected.size()];
  return rule < set_.rules.size() && set_.rules[rule].action.kind == ActionKind::deny;
}

double FusedBed::denied_share() const {
  std::uint32_t denied = 0;
  for (std::uint32_t i = 0; i < frames_in_all; ++i) {
    denied += is_denied(i);
  }
  return static_cast<double>(denied) / frames_in_all;
}

Expected<void> FusedBed::launch(unsigned b, FusedParts parts, bool fused, device::GpuStream& stream) {
  const std::uint32_t first = b * batch_, count = std::min(batch_, frames_->count() - first);
  const match::MatchBatch frames = frames_->batch(first, count);
  if (fused) {
    function::FusedWork work;
    work.count = count;
    if (parts.acl) {
      work.classify = {.view = classifier_->view(),
                       .in_order = true,
                       .place = place_ + first,
                       .keys4 = key_ + first,
                       .rules4 = rule_ + first};
    }
    work.route = {
        .view4 = gpu_fib_->view4(), .view6 = gpu_fib_->view6(), .argument = address_ + first, .verdict = hop_ + first};
    if (parts.inspect) {
      work.match = {matcher_->view(), frames};
    }
    return function::launch_fused(work, stream);
  }
  Expected<void> ok;
  if (parts.acl) {
    ok = classifier_->classify(stream, key_ + first, rule_ + first, count, nullptr, nullptr, 0);
  }
  if (ok && parts.inspect) {
    ok = matcher_->match(frames, stream);
  }
  return ok ? gpu_fib_->lookup(stream, address_ + first, hop_ + first, count, nullptr, nullptr, 0) : ok;
}

Expected<void> FusedBed::verify_rules() const {
  return verify_acl(set_, "the GPU", {rule_, rule_ + frames_in_all});
}

Expected<void> FusedBed::verify_routes(bool dropped_early) const {
  std::vector<lookup::NextHopId> expected(frames_in_all);
  fib_->lookup4(address_, expected.data(), frames_in_all);
  for (std::uint32_t i = 0; i < frames_in_all; ++i) {
    const std::uint32_t wanted = dropped_early && is_denied(i) ? forgotten : expected[i];
    if (hop_[i] != wanted) {
      return make_error(fmt::format("NOT VERIFIED: frame {}: next hop {} and not {}", i, hop_[i], wanted));
    }
  }
  return {};
}

Expected<std::uint64_t> FusedBed::verify(FusedParts parts, bool fused) {
  frames_->forget_results();
  std::fill_n(rule_, frames_in_all, forgotten);
  std::fill_n(hop_, frames_in_all, forgotten);
  device::GpuStream& stream = gpu_->stream(0);
  for (unsigned b = 0; b < batches(); ++b) {
    if (auto ok = launch(b, parts, fused, stream); !ok) {
      return tl::unexpected(ok.error());
    }
  }
  if (auto ok = stream.mark(); !ok) {
    return tl::unexpected(ok.error());
  }
  while (stream.pending_marks() > 0) {
    if (stream.poll() == device::MarkState::failed) {
      return make_error("the GPU failed: " + gpu_->why());
    }
  }
  const bool dropped_early = fused && parts.acl;
  Expected<void> ok = verify_routes(dropped_early);
  ok = ok && parts.acl ? verify_rules() : ok;
  if (!ok || !parts.inspect) {
    return ok ? Expected<std::uint64_t>(0) : tl::unexpected(ok.error());
  }
  return verify_keys(*reference_, *keys_, *frames_, [&](std::uint32_t i) { return !dropped_early || !is_denied(i); });
}

}  // namespace sluice::cli::bench
