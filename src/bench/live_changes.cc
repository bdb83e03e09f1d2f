#include "bench/live_changes.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "bench/media_bed.h"
#include "function/srtp/srtp.h"

namespace sluice::cli::bench {
namespace {

constexpr std::chrono::microseconds room_looked_for_each(100);
constexpr std::chrono::seconds room_waited_for(1);

}  // namespace

Expected<void> ReloadInTurns::make(engine::Engine& engine) {
  const auto fresh = make_pipeline(versions_[next_], engine.port_table());
  if (!fresh) return tl::unexpected(fresh.error());
  const auto changed = engine.pipeline().reload(**fresh);
  if (!changed) return tl::unexpected(changed.error());
  next_ = (next_ + 1) % versions_.size();
  return {};
}

Expected<StreamRekey> StreamRekey::of(const RtpStreams& streams) {
  if (streams.both) return make_error("streams that are unprotected cannot be rekeyed without their sender");
  return StreamRekey(streams);
}

Expected<void> StreamRekey::make(engine::Engine& engine) {
  engine::Element* element = nullptr;
  for (const auto& one : engine.pipeline().elements()) {
    if (dynamic_cast<function::Srtp*>(one.get()) != nullptr) element = one.get();
  }
  if (element == nullptr) return make_error("the chain has no element srtp");
  const auto count = static_cast<std::uint32_t>(settings_.size());
  std::vector<function::MediaStreamSettings> wanted = settings_;
  std::uint32_t next = next_;
  ++generation_;
  for (std::uint32_t i = 0; i < std::max(1U, count / share); ++i, next = (next + 1) % count) {
    wanted[next].crypto = streams_->crypto(next, generation_);
  }
  function::Srtp::SrtpOptions options = srtp_options(*streams_);
  options.streams = wanted;
  function::Srtp fresh(std::move(options));
  const auto change = element->reload(fresh);
  if (!change) return tl::unexpected(change.error());
  change->commit();
  settings_ = std::move(wanted);
  next_ = next;
  return {};
}

Expected<void> SaRekey::make(function::Ipsec& element) {
  for (std::uint32_t i = 0; i < std::max(1U, tunnels_->count() / share); ++i, next_ = (next_ + 1) % tunnels_->count()) {
    // The slots of SAs that were removed are free again once lanes have left them.
    const auto end = std::chrono::steady_clock::now() + room_waited_for;
    for (auto done = rekey(element.databases(), next_); !done; done = rekey(element.databases(), next_)) {
      if (std::chrono::steady_clock::now() > end) return done;
      std::this_thread::sleep_for(room_looked_for_each);
    }
  }
  return {};
}

Expected<void> SaRekey::rekey(ipsec::Databases& databases, std::uint32_t tunnel) {
  std::uint32_t& generation = generations_[tunnel];
  const ipsec::SaSettings before = tunnels_->sa(direction_, tunnel, generation);
  if (direction_ == ipsec::Direction::in) return databases.replace(before);
  const std::uint32_t next = (generation + 1) % IpsecTunnels::generations;
  if (auto ok = databases.add(tunnels_->sa(direction_, tunnel, next)); !ok) return ok;
  generation = next;
  if (!databases.remove(before.id)) return make_error("the SA " + before.id.str() + " is gone");
  return {};
}

}  // namespace sluice::cli::bench
