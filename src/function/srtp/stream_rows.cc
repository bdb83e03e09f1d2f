#include "function/srtp/stream_rows.h"

#include <rte_cycles.h>

#include <algorithm>

namespace sluice::function {
namespace {

const char* action_of(const MediaStreamSettings& settings) {
  switch (settings.keyless) {
    case Keyless::passes:
    case Keyless::passes_rtcp:
      return "pass";
    case Keyless::drops_rtcp:
      return "drop";
    case Keyless::ended:
      return "ended";
    case Keyless::no:
      break;
  }
  return settings.direction == srtp::Direction::protect ? "protect" : "unprotect";
}

// A lane's counter may be ahead of this core's.
std::optional<std::chrono::milliseconds> age_of(std::uint64_t last, std::uint64_t now) {
  if (last == 0) return std::nullopt;
  return std::chrono::milliseconds((now - std::min(last, now)) / (rte_get_tsc_hz() / 1000));
}

}  // namespace

MediaStreamRow row_of(const MediaStream& stream, const engine::PortTable& ports, std::uint64_t now) {
  static constexpr const char* carries[] = {"rtp", "rtcp", "both"};
  static constexpr const char* origins[] = {"configuration", "api", "rtsp"};
  const MediaStreamSettings& settings = stream.settings();
  const auto left = [](const LeftTally* tally) {
    return tally == nullptr ? MediaStreamRow::Left{} : MediaStreamRow::Left{tally->packets.get(), tally->bytes.get()};
  };
  MediaStreamRow row;
  row.name = settings.name;
  row.action = action_of(settings);
  row.carries = carries[static_cast<std::size_t>(settings.carries)];
  if (settings.keyless == Keyless::no) row.suite = srtp::facts(settings.crypto.suite).name;
  row.origin = origins[static_cast<std::size_t>(settings.origin)];
  if (settings.ingress) row.ingress = ports[*settings.ingress].name;
  row.noted = stream.noted();
  const MeasuredRate* const measured = stream.measured().get();
  if (measured != nullptr || stream.rate()) row.rate = measured != nullptr ? measured->bits() : stream.rate()->bits;
  row.measured = measured == nullptr ? "no" : measured->is_measured() ? "yes" : "not yet";
  row.rtp = left(stream.left(srtp::Protocol::rtp));
  row.rtcp = left(stream.left(srtp::Protocol::rtcp));
  row.passed = stream.rare().passed();
  for (std::size_t i = 0; i < stream_losses; ++i) row.lost[i] = stream.rare().lost(static_cast<StreamLoss>(i));
  row.ssrcs = stream.ssrcs();
  row.age = age_of(std::max(stream.last_came(), stream.rare().last()), now);
  return row;
}

bool has_address(const MediaStreamSettings& stream, const packet::IpAddress& address) {
  const auto in = [&](const MediaKey& key) {
    const auto is = [&](const std::uint8_t* bytes) { return std::equal(bytes, bytes + 16, address.bytes.begin()); };
    return key.family == static_cast<std::uint32_t>(address.family) && (is(key.source) || is(key.destination));
  };
  return in(stream.key) || (stream.leaves && in(*stream.leaves));
}

}  // namespace sluice::function
