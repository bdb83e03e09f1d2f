#include "bench/tunnel_by_openssl.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

namespace sluice::cli::bench {
namespace {

using Bytes = TunnelByOpenssl::Bytes;
using ipsec::Protocol;

constexpr std::size_t ip_bytes = 20, esp_bytes = 8, ah_bytes = 12;
constexpr std::uint8_t ip_in_ip = 4;

struct FreeContext {
  void operator()(EVP_CIPHER_CTX* context) const { EVP_CIPHER_CTX_free(context); }
};

std::uint32_t word(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | at[3];
}
void put_word(std::uint8_t* at, std::uint32_t value) {
  for (int i = 0; i < 4; ++i) at[i] = static_cast<std::uint8_t>(value >> (24 - 8 * i));
}

// Ones' complement sum of a header: 0xffff where its checksum is right.
std::uint16_t header_sum(const std::uint8_t* header) {
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < ip_bytes; i += 2) sum += std::uint32_t{header[i]} << 8 | header[i + 1];
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}

const EVP_CIPHER* cipher_of(const ipsec::Transform& transform) {
  const std::size_t width = transform.cipher_key.length / 8U - 2;
  switch (transform.cipher) {
    case crypto::Cipher::aes_cbc:
      return std::array{EVP_aes_128_cbc(), EVP_aes_192_cbc(), EVP_aes_256_cbc()}[width];
    case crypto::Cipher::aes_ctr_esp:
      return std::array{EVP_aes_128_ctr(), EVP_aes_192_ctr(), EVP_aes_256_ctr()}[width];
    case crypto::Cipher::aes_gcm_esp:
      return std::array{EVP_aes_128_gcm(), EVP_aes_192_gcm(), EVP_aes_256_gcm()}[width];
    default:
      return EVP_chacha20_poly1305();
  }
}

// AH's ICV is of the outer header without what changes on the way, and of itself without the ICV (RFC 4302 3.3.3).
Bytes immutable(std::span<const std::uint8_t> packet, std::size_t icv) {
  Bytes bytes(packet.begin(), packet.end());
  for (const std::size_t at : {1, 6, 7, 8, 10, 11}) bytes[at] = 0;
  std::fill_n(bytes.begin() + ip_bytes + ah_bytes, icv, 0);
  return bytes;
}

}  // namespace

bool TunnelByOpenssl::is_aead() const {
  return sa_.transform.cipher == crypto::Cipher::aes_gcm_esp ||
         sa_.transform.cipher == crypto::Cipher::chacha20_poly1305_esp;
}

std::size_t TunnelByOpenssl::iv_bytes() const {
  return sa_.transform.cipher == crypto::Cipher::null ? 0 : sa_.transform.cipher == crypto::Cipher::aes_cbc ? 16 : 8;
}

Bytes TunnelByOpenssl::outer_header(std::size_t payload, std::uint8_t protocol) const {
  Bytes header(ip_bytes);
  const std::size_t length = ip_bytes + payload;
  header[0] = 0x45;
  header[2] = static_cast<std::uint8_t>(length >> 8);
  header[3] = static_cast<std::uint8_t>(length);
  header[8] = 64;
  header[9] = protocol;
  std::memcpy(header.data() + 12, sa_.source.bytes.data(), 4);
  std::memcpy(header.data() + 16, sa_.id.destination.bytes.data(), 4);
  const auto sum = static_cast<std::uint16_t>(~header_sum(header.data()));
  header[10] = static_cast<std::uint8_t>(sum >> 8);
  header[11] = static_cast<std::uint8_t>(sum);
  return header;
}

Bytes TunnelByOpenssl::icv(std::span<const std::uint8_t> authenticated) const {
  const ipsec::Transform& transform = sa_.transform;
  const std::array hashes{EVP_sha1(), EVP_sha256(), EVP_sha384(), EVP_sha512()};
  Bytes digest(EVP_MAX_MD_SIZE);
  const auto key = transform.auth_key.view();
  HMAC(hashes[static_cast<std::size_t>(transform.hash) - 1], key.data(), static_cast<int>(key.size()),
       authenticated.data(), authenticated.size(), digest.data(), nullptr);
  digest.resize(transform.icv_length);
  return digest;
}

bool TunnelByOpenssl::cipher(Bytes& packet, std::size_t clear, bool seals, bool authenticates) const {
  const ipsec::Transform& transform = sa_.transform;
  if (transform.cipher == crypto::Cipher::null) return true;
  const std::size_t iv = iv_bytes(), tag = is_aead() ? transform.icv_length : 0;
  const auto salt = transform.salt.view();
  Bytes block(salt.begin(), salt.end());
  block.insert(block.end(), packet.begin() + static_cast<std::ptrdiff_t>(clear - iv),
               packet.begin() + static_cast<std::ptrdiff_t>(clear));
  if (transform.cipher == crypto::Cipher::aes_ctr_esp) block.insert(block.end(), {0, 0, 0, 1});
  const std::unique_ptr<EVP_CIPHER_CTX, FreeContext> context(EVP_CIPHER_CTX_new());
  std::uint8_t* const text = packet.data() + clear;
  const auto length = static_cast<int>(packet.size() - clear - tag);
  int written = 0, more = 0;
  bool fine = EVP_CipherInit_ex(context.get(), cipher_of(transform), nullptr, transform.cipher_key.view().data(),
                                block.data(), seals ? 1 : 0) == 1;
  EVP_CIPHER_CTX_set_padding(context.get(), 0);
  if (tag != 0) {
    fine = fine && EVP_CipherUpdate(context.get(), nullptr, &more, packet.data(), static_cast<int>(clear - iv)) == 1;
    if (!seals && authenticates) {
      fine =
          fine && EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_SET_TAG, static_cast<int>(tag), text + length) == 1;
    }
  }
  Bytes done(static_cast<std::size_t>(length) + 16);
  fine = fine && EVP_CipherUpdate(context.get(), done.data(), &written, text, length) == 1;
  if (authenticates) fine = fine && EVP_CipherFinal_ex(context.get(), done.data() + written, &more) == 1;
  if (seals && tag != 0) {
    fine = fine && EVP_CIPHER_CTX_ctrl(context.get(), EVP_CTRL_AEAD_GET_TAG, static_cast<int>(tag), text + length) == 1;
  }
  if (fine) std::memcpy(text, done.data(), static_cast<std::size_t>(length));
  return fine;
}

Expected<Bytes> TunnelByOpenssl::seal(std::span<const std::uint8_t> inner, std::uint32_t sequence) const {
  if (sa_.id.protocol == Protocol::ah) return seal_ah(inner, sequence);
  const std::size_t clear = esp_bytes + iv_bytes();
  const std::size_t align = sa_.transform.cipher == crypto::Cipher::aes_cbc ? 16 : 4;
  const std::size_t padding = (align - (inner.size() + 2) % align) % align;
  Bytes packet(clear);
  put_word(packet.data(), sa_.id.spi);
  put_word(packet.data() + 4, sequence);
  // Unique under the key, and no secret: nobody chooses the text.
  if (clear != esp_bytes) put_word(packet.data() + clear - 4, sequence);
  packet.insert(packet.end(), inner.begin(), inner.end());
  for (std::size_t i = 0; i < padding; ++i) packet.push_back(static_cast<std::uint8_t>(i + 1));
  packet.push_back(static_cast<std::uint8_t>(padding));
  packet.push_back(ip_in_ip);
  if (is_aead()) packet.resize(packet.size() + sa_.transform.icv_length);
  if (!cipher(packet, clear, true)) return make_error("OpenSSL could not encipher a packet");
  if (!is_aead()) {
    const Bytes tag = icv(packet);
    packet.insert(packet.end(), tag.begin(), tag.end());
  }
  Bytes whole = outer_header(packet.size(), static_cast<std::uint8_t>(Protocol::esp));
  whole.insert(whole.end(), packet.begin(), packet.end());
  return whole;
}

std::size_t TunnelByOpenssl::clear_bytes() const {
  return esp_bytes + iv_bytes();
}

Expected<std::vector<Bytes>> TunnelByOpenssl::icvs_in_place(std::span<const std::uint8_t> packet, std::size_t head,
                                                            std::size_t tail, unsigned rounds) const {
  const std::size_t clear = clear_bytes(), tag = sa_.transform.icv_length;
  const auto esp = packet.subspan(ip_bytes);
  Bytes text(esp.begin(), esp.end());
  const auto kept_to = text.begin() + static_cast<std::ptrdiff_t>(clear + head);
  const auto kept_from = text.end() - static_cast<std::ptrdiff_t>(tag + tail);
  std::vector<Bytes> icvs;
  for (unsigned round = 0; round < rounds; ++round) {
    Bytes opened = text;
    if (!is_aead()) opened.resize(opened.size() - tag);
    // A cipher block chain is deciphered, and a key stream put on, whether or not the packet is authentic.
    bool fine = cipher(opened, clear, false, false);
    if (is_aead()) {
      Bytes sealed = opened;
      fine = fine && cipher(sealed, clear, true);
      icvs.emplace_back(sealed.end() - static_cast<std::ptrdiff_t>(tag), sealed.end());
    } else {
      icvs.push_back(icv(std::span(text).first(text.size() - tag)));
    }
    if (!fine) return make_error("OpenSSL could not decipher a packet");
    std::copy(opened.begin() + (kept_to - text.begin()), opened.begin() + (kept_from - text.begin()), kept_to);
  }
  return icvs;
}

Bytes TunnelByOpenssl::seal_ah(std::span<const std::uint8_t> inner, std::uint32_t sequence) const {
  const std::size_t tag = sa_.transform.icv_length;
  Bytes packet = outer_header(ah_bytes + tag + inner.size(), static_cast<std::uint8_t>(Protocol::ah));
  packet.resize(ip_bytes + ah_bytes + tag);
  packet[ip_bytes] = ip_in_ip;
  packet[ip_bytes + 1] = static_cast<std::uint8_t>((ah_bytes + tag) / 4 - 2);
  put_word(packet.data() + ip_bytes + 4, sa_.id.spi);
  put_word(packet.data() + ip_bytes + 8, sequence);
  packet.insert(packet.end(), inner.begin(), inner.end());
  const Bytes digest = icv(immutable(packet, tag));
  std::copy(digest.begin(), digest.end(), packet.begin() + ip_bytes + ah_bytes);
  return packet;
}

Expected<TunnelByOpenssl::Opened> TunnelByOpenssl::open(std::span<const std::uint8_t> packet) const {
  const bool is_ah = sa_.id.protocol == Protocol::ah;
  if (packet.size() < ip_bytes + (is_ah ? ah_bytes : esp_bytes + iv_bytes() + 2) + sa_.transform.icv_length) {
    return make_error("it is too short");
  }
  const bool is_whole = packet[0] == 0x45 && (std::size_t{packet[2]} << 8 | packet[3]) == packet.size();
  if (!is_whole) return make_error("its outer header is none of IPv4, or has another length");
  if (header_sum(packet.data()) != 0xffff) return make_error("its outer header has a wrong checksum");
  if (packet[9] != static_cast<std::uint8_t>(sa_.id.protocol)) return make_error("it is of another protocol");
  if (std::memcmp(packet.data() + 12, sa_.source.bytes.data(), 4) != 0 ||
      std::memcmp(packet.data() + 16, sa_.id.destination.bytes.data(), 4) != 0) {
    return make_error("its outer addresses are not the tunnel's");
  }
  if (word(packet.data() + ip_bytes + (is_ah ? 4 : 0)) != sa_.id.spi) return make_error("it has another SPI");
  return is_ah ? open_ah(packet) : open_esp(packet);
}

Expected<TunnelByOpenssl::Opened> TunnelByOpenssl::open_ah(std::span<const std::uint8_t> packet) const {
  const std::size_t tag = sa_.transform.icv_length, behind = ip_bytes + ah_bytes + tag;
  const Bytes digest = icv(immutable(packet, tag));
  if (!std::equal(digest.begin(), digest.end(), packet.begin() + ip_bytes + ah_bytes)) {
    return make_error("its ICV is wrong");
  }
  if (packet[ip_bytes] != ip_in_ip || packet[ip_bytes + 1] != (ah_bytes + tag) / 4 - 2) {
    return make_error("its AH has another next header or length");
  }
  return Opened{{packet.begin() + static_cast<std::ptrdiff_t>(behind), packet.end()},
                word(packet.data() + ip_bytes + 8)};
}

Expected<TunnelByOpenssl::Opened> TunnelByOpenssl::open_esp(std::span<const std::uint8_t> packet) const {
  const std::size_t clear = esp_bytes + iv_bytes(), tag = sa_.transform.icv_length;
  const auto esp = packet.subspan(ip_bytes);
  Bytes text(esp.begin(), esp.end());
  if (!is_aead()) {
    text.resize(text.size() - tag);
    const Bytes digest = icv(text);
    if (!std::equal(digest.begin(), digest.end(), esp.end() - static_cast<std::ptrdiff_t>(tag))) {
      return make_error("its ICV is wrong");
    }
  }
  if (!cipher(text, clear, false)) return make_error(is_aead() ? "its ICV is wrong" : "OpenSSL could not decipher it");
  if (is_aead()) text.resize(text.size() - tag);
  const std::size_t padding = text[text.size() - 2];
  if (text.back() != ip_in_ip) return make_error("its next header is not IPv4");
  if (text.size() < clear + padding + 2) return make_error("it has more padding than bytes");
  for (std::size_t i = 0; i < padding; ++i) {
    if (text[text.size() - 2 - padding + i] != i + 1) return make_error("its padding is wrong");
  }
  return Opened{
      {text.begin() + static_cast<std::ptrdiff_t>(clear), text.end() - static_cast<std::ptrdiff_t>(padding + 2)},
      word(esp.data() + 4)};
}

}  // namespace sluice::cli::bench
