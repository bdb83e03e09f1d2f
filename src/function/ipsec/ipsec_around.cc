// AH around ESP, outbound: its header is put on together with ESP's, and it is computed by the lane's core when ESP has
// been sealed.
#include <array>

#include "engine/batch_edit.h"
#include "engine/pipeline.h"
#include "function/ipsec/ipsec.h"
#include "function/ipsec/ipsec_area.h"
#include "ipsec/ah.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {
using packet::no_reason;
using packet::Reason;
constexpr std::uint32_t ethernet = sizeof(packet::EthernetHeader);
}  // namespace

// Around ESP, whose job is still to be done: so the router sees the outermost header, and the job of AH is done when
// ESP's is (finish_around()).
Reason Ipsec::put_ah_around(engine::Batch& batch, std::uint32_t i, const Chosen& chosen, const ipsec::View& view,
                            IpsecArea::Work& work) {
  ipsec::Sa& sa = *chosen.around;
  const ipsec::PacketFormat& format = *chosen.around_format;
  ipsec::InnerPacket esp;
  if (!ipsec::look_at_inner(batch.data(i), batch.length[i], sa.mode, esp)) return ipsec_malformed;
  const bool counted = view.count(sa, batch.lane, 1, esp.length);
  const ipsec::Sequence::Run number = counted ? view.take_numbers(sa, 1) : ipsec::Sequence::Run{};
  if (number.count == 0) {
    sa.refused.expired.fetch_add(1, std::memory_order_relaxed);
    return ipsec_expired;
  }
  const std::uint32_t front = ipsec::ah_front(format), behind = ipsec::ah_behind(format);
  std::uint8_t* const frame = engine::prepend(batch, i, front);
  engine::set_length(batch, i, ethernet + front + esp.length + behind);
  crypto::Job job;  // finish_around() makes it again
  if (!ipsec::ah_put_on(format, esp, number.first, frame, job, work.kept)) return ipsec_malformed;
  work.around = &sa;
  work.sequence = number.first;
  return no_reason;
}

// Those of `rows` that are live have ESP that is sealed, and AH around it, which the lane's core computes now.
[[gnu::noinline]] void Ipsec::finish_around(engine::Batch& batch, std::span<const std::uint32_t> rows,
                                            const IpsecArea& a) {
  std::array<crypto::Job, engine::most_classified> jobs;
  std::array<crypto::Verdict, engine::most_classified> verdicts;
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const std::uint32_t i = rows[n];
    const IpsecArea::Work& work = a.works[a.places[i]];
    const ipsec::PacketFormat& format = format_of(*work.around);
    ipsec::ah_job(format, batch.data(i), batch.length[i] - ipsec::ah_behind(format), work.sequence, jobs[n]);
    jobs[n].key = work.around->key;
  }
  if (!a.header->not_computed)
    lane_of(batch).cpu.run(*keys_, {jobs.data(), rows.size()}, {verdicts.data(), rows.size()});
  for (std::size_t n = 0; n < rows.size(); ++n) {
    const std::uint32_t i = rows[n];
    const IpsecArea::Work& work = a.works[a.places[i]];
    const ipsec::PacketFormat& format = format_of(*work.around);
    ipsec::ah_finish(format, batch.data(i), jobs[n], work.kept);
    engine::set_length(batch, i, batch.length[i] - ipsec::ah_behind(format));
  }
}

}  // namespace sluice::function
