#include "ipsec/sa.h"

#include <cstdio>

#include "crypto/algorithm.h"
#include "ipsec/sa_record.h"
#include "packet/headers.h"

namespace sluice::ipsec {

std::string SaId::str() const {
  char number[16];
  std::snprintf(number, sizeof number, "0x%08x", spi);
  return std::string(protocol == Protocol::ah ? "ah " : "esp ") + number + " to " + destination.str();
}

crypto::KeyMaterial key_material(const SaSettings& settings) {
  const Transform& transform = settings.transform;
  return {.cipher = transform.cipher,
          .hash = transform.hash,
          .cipher_key = transform.cipher_key.view(),
          .salt = transform.salt.view(),
          .auth_key = transform.auth_key.view(),
          .tag_length = transform.icv_length,
          .opens = settings.direction == Direction::in};
}

Outer outer_of(const SaSettings& settings) {
  Outer outer{.format = packet_format(settings).value(),
              .source = settings.source.bytes,
              .destination = settings.id.destination.bytes,
              .family = settings.id.destination.family,
              .udp = settings.udp.has_value()};
  if (settings.udp) {
    outer.source_port = packet::be16(settings.udp->source);
    outer.destination_port = packet::be16(settings.udp->destination);
  }
  return outer;
}

Sa::Sa(const SaSettings& settings, std::uint32_t of_index, std::uint32_t of_key, std::uint64_t of_installs)
    : spi(packet::be32(settings.id.spi)),
      key(of_key),
      index(of_index),
      protocol(settings.id.protocol),
      mode(settings.mode),
      direction(settings.direction),
      cipher(settings.transform.cipher),
      hash(settings.transform.hash),
      family(settings.id.destination.family),
      destination(settings.id.destination.bytes),
      on_gpus(crypto::gpu_side().can(*crypto::algorithm(settings.transform.cipher, settings.transform.hash),
                                     settings.transform.cipher_key.length)),
      outer(&first_outer),
      installs(of_installs),
      window(settings.direction == Direction::in ? settings.replay_window : 0, settings.sequence),
      sequence(settings.sequence),
      first_outer(outer_of(settings)),
      reqid(settings.reqid),
      record(std::make_unique<SaRecord>()) {}

Sa::~Sa() = default;

}  // namespace sluice::ipsec
