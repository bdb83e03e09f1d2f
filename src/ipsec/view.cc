#include "ipsec/view.h"

#include <cstring>

#include "ipsec/sa_record.h"

namespace sluice::ipsec {
void View::end(Sa& sa) const {
  if (sa.state.exchange(SaState::dead, std::memory_order_relaxed) != SaState::dead) tables_.due.note(sa.index);
}

Sequence::Run View::take_numbers(Sa& sa, std::uint32_t count) const {
  const Sequence::Run run = sa.sequence.take(count, sa.esn());
  if (run.count < count) [[unlikely]] {
    end(sa);
  } else if (!sa.esn() && run.first < late_sequence && run.first + run.count >= late_sequence) [[unlikely]] {
    tables_.due.note(sa.index);
  }
  return run;
}

void View::note_moved(Sa& sa, const std::uint8_t* source, std::uint16_t port) const {
  if (sa.has_moved.load(std::memory_order_relaxed) || sa.has_moved.exchange(true, std::memory_order_relaxed)) return;
  Moved moved{.index = sa.index, .serial = sa.record->serial, .source = {}, .port = port};
  std::memcpy(moved.source.data(), source, sa.family == 4 ? 4 : 16);
  if (!tables_.moved.push(moved)) sa.has_moved.store(false, std::memory_order_relaxed);
}

}  // namespace sluice::ipsec
