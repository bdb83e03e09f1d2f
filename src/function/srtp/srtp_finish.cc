// SRTP's last steps: jobs are computed on a core, and each packet is finished or dropped.

#include <rte_mbuf.h>

#include <algorithm>
#include <utility>

#include "base/prefetch.h"
#include "engine/batch_edit.h"
#include "function/srtp/srtp.h"
#include "function/srtp/srtp_area.h"
#include "packet/checksum.h"

namespace sluice::function {
namespace {

// How many frames ahead of the one that is judged what it needs is asked for: its frame, and the state of its stream.
constexpr std::uint32_t frame_ahead = 8, state_ahead = 4;

}  // namespace

void Srtp::compute(engine::Batch& batch, engine::Span span) {
  const Area a(area(batch), batch.capacity);
  const std::span<const Area::Work> works(a.works, a.header->jobs);
  const auto at = [&](std::uint32_t frame) {
    return static_cast<std::size_t>(std::ranges::lower_bound(works, frame, {}, &Area::Work::frame) - works.begin());
  };
  const std::size_t from = at(span.first);
  const std::size_t jobs = at(span.end()) - from;
  if (jobs != 0) compute_jobs(batch, {static_cast<std::uint32_t>(from), static_cast<std::uint32_t>(jobs)}, 0);
}

std::uint32_t Srtp::jobs(const engine::Batch& batch) const {
  return Area(area(batch), batch.capacity).header->jobs;
}

void Srtp::compute_jobs(engine::Batch& batch, engine::Span some, std::uint32_t thread) {
  const Area a(area(batch), batch.capacity);
  crypto::Cpu& cpu = thread == 0 ? lanes_[batch.lane]->cpu : helpers_[thread - 1];
  cpu.run(*keys_, {a.jobs + some.first, some.count}, {a.verdicts + some.first, some.count},
          {a.sums + some.first, a.header->sums ? some.count : 0});
}

[[gnu::noinline]] void Srtp::compute_kept(const engine::Batch& batch, const Area& a) {
  const std::uint32_t kept = batch.capacity - a.header->kept;
  LaneState& lane = *lanes_[batch.lane];
  lane.cpu.run(*keys_, {a.jobs + a.header->kept, kept}, {a.verdicts + a.header->kept, kept});
  lane.kept.add(kept);
  a.header->kept_done = true;
}

void Srtp::lost(engine::Batch& batch) {
  const Area a(area(batch), batch.capacity);
  for (std::uint32_t job = 0; job < a.header->jobs; ++job) {
    const Area::Work& work = a.works[job];
    work.leg->channel->abandon(work.pending);
    work.stream->rare().drop(engine::device_lost);
    a.places[work.frame] = outcome::drop(engine::device_lost);
    batch.drop(work.frame, engine::device_lost);  // its buffer stays aside as long as the device may write to it
  }
  a.header->jobs = 0;
}

void Srtp::null_result(engine::Batch& batch) {
  const Area a(area(batch), batch.capacity);
  for (std::uint32_t i = 0; i < a.jobs_in_all(); ++i) {
    a.verdicts[a.place(i)] = crypto::Verdict::done;
    a.sums[a.place(i)] = {};
  }
  a.header->kept_done = a.header->not_computed = true;
}

// A cycle after it was collected a frame, and perhaps the state of its stream, is in no cache.
void Srtp::fetch_ahead(const engine::Batch& batch, const Area& a, std::uint32_t i) {
  if (i + frame_ahead < batch.count) {
    const std::uint32_t place = a.places[i + frame_ahead];
    prefetch(reinterpret_cast<const void*>(batch.frame[i + frame_ahead]));
    prefetch(batch.mbuf[i + frame_ahead]);
    if (outcome::is_job(place)) prefetch(a.works[place].leg, sizeof(MediaLeg));
  }
  if (i + state_ahead < batch.count) {
    const std::uint32_t place = a.places[i + state_ahead];
    if (outcome::is_job(place)) a.works[place].leg->channel->prefetch_finish(a.works[place].pending);
  }
}

void Srtp::apply(engine::Batch& batch, engine::Span span, engine::Emitter& /*out*/) {
  const Area a(area(batch), batch.capacity);
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    fetch_ahead(batch, a, i);
    const std::uint32_t place = a.places[i];
    if (place == outcome::passes || !batch.is_live(i)) continue;
    if (place == outcome::hands_over) {
      batch.to_host(i);
    } else if (outcome::is_drop(place)) {
      batch.drop(i, outcome::reason(place));
    } else if (!batch.goes_on(i)) [[unlikely]] {
      a.works[place].stream->rare().drop(srtp_not_plain);
      batch.drop(i, srtp_not_plain);  // an element in front has left it to the kernel since
    } else if (const packet::Reason why = finish(batch, a, i, place); why != packet::no_reason) [[unlikely]] {
      a.works[place].stream->rare().drop(why);
      batch.drop(i, why);
    }
  }
  if (span.end() == batch.count) release(batch, a);
}

packet::Reason Srtp::finish(engine::Batch& batch, const Area& a, std::uint32_t i, std::uint32_t place) {
  if (place >= a.header->kept && !a.header->kept_done) [[unlikely]] {
    compute_kept(batch, a);
  }
  Area::Work& work = a.works[place];
  MediaLeg& leg = *std::exchange(work.leg, nullptr);
  srtp::Channel& channel = *leg.channel;
  ++a.header->finished;
  const crypto::Verdict verdict = a.verdicts[place];
  auto* const frame = reinterpret_cast<std::uint8_t*>(batch.frame[i]);
  if (work.checks && verdict == crypto::Verdict::done && !a.header->not_computed &&
      !udp_checksum_ok(frame, work.udp_offset, a.sums[place].before)) [[unlikely]] {
    channel.withdraw(work.pending);
    return srtp_bad_checksum;
  }
  if (work.unowned && verdict == crypto::Verdict::done && !work.stream->claim(batch.lane, batch.row[i].port))
      [[unlikely]] {
    channel.abandon(work.pending);  // another lane was first
    return srtp_other_lane;
  }
  if (const srtp::Status status = channel.finish(work.pending, verdict); status != srtp::Status::ok) {
    return reason_of(status);
  }
  const std::uint32_t length = set_length(frame, a, place);
  engine::set_length(batch, i, length);
  LaneState& lane = *lanes_[batch.lane];
  engine::Counter& counter = work.protects ? (work.rtcp ? lane.protected_rtcp : lane.protected_rtp)
                                           : (work.rtcp ? lane.unprotected_rtcp : lane.unprotected_rtp);
  counter.add(1);
  leg.left.add(length);
  if (work.rtcp && !work.protects) work.stream->note();  // who sends it is alive
  return packet::no_reason;
}

// With the checksums that follow.
std::uint32_t Srtp::set_length(std::uint8_t* frame, const Area& a, std::uint32_t place) {
  const Area::Work& work = a.works[place];
  const srtp::Pending& pending = work.pending;
  if (!work.makes) return set_udp_payload_length(frame, work.udp_offset, pending.length);
  std::uint16_t sum = a.sums[place].after;
  if (pending.behind_tag != 0) [[unlikely]] {  // in no job
    const std::uint32_t at = pending.length - std::uint32_t{pending.behind_tag};
    const std::uint8_t* const bytes = frame + work.udp_offset + sizeof(packet::UdpHeader) + at;
    const std::uint16_t rest = packet::fold_sum(packet::partial_sum(bytes, pending.behind_tag));
    sum = packet::fold_sum32(std::uint32_t{sum} + (at % 2 == 0 ? rest : __builtin_bswap16(rest)));
  }
  return set_udp_payload_length(frame, work.udp_offset, pending.length, sum);
}

void Srtp::release(const engine::Batch& batch, const Area& a) {
  // Another element may have dropped some.
  const std::uint32_t jobs = a.jobs_in_all();
  for (std::uint32_t job = 0; a.header->finished != jobs && job < jobs; ++job) {
    Area::Work& work = a.works[a.place(job)];
    if (work.leg == nullptr) continue;
    std::exchange(work.leg, nullptr)->channel->abandon(work.pending);
    ++a.header->finished;
  }
  current_->unpin(Area::reader_of(batch));
}

}  // namespace sluice::function
