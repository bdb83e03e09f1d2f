// Any frame as one of ESP or AH that came in and was found authentic, for SAs of all kinds: nothing is read or written
// outside of it, and what comes out is a frame within it. And any frame as one that is to be protected: what is put on
// comes off again, as it was. And any frame as an ICMP error about one.
#include <cstring>
#include <vector>

#include "ipsec/ah.h"
#include "ipsec/esp.h"
#include "ipsec/outer_packet.h"
#include "ipsec/too_big.h"
#include "packet/metadata.h"
#include "require.h"

using namespace sluice;
using namespace sluice::ipsec;

namespace {

std::vector<PacketFormat> formats() {
  std::vector<PacketFormat> all;
  for (const auto protocol : {Protocol::esp, Protocol::ah}) {
    for (const auto mode : {Mode::tunnel, Mode::transport}) {
      for (const char* const end : {"192.0.2.1", "2001:db8::1"}) {
        for (const auto cipher : {crypto::Cipher::null, crypto::Cipher::aes_cbc, crypto::Cipher::aes_gcm_esp}) {
          for (const bool udp : {false, true}) {
            if (protocol == Protocol::ah && (udp || cipher != crypto::Cipher::null)) continue;
            SaSettings sa;
            sa.id = {.destination = *packet::IpAddress::parse(end), .spi = 0x1001, .protocol = protocol};
            sa.source = sa.id.destination;
            sa.mode = mode;
            sa.transform.cipher = cipher;
            sa.transform.icv_length = 16;
            if (udp) sa.udp = UdpPorts{};
            all.push_back(packet_format(sa).value());
          }
        }
      }
    }
  }
  return all;
}

const std::vector<PacketFormat> all_formats = formats();

void open(const PacketFormat& format, std::vector<std::uint8_t> frame) {
  OuterView outer;
  const auto length = static_cast<std::uint32_t>(frame.size());
  const OuterKind kind = find_outer(frame.data(), length, outer);
  REQUIRE(kind == OuterKind::other || may_be_outer(frame.data(), length));
  if (kind != OuterKind::ipsec || outer.protocol != format.protocol) return;
  crypto::Job job;
  Taken taken;
  if (format.protocol == Protocol::ah) {
    AhKept kept;
    frame.resize(frame.size() + format.icv);
    if (find_outer(frame.data(), length, outer) != OuterKind::ipsec || outer.family != format.family) return;
    if (!ah_look(format, frame.data(), outer, 0, job, kept)) return;
    taken = ah_take_off(format, frame.data(), outer, kept);
  } else {
    if (!esp_look(format, frame.data(), outer, 0, job)) return;
    taken = esp_take_off(format, frame.data(), outer);
  }
  if (taken.content == Content::packet) REQUIRE(taken.front + taken.length <= frame.size());
}

void put_on_and_take_off(const PacketFormat& format, const std::vector<std::uint8_t>& packet) {
  InnerPacket inner;
  if (!look_at_inner(packet.data(), static_cast<std::uint32_t>(packet.size()), format.mode, inner)) return;
  if (format.mode == Mode::transport && inner.family != format.family) return;
  const bool is_ah = format.protocol == Protocol::ah;
  const std::uint32_t front = is_ah ? ah_front(format) : esp_front(format);
  const std::uint32_t behind = is_ah ? ah_behind(format) : esp_behind(format, inner);
  if (14 + front + inner.length + behind > 65535) return;
  std::vector<std::uint8_t> frame(front);
  frame.insert(frame.end(), packet.begin(), packet.begin() + 14 + inner.length);
  frame.resize(frame.size() + behind);
  crypto::Job job;
  AhKept kept;
  if (is_ah) {
    if (!ah_put_on(format, inner, 1, frame.data(), job, kept)) return;
    ah_finish(format, frame.data(), job, kept);
    frame.resize(frame.size() - behind);
  } else {
    esp_put_on(format, inner, 1, frame.data(), job);
  }
  OuterView outer;
  const OuterKind kind = find_outer(frame.data(), static_cast<std::uint32_t>(frame.size()), outer);
  // What is in a fragment or a tunnel of its own already may look otherwise outside.
  if (kind != OuterKind::ipsec || outer.protocol != format.protocol || outer.spi != 0x1001) return;
  Taken taken;
  if (is_ah) {
    frame.resize(frame.size() + format.icv);
    if (!ah_look(format, frame.data(), outer, 0, job, kept)) return;
    taken = ah_take_off(format, frame.data(), outer, kept);
  } else {
    if (!esp_look(format, frame.data(), outer, 0, job)) return;
    taken = esp_take_off(format, frame.data(), outer);
  }
  if (taken.content != Content::packet) return;
  REQUIRE(taken.front + taken.length <= frame.size());
  REQUIRE(taken.length == 14U + inner.length || format.mode == Mode::transport);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 4000) return 0;
  const std::vector<std::uint8_t> frame(data, data + size);
  if (is_too_big(frame.data(), static_cast<std::uint32_t>(size)))
    read_too_big(frame.data(), static_cast<std::uint32_t>(size));
  for (const PacketFormat& format : all_formats) {
    open(format, frame);
    put_on_and_take_off(format, frame);
  }
  return 0;
}
