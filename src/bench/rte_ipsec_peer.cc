#include "bench/rte_ipsec_peer.h"

#include <rte_crypto.h>
#include <rte_cryptodev.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <rte_ipsec.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "base/machine.h"
#include "bench/every_core.h"
#include "bench/rounds.h"
#include "bench/tunnel_by_openssl.h"
#include "packet/checksum.h"
#include "packet/frame_mix.h"
#include "packet/headers.h"
#include "port/frame_pool.h"

namespace sluice::cli::bench {
namespace {

using ipsec::Direction;
using packet::be16;
using packet::be32;

constexpr unsigned frames_of_core = 4096, burst = 64, most_under_way = 256, descriptors = 1024;
constexpr unsigned frame_bytes = 2048, looked_at = 256;
constexpr std::uint16_t iv_at = sizeof(rte_crypto_op) + sizeof(rte_crypto_sym_op);
constexpr std::size_t ethernet = sizeof(packet::EthernetHeader);
constexpr std::size_t outer_headers = ethernet + sizeof(packet::Ipv4Header);
constexpr std::size_t headers = outer_headers + sizeof(packet::UdpHeader);
static_assert(frames_of_core % burst == 0 && looked_at % burst == 0);

// A device of the driver, with a queue for each core.
struct Device {
  std::string name;
  std::uint8_t id = 0;
  bool is_there = false;
  ~Device() {
    if (!is_there) return;
    rte_cryptodev_stop(id);
    rte_eal_hotplug_remove("vdev", name.c_str());
  }
};

struct PoolFreed {
  void operator()(rte_mempool* pool) const { rte_mempool_free(pool); }
};
using Pool = std::unique_ptr<rte_mempool, PoolFreed>;

struct Freed {
  void operator()(void* memory) const { rte_free(memory); }
};

// A session of rte_ipsec, and what it stands on.
struct Sa {
  rte_ipsec_session session{};
  std::unique_ptr<void, Freed> memory;
};

std::string last_error() {
  return rte_strerror(rte_errno);
}

// The transform as DPDK has it, in two parts at most.
struct Xforms {
  std::array<rte_crypto_sym_xform, 2> parts{};
  Xforms(const ipsec::Transform& transform, bool out) {
    const auto key = transform.cipher_key.view(), auth = transform.auth_key.view();
    if (transform.hash == crypto::Hash::none) {
      const bool is_gcm = transform.cipher == crypto::Cipher::aes_gcm_esp;
      parts[0].type = RTE_CRYPTO_SYM_XFORM_AEAD;
      parts[0].aead = {.op = out ? RTE_CRYPTO_AEAD_OP_ENCRYPT : RTE_CRYPTO_AEAD_OP_DECRYPT,
                       .algo = is_gcm ? RTE_CRYPTO_AEAD_AES_GCM : RTE_CRYPTO_AEAD_CHACHA20_POLY1305,
                       .key = {key.data(), static_cast<std::uint16_t>(key.size())},
                       .iv = {iv_at, 12},
                       .digest_length = transform.icv_length,
                       .aad_length = 8};
      return;
    }
    const bool is_null = transform.cipher == crypto::Cipher::null, is_cbc = transform.cipher == crypto::Cipher::aes_cbc;
    rte_crypto_sym_xform& cipher = parts[out ? 0 : 1];
    rte_crypto_sym_xform& hash = parts[out ? 1 : 0];
    cipher.type = RTE_CRYPTO_SYM_XFORM_CIPHER;
    cipher.cipher.op = out ? RTE_CRYPTO_CIPHER_OP_ENCRYPT : RTE_CRYPTO_CIPHER_OP_DECRYPT;
    cipher.cipher.algo = is_null  ? RTE_CRYPTO_CIPHER_NULL
                         : is_cbc ? RTE_CRYPTO_CIPHER_AES_CBC
                                  : RTE_CRYPTO_CIPHER_AES_CTR;
    cipher.cipher.key = {key.data(), static_cast<std::uint16_t>(key.size())};
    cipher.cipher.iv = {iv_at, static_cast<std::uint16_t>(is_null ? 0 : 16)};
    constexpr std::array hashes{RTE_CRYPTO_AUTH_SHA1_HMAC, RTE_CRYPTO_AUTH_SHA256_HMAC, RTE_CRYPTO_AUTH_SHA384_HMAC,
                                RTE_CRYPTO_AUTH_SHA512_HMAC};
    hash.type = RTE_CRYPTO_SYM_XFORM_AUTH;
    hash.auth.op = out ? RTE_CRYPTO_AUTH_OP_GENERATE : RTE_CRYPTO_AUTH_OP_VERIFY;
    hash.auth.algo = hashes[static_cast<std::size_t>(transform.hash) - 1];
    hash.auth.key = {auth.data(), static_cast<std::uint16_t>(auth.size())};
    hash.auth.digest_length = transform.icv_length;
    parts[0].next = &parts[1];
  }
};

}  // namespace

struct RteIpsecPeer::Parts {
  const IpsecTunnels& tunnels;
  const SealedPackets& sealed;
  unsigned lanes;
  Device device;
  Pool sessions;
  std::array<std::vector<Sa>, 2> sas;  // by direction
  std::vector<std::unique_ptr<Core>> cores;

  std::vector<Sa>& of(Direction direction) { return sas[direction == Direction::out ? 1 : 0]; }
  Expected<void> start_device(std::size_t queues);
  Expected<void> add_sa(Direction direction, std::uint32_t tunnel);
  ~Parts();
};

// One core's frames, and the loop over them.
class RteIpsecPeer::Core {
 public:
  static Expected<std::unique_ptr<Core>> make(Parts& parts, std::uint16_t queue, const std::string& mix) {
    auto sizes = packet::FrameMix::make(mix, 200U + queue);
    if (!sizes) return tl::unexpected(sizes.error());
    auto pool = port::make_frame_pool("rte-ipsec-" + std::to_string(queue), frames_of_core, frame_bytes, SOCKET_ID_ANY);
    if (!pool) return tl::unexpected(pool.error());
    std::unique_ptr<Core> core(new Core(parts, queue, std::move(*pool)));
    core->ops_.reset(rte_crypto_op_pool_create(("rte-ipsec-ops-" + std::to_string(queue)).c_str(),
                                               RTE_CRYPTO_OP_TYPE_SYMMETRIC, 2 * descriptors, 0, 64, SOCKET_ID_ANY));
    if (!core->ops_) return make_error("no memory for rte_ipsec's operations: " + last_error());
    if (rte_pktmbuf_alloc_bulk(core->pool_.get(), core->frames_.data(), frames_of_core) != 0) {
      return make_error("no frames for rte_ipsec");
    }
    std::ranges::sort(core->frames_);
    for (std::uint16_t& length : core->length_) length = static_cast<std::uint16_t>(sizes->next());
    return core;
  }

  // Until stopped.
  CoreShare run(Direction direction, const std::atomic<bool>& stop) {
    CoreShare done;
    while (!stop.load(std::memory_order_relaxed)) {
      offer(direction, done);
      while (under_way_ > most_under_way) take();
      take();
    }
    while (under_way_ != 0) take();
    return done;
  }

  // What is wrong with the first packets; empty: nothing.
  std::string look(Direction direction) {
    CoreShare done;
    const unsigned first = next_;
    for (unsigned i = 0; i < looked_at; i += burst) offer(direction, done, true);
    while (under_way_ != 0) take();
    if (wrong_ != 0) return std::to_string(wrong_) + " packets were refused";
    for (unsigned i = 0; i < looked_at; ++i) {
      const unsigned f = (first + i) % frames_of_core;
      std::string why = look_at(direction, f);
      if (!why.empty()) return why;
    }
    return {};
  }
  std::uint64_t wrong() const { return wrong_; }

 private:
  Core(Parts& parts, std::uint16_t queue, port::FramePool pool)
      : parts_(parts), queue_(queue), pool_(std::move(pool)), random_(2654435761U * (queue + 1U)) {
    const auto clear = clear_frame(Direction::out, 0, headers, 0);
    std::ranges::copy(clear, clear_.begin());
  }

  void write_clear(unsigned f) {
    rte_mbuf& frame = *frames_[f];
    random_ ^= random_ << 13;
    random_ ^= random_ >> 17;
    random_ ^= random_ << 5;
    tunnel_[f] = static_cast<std::uint32_t>(std::uint64_t{random_} * parts_.tunnels.count() >> 32);
    auto& ip = packet::header_at<packet::Ipv4Header>(clear_.data(), ethernet);
    auto& udp = packet::header_at<packet::UdpHeader>(clear_.data(), ethernet + sizeof ip);
    ip.total_length = be16(static_cast<std::uint16_t>(length_[f] - ethernet));
    ip.destination = be32(IpsecTunnels::far_host(tunnel_[f]));
    ip.checksum = packet::ipv4_header_checksum(ip);
    udp.length = be16(static_cast<std::uint16_t>(length_[f] - ethernet - sizeof ip));
    std::memcpy(rte_pktmbuf_mtod(&frame, void*), clear_.data(), headers);
    came_[f].is_there = false;
    frame.data_len = length_[f];
  }
  // As the gateway's source writes it.
  void write_sealed(unsigned f, std::uint32_t left_length, bool whole) {
    const SealedPackets::Sealed& sealed = parts_.sealed.write(
        queue_ % parts_.lanes, came_[f], next_sealed_, left_length, whole, rte_pktmbuf_mtod(frames_[f], std::uint8_t*));
    frames_[f]->data_len = sealed.length;
    tunnel_[f] = sealed.tunnel;
    length_[f] = sealed.clear_length;
  }
  void write(Direction direction, unsigned f, bool whole) {
    rte_mbuf* const frame = frames_[f];
    const std::uint32_t left_length = frame->data_len + std::uint32_t{ethernet};  // that the library has taken off
    frame->data_off = RTE_PKTMBUF_HEADROOM;
    frame->ol_flags = 0;
    if (direction == Direction::out) {
      write_clear(f);
    } else {
      write_sealed(f, left_length, whole);
    }
    frame->pkt_len = frame->data_len;
    frame->l2_len = ethernet;
    frame->l3_len = sizeof(packet::Ipv4Header);
  }

  // A burst of packets, those of an SA that follow each other together.
  void offer(Direction direction, CoreShare& done, bool whole = false) {
    std::array<rte_crypto_op*, burst> ops;
    std::array<rte_mbuf*, burst> frames;
    if (rte_crypto_op_bulk_alloc(ops_.get(), RTE_CRYPTO_OP_TYPE_SYMMETRIC, ops.data(), burst) == 0) {
      ++wrong_;
      return;
    }
    for (unsigned i = 0; i < burst; ++i) {
      const unsigned f = next_ + i;
      write(direction, f, whole);
      frames[i] = frames_[f];
      done.bytes += length_[f];
    }
    done.frames += burst;
    unsigned ready = 0;
    for (unsigned i = 0, run = 0; i < burst; i += run) {
      const std::uint32_t tunnel = tunnel_[next_ + i];
      for (run = 1; i + run < burst && tunnel_[next_ + i + run] == tunnel;) ++run;
      const std::uint16_t fine = rte_ipsec_pkt_crypto_prepare(&parts_.of(direction)[tunnel].session, frames.data() + i,
                                                              ops.data() + ready, static_cast<std::uint16_t>(run));
      wrong_ += run - fine;
      ready += fine;
    }
    next_ = (next_ + burst) % frames_of_core;
    for (unsigned sent = 0; sent < ready;) {
      sent += rte_cryptodev_enqueue_burst(parts_.device.id, queue_, ops.data() + sent,
                                          static_cast<std::uint16_t>(ready - sent));
      if (sent < ready) take();
    }
    under_way_ += ready;
    if (ready < burst) {
      rte_mempool_put_bulk(ops_.get(), reinterpret_cast<void**>(ops.data() + ready), burst - ready);
    }
  }

  void take() {
    std::array<rte_crypto_op*, burst> ops;
    std::array<rte_mbuf*, burst> frames;
    std::array<rte_ipsec_group, burst> groups;
    const std::uint16_t count = rte_cryptodev_dequeue_burst(parts_.device.id, queue_, ops.data(), burst);
    if (count == 0) return;
    const std::uint16_t group_count =
        rte_ipsec_pkt_crypto_group(const_cast<const rte_crypto_op**>(ops.data()), frames.data(), groups.data(), count);
    for (std::uint16_t g = 0; g < group_count; ++g) {
      const auto* const session = static_cast<const rte_ipsec_session*>(groups[g].id.ptr);
      const std::uint16_t fine = rte_ipsec_pkt_process(session, groups[g].m, static_cast<std::uint16_t>(groups[g].cnt));
      wrong_ += groups[g].cnt - fine;
    }
    rte_mempool_put_bulk(ops_.get(), reinterpret_cast<void**>(ops.data()), count);
    under_way_ -= count;
  }

  std::string look_at(Direction direction, unsigned f) const {
    std::vector<std::uint8_t> left(rte_pktmbuf_mtod(frames_[f], const std::uint8_t*),
                                   rte_pktmbuf_mtod(frames_[f], const std::uint8_t*) + frames_[f]->data_len);
    if (direction == Direction::in) {
      const auto clear = parts_.sealed.clear(queue_ % parts_.lanes, came_[f].packet);
      // The library has taken off the Ethernet header, too.
      const bool same =
          left.size() == clear.size() - ethernet && std::equal(left.begin(), left.end(), clear.begin() + ethernet);
      return same ? "" : "what it opened is not what OpenSSL had sealed";
    }
    auto& ip = packet::header_at<packet::Ipv4Header>(left.data(), ethernet);
    ip.checksum = packet::ipv4_header_checksum(ip);
    const auto opened =
        TunnelByOpenssl(parts_.tunnels.sa(direction, tunnel_[f])).open(std::span(left).subspan(ethernet));
    if (!opened) return "OpenSSL does not open what it sealed: " + opened.error().message;
    const auto& inner = packet::header_at<packet::Ipv4Header>(opened->inner.data(), 0);
    const bool same =
        opened->inner.size() == length_[f] - ethernet && inner.destination == be32(IpsecTunnels::far_host(tunnel_[f]));
    return same ? "" : "what it sealed is not what went in";
  }

  Parts& parts_;
  const std::uint16_t queue_;
  port::FramePool pool_;
  Pool ops_;
  std::array<rte_mbuf*, frames_of_core> frames_{};
  std::array<std::uint16_t, frames_of_core> length_{};  // in clear
  std::array<std::uint32_t, frames_of_core> tunnel_{};
  std::array<SealedPackets::Came, frames_of_core> came_{};
  std::array<std::uint8_t, headers> clear_{};
  std::uint32_t random_, next_sealed_ = 0;
  unsigned next_ = 0;
  std::uint64_t under_way_ = 0, wrong_ = 0;
};

RteIpsecPeer::Parts::~Parts() {
  cores.clear();
  for (auto& all : sas) {
    for (Sa& sa : all) {
      if (sa.session.crypto.ses != nullptr) rte_cryptodev_sym_session_free(device.id, sa.session.crypto.ses);
    }
  }
}

Expected<void> RteIpsecPeer::Parts::start_device(std::size_t queues) {
  const bool only_gcm = !tunnels.is_mixed() && tunnels.algorithm(0).name == std::string("aes128gcm16");
  const bool only_gcm256 = !tunnels.is_mixed() && tunnels.algorithm(0).name == std::string("aes256gcm16");
  device.name = only_gcm || only_gcm256 ? "crypto_aesni_gcm0" : "crypto_aesni_mb0";
  const std::string arguments = device.name + ",max_nb_queue_pairs=" + std::to_string(queues);
  if (const int error = rte_dev_probe(arguments.c_str()); error != 0) {
    return make_error("DPDK's driver " + device.name +
                      " does not start (librte_crypto_ipsec_mb): " + rte_strerror(-error));
  }
  device.is_there = true;
  const int id = rte_cryptodev_get_dev_id(device.name.c_str());
  if (id < 0) return make_error("DPDK's driver " + device.name + " makes no device");
  device.id = static_cast<std::uint8_t>(id);
  const unsigned private_bytes = rte_cryptodev_sym_get_private_session_size(device.id);
  sessions.reset(rte_cryptodev_sym_session_pool_create("rte-ipsec-sessions", 2 * tunnels.count() + 64, private_bytes, 0,
                                                       0, SOCKET_ID_ANY));
  if (!sessions) return make_error("no memory for rte_ipsec's sessions: " + last_error());
  rte_cryptodev_config config{};
  config.socket_id = SOCKET_ID_ANY;
  config.nb_queue_pairs = static_cast<std::uint16_t>(queues);
  rte_cryptodev_qp_conf queue{};
  queue.nb_descriptors = descriptors;
  queue.mp_session = sessions.get();
  bool fine = rte_cryptodev_configure(device.id, &config) == 0;
  for (std::uint16_t q = 0; q < queues; ++q) {
    fine = fine && rte_cryptodev_queue_pair_setup(device.id, q, &queue, SOCKET_ID_ANY) == 0;
  }
  fine = fine && rte_cryptodev_start(device.id) == 0;
  return fine ? Expected<void>() : make_error("DPDK's driver " + device.name + " cannot be configured");
}

Expected<void> RteIpsecPeer::Parts::add_sa(Direction direction, std::uint32_t tunnel) {
  const bool out = direction == Direction::out;
  const ipsec::SaSettings settings = tunnels.sa(direction, tunnel);
  const std::string name = tunnels.algorithm(tunnel).name;
  if (settings.id.protocol == ipsec::Protocol::ah) return make_error("rte_ipsec has no AH");
  Xforms xforms(settings.transform, out);
  std::array<std::uint8_t, outer_headers> outer{};
  std::memset(outer.data(), 2, 12);
  packet::header_at<packet::EthernetHeader>(outer.data(), 0).ethertype = be16(packet::ethertype_ipv4);
  auto& ip = packet::header_at<packet::Ipv4Header>(outer.data(), ethernet);
  ip.version_ihl = 0x45;
  ip.ttl = 64;
  ip.protocol = packet::protocol_esp;
  std::memcpy(&ip.source, settings.source.bytes.data(), 4);
  std::memcpy(&ip.destination, settings.id.destination.bytes.data(), 4);
  rte_ipsec_sa_prm parameters{};
  parameters.flags = out ? RTE_IPSEC_SAFLAG_SQN_ATOM : 0;
  parameters.ipsec_xform.spi = settings.id.spi;
  if (settings.transform.salt.length != 0) {
    std::memcpy(&parameters.ipsec_xform.salt, settings.transform.salt.view().data(), 4);
  }
  parameters.ipsec_xform.direction = out ? RTE_SECURITY_IPSEC_SA_DIR_EGRESS : RTE_SECURITY_IPSEC_SA_DIR_INGRESS;
  parameters.ipsec_xform.proto = RTE_SECURITY_IPSEC_SA_PROTO_ESP;
  parameters.ipsec_xform.mode = RTE_SECURITY_IPSEC_SA_MODE_TUNNEL;
  parameters.ipsec_xform.tunnel.type = RTE_SECURITY_IPSEC_TUNNEL_IPV4;
  parameters.crypto_xform = xforms.parts.data();
  parameters.tun.hdr_len = outer_headers;
  parameters.tun.hdr_l3_off = ethernet;
  parameters.tun.next_proto = packet::protocol_ipv4;
  parameters.tun.hdr = outer.data();
  const int size = rte_ipsec_sa_size(&parameters);
  if (size < 0) return make_error("rte_ipsec has no " + name + ": " + rte_strerror(-size));
  Sa& sa = of(direction)[tunnel];
  sa.memory.reset(rte_zmalloc("rte-ipsec-sa", static_cast<std::size_t>(size), RTE_CACHE_LINE_SIZE));
  if (!sa.memory) return make_error("no memory for rte_ipsec's SAs");
  auto* const memory = static_cast<rte_ipsec_sa*>(sa.memory.get());
  if (const int error = rte_ipsec_sa_init(memory, &parameters, static_cast<std::uint32_t>(size)); error < 0) {
    return make_error("rte_ipsec has no " + name + ": " + rte_strerror(-error));
  }
  sa.session.sa = memory;
  sa.session.type = RTE_SECURITY_ACTION_TYPE_NONE;
  sa.session.crypto.dev_id = device.id;
  sa.session.crypto.ses = static_cast<rte_cryptodev_sym_session*>(
      rte_cryptodev_sym_session_create(device.id, xforms.parts.data(), sessions.get()));
  if (sa.session.crypto.ses == nullptr) return make_error(device.name + " has no " + name + ": " + last_error());
  if (rte_ipsec_session_prepare(&sa.session) != 0) return make_error("rte_ipsec has no session for " + name);
  return {};
}

RteIpsecPeer::RteIpsecPeer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
RteIpsecPeer::~RteIpsecPeer() = default;

std::size_t RteIpsecPeer::cores() const {
  return parts_->cores.size();
}

Expected<std::unique_ptr<RteIpsecPeer>> RteIpsecPeer::make(const IpsecTunnels& tunnels, const SealedPackets& sealed,
                                                           unsigned lanes, const std::string& mix) {
  std::unique_ptr<Parts> parts(new Parts{tunnels, sealed, lanes, {}, {}, {}, {}});
  const std::size_t cores = allowed_cores().size();
  if (auto ok = parts->start_device(cores); !ok) return tl::unexpected(ok.error());
  for (const Direction direction : {Direction::out, Direction::in}) {
    parts->of(direction).resize(tunnels.count());
    for (std::uint32_t tunnel = 0; tunnel < tunnels.count(); ++tunnel) {
      if (auto ok = parts->add_sa(direction, tunnel); !ok) return tl::unexpected(ok.error());
    }
  }
  for (std::uint16_t queue = 0; queue < cores; ++queue) {
    auto core = Core::make(*parts, queue, mix);
    if (!core) return tl::unexpected(core.error());
    parts->cores.push_back(std::move(*core));
  }
  return std::unique_ptr<RteIpsecPeer>(new RteIpsecPeer(std::move(parts)));
}

Expected<Outcome> RteIpsecPeer::measure(Direction direction, double seconds) {
  for (const auto& core : parts_->cores) {
    if (const std::string why = core->look(direction); !why.empty()) return make_error("NOT VERIFIED: " + why);
  }
  std::vector<Outcome> outcomes;
  while (outcomes.size() < repetitions) {
    outcomes.push_back(on_every_core(seconds / repetitions, [&](std::size_t core, const std::atomic<bool>& stop) {
      return parts_->cores[core]->run(direction, stop);
    }));
  }
  for (const auto& core : parts_->cores) {
    if (core->wrong() != 0) return make_error(std::to_string(core->wrong()) + " packets were refused");
  }
  return middle_of(outcomes);
}

}  // namespace sluice::cli::bench
