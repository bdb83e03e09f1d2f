// Any fragments in any order: a datagram that is put together is well formed and holds no byte of what was refused;
// memory is bounded and all of it comes back.
//
// Input: a byte of settings, then fragments of four bytes: family, key, whether more follow and whether its bytes are
// others than the datagram's; offset in units of eight; bytes; time that passes.
#include <array>
#include <cstdint>
#include <string_view>

#include "flow/fragments.h"
#include "packet/builder.h"
#include "require.h"

using namespace sluice::flow;
using sluice::packet::Bytes;
using sluice::packet::PacketBuilder;

namespace {

constexpr std::uint8_t no_transport = 253;

FragmentSettings settings_of(std::uint8_t byte) {
  FragmentSettings settings;
  settings.memory = 1U << 20;
  settings.seed = 1;
  settings.pieces = byte & 1 ? 3 : 128;
  settings.remembered = byte & 2 ? 1 : 1U << 14;
  return settings;
}

// Of the datagram, at this place.
std::uint8_t byte_at(std::size_t place, unsigned key) {
  return static_cast<std::uint8_t>(place * 7 + key);
}

std::string_view view(const Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Bytes fragment(const std::uint8_t* what, unsigned key) {
  const bool v4 = (what[0] & 1) != 0, more = (what[0] & 2) != 0, lies = (what[0] & 4) != 0;
  const auto begin = static_cast<std::uint16_t>(what[0] & 8 ? 0xfff8 - 8 * what[1] : 8 * what[1]);
  Bytes bytes(what[0] & 16 ? what[2] : what[2] / 8 * 8);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    bytes[i] = static_cast<std::uint8_t>(byte_at(begin + i, key) ^ (lies ? 0x80 : 0));
  }
  PacketBuilder builder;
  v4 ? builder.ipv4("10.0.0.1", "10.0.0.2") : builder.ipv6("2001:db8::1", "2001:db8::2");
  return builder.id(key).fragment(begin, more).protocol(no_transport).payload(std::move(bytes)).build();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  Fragments fragments(settings_of(data[0]));
  Milliseconds now = 1000;
  std::array<bool, 16> lied{};  // something else than the datagram has been taken; by key and family
  for (std::size_t at = 1; at + 4 <= size; at += 4) {
    const unsigned key = data[at] >> 5;
    const Bytes frame = fragment(data + at, key);
    now += data[at + 3] * 100U;
    sluice::packet::HeaderFacts facts;
    sluice::packet::read_headers(view(frame), facts);
    if (!facts.fragment() || !facts.whole) continue;
    const Fragments::Taken taken = fragments.take(view(frame), facts, now);
    bool& of_key = lied[key * 2 + (facts.family == 4 ? 1 : 0)];
    if (taken != Fragments::Taken::refused) of_key |= (data[at] & 4) != 0;
    REQUIRE(fragments.pool().in_use() <= fragments.pool().capacity());
    if (taken != Fragments::Taken::whole) continue;
    sluice::packet::HeaderFacts whole;
    sluice::packet::read_headers(fragments.datagram(), whole);
    REQUIRE(whole.whole && !whole.fragment() && whole.family == facts.family && whole.protocol == no_transport);
    REQUIRE(whole.payload.data() + whole.payload.size() == fragments.datagram().data() + fragments.datagram().size());
    for (std::size_t i = 0; i < whole.payload.size() && !of_key; ++i) {
      REQUIRE(static_cast<std::uint8_t>(whole.payload[i]) == byte_at(i, key));
    }
    if ((data[at + 3] & 1) != 0) fragments.forbid();
  }
  fragments.expire(now + FragmentSettings().timeout, ~std::uint32_t{0});
  REQUIRE(fragments.waiting() == 0 && fragments.pool().in_use() == 0);
  return 0;
}
