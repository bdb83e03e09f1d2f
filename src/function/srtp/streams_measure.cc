// Streams that are measured: what they hold, and when that changes.
#include <rte_cycles.h>

#include <string>

#include "function/srtp/streams.h"

namespace sluice::function {

// The stream has its bucket. What was measured stays with a 5-tuple, also under another key, for as long as the share
// is the same; which it is not where admission has judged the stream anew.
void Streams::police(MediaStream& stream, const std::shared_ptr<MeasuredRate>& before) {
  const MediaStreamSettings& settings = stream.settings();
  if (auto former = stream.police(settings.rate, measured_rate(settings, before))) {
    retired_->others.push_back(std::move(former));
  }
  if (stream.measured() != nullptr) {
    measured_.insert(settings.key);
  } else {
    measured_.erase(settings.key);
  }
}

std::shared_ptr<MeasuredRate> Streams::measured_rate(const MediaStreamSettings& settings,
                                                     const std::shared_ptr<MeasuredRate>& before) const {
  if (!settings.measure || !settings.rate) return nullptr;
  MeasuredRate::Share share = admission_ != nullptr ? admission_->share(settings.measure->share) : nullptr;
  const bool stays = before != nullptr && before->share() == share && before->given().bits == settings.rate->bits;
  if (stays && before->given() == *settings.rate && before->settings().measures_as(*settings.measure)) return before;
  auto rate = std::make_shared<MeasuredRate>(*settings.rate, *settings.measure, std::uint64_t{2} * largest_frame_,
                                             rte_get_tsc_hz(), std::move(share));
  if (stays) rate->go_on_from(*before);
  return rate;
}

// So that no two are called the same, whatever comes and goes.
void Streams::name_shares(std::vector<MediaStreamSettings>& streams) {
  for (MediaStreamSettings& stream : streams) {
    if (stream.measure) stream.measure->share = "api " + std::to_string(shares_named_.fetch_add(1));
  }
}

// Empty: the stream has it, or is about to leave.
std::optional<engine::StreamAnswer> Streams::refusal_of(MediaStream& stream, std::uint64_t bits) {
  const MeasuredRate& rate = *stream.measured();
  if (rate.share() != nullptr) {
    auto answer = admission_->change(rate.share(), rate.bits(), bits);
    if (!answer) return std::nullopt;
    if (!answer->accepted()) return answer;
  }
  stream.give(bits);
  return std::nullopt;
}

std::string Streams::measure() {
  const std::lock_guard lock(mutex_);
  std::string refused;
  std::uint64_t measuring = 0;
  std::vector<MediaStream*> followers;
  for (const MediaKey& key : measured_) {
    MediaStream& stream = *streams_.at(key);
    MeasuredRate& rate = *stream.measured();
    if (rate.meter() == nullptr) {
      followers.push_back(&stream);
      continue;
    }
    const auto wanted = rate.wanted();
    const auto refusal = wanted ? refusal_of(stream, *wanted) : std::nullopt;
    if (refusal && rate.note_refused(*wanted)) {
      raises_refused_.fetch_add(1, std::memory_order_relaxed);
      refused = "the stream " + stream.settings().name + " brings more than it was found to bring, and stays at " +
                std::to_string(rate.bits()) + " bit/s: " + refusal->text();
    }
    measuring += rate.is_measured() ? 0 : 1;
  }
  for (MediaStream* const stream : followers) {
    const auto followed = streams_.find(*stream->measured()->settings().follows);
    if (followed == streams_.end() || followed->second->measured() == nullptr) continue;
    // RTCP that gets no more yet asks again.
    if (const auto wanted = stream->measured()->wanted_beside(*followed->second->measured())) {
      (void)refusal_of(*stream, *wanted);
    }
  }
  measuring_.store(measuring, std::memory_order_relaxed);
  return refused;
}

}  // namespace sluice::function
