#include "bench/media_source.h"

#include <rte_mbuf.h>
#include <rte_prefetch.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <random>

#include "bench/libsrtp_opener.h"
#include "function/srtp/media_frame.h"
#include "packet/builder.h"
#include "packet/checksum.h"

namespace sluice::cli::bench {
namespace {

using packet::be16;

constexpr std::uint32_t ip_at = sizeof(packet::EthernetHeader), udp_at = ip_at + sizeof(packet::Ipv4Header);
constexpr std::uint32_t rtp_at = udp_at + sizeof(packet::UdpHeader), rtp_bytes = 12;
constexpr std::uint16_t source_port = 5004, clear_port = 6000, sealed_port = 6002;

// Of a lane, so many streams to one that libsrtp opens: it takes some microseconds a packet, and one at a time.
constexpr std::uint32_t streams_to_a_sample = 8;

// Of what is unprotected: a frame that was refused comes a round later.
constexpr std::uint32_t window = 2048;

// Random, and no secret: of so many bytes in base64.
std::string made_up_key(std::size_t bytes, std::uint64_t seed) {
  static constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::mt19937_64 random(seed);
  std::string text(bytes / 3 * 4, ' ');
  for (char& digit : text) digit = digits[random() % 64];
  // What is left of the bytes is zeros.
  return text + (bytes % 3 == 0 ? "" : bytes % 3 == 1 ? "AA==" : "AAA=");
}

packet::IpAddress source_of(std::uint32_t stream) {
  const std::uint8_t bytes[] = {10, static_cast<std::uint8_t>(stream >> 16), static_cast<std::uint8_t>(stream >> 8),
                                static_cast<std::uint8_t>(stream)};
  return packet::IpAddress::from_bytes(4, bytes);
}

packet::IpAddress destination_of() {
  constexpr std::uint8_t bytes[] = {198, 18, 0, 2};
  return packet::IpAddress::from_bytes(4, bytes);
}

packet::UdpHeader& udp_of(std::uint8_t* frame) {
  return packet::header_at<packet::UdpHeader>(frame, udp_at);
}

// With a covered word that changes, unless the checksum is absent.
void change(packet::UdpHeader& udp, std::uint16_t before, std::uint16_t after) {
  if (udp.checksum == 0) return;
  udp.checksum = packet::update_checksum(udp.checksum, before, after);
  if (udp.checksum == 0) udp.checksum = 0xffff;
}

void set_port(std::uint8_t* frame, std::uint16_t port) {
  packet::UdpHeader& udp = udp_of(frame);
  change(udp, udp.destination_port, be16(port));
  udp.destination_port = be16(port);
}

// Bytes [first, first + count) of the UDP payload become no part of it.
void take_out(std::uint8_t* frame, std::uint32_t first, std::uint32_t count) {
  packet::UdpHeader& udp = udp_of(frame);
  std::uint8_t bytes[32] = {};
  const std::uint32_t odd = first % 2;  // the first is the second half of a word
  std::memcpy(bytes + odd, frame + rtp_at + first, count);
  change(udp, packet::fold_sum(packet::partial_sum(bytes, odd + count)), 0);
}

}  // namespace

std::uint32_t RtpStreams::keys() const {
  return std::max(streams, lanes) * (both ? 2 : 1);
}

media::sdp::CryptoAttribute RtpStreams::crypto(std::uint32_t stream, std::uint64_t generation) const {
  const srtp::SuiteFacts& facts = srtp::facts(suite);
  const std::string key = made_up_key(facts.key_and_salt_length(), stream + (generation << 32));
  return media::sdp::parse_crypto(fmt::format("1 {} inline:{}", facts.name, key)).value();
}

std::vector<function::MediaStreamSettings> RtpStreams::settings() const {
  std::vector<function::MediaStreamSettings> all;
  const std::uint32_t count = std::max(streams, lanes);
  all.reserve(keys());
  for (std::uint32_t stream = 0; stream < count; ++stream) {
    function::MediaStreamSettings one;
    one.name = "stream " + std::to_string(stream);
    one.key = function::media_key(source_of(stream), source_port, destination_of(), clear_port);
    one.carries = function::Carries::rtp;
    one.max_ssrcs = 1;
    one.crypto = crypto(stream, 0);
    all.push_back(one);
    if (!both) continue;
    one.direction = srtp::Direction::unprotect;
    one.key = function::media_key(source_of(stream), source_port, destination_of(), sealed_port);
    one.crypto.window = window;
    all.push_back(std::move(one));
  }
  return all;
}

struct alignas(64) MediaSource::Lane {
  std::vector<std::uint16_t> length;    // of each frame in clear; 0: it has not come yet
  std::vector<std::uint16_t> sequence;  // of each stream's next packet
  std::uint32_t stream_of(std::uint32_t index) const { return index % static_cast<std::uint32_t>(sequence.size()); }
};

// What went in, by lane and frame, and the streams of the other direction.
struct MediaSource::Checker {
  struct Lane {
    explicit Lane(crypto::Cpu of_lane) : cpu(std::move(of_lane)) {}
    crypto::Cpu cpu;
    std::vector<std::vector<std::uint8_t>> clear;
    std::vector<std::uint8_t> copy, sample;
    const rte_mempool* pool = nullptr;
  };
  explicit Checker(crypto::KeyTable table) : keys(std::move(table)) {}

  crypto::KeyTable keys;
  std::vector<std::shared_ptr<function::MediaStream>> streams;
  std::vector<media::MasterKey> master_keys;  // of these
  std::unique_ptr<LibsrtpOpener> libsrtp;     // null: `why_no_libsrtp`
  std::string why_no_libsrtp;
  std::vector<std::unique_ptr<Lane>> lanes;
  mutable std::mutex mutex;
  std::string wrong;

  void fail(const std::string& why) {
    const std::lock_guard lock(mutex);
    if (wrong.empty()) wrong = why;
  }
  std::string look(Lane& lane, std::uint32_t stream, const rte_mbuf* frame, bool& was_opened) const;
  std::string look_by_libsrtp(Lane& lane, std::uint32_t stream, const rte_mbuf* frame) const;
};

MediaSource::MediaSource(const RtpStreams& streams, bool frames_return)
    : streams_(streams), frames_return_(frames_return) {
  const std::uint32_t count = std::max(streams.streams, streams.lanes);
  for (std::uint32_t lane = 0; lane < streams.lanes; ++lane) {
    lanes_.push_back(std::make_unique<Lane>());
    lanes_.back()->length.resize(streams.frames);
    lanes_.back()->sequence.resize((count - lane + streams.lanes - 1) / streams.lanes);
  }
}

MediaSource::~MediaSource() = default;

void MediaSource::admit(engine::Batch& batch, engine::Span span) {
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    rte_prefetch0(batch.data(i) + batch.length[i] - streams_.overhead());
  }
  for (std::uint32_t i = span.first; i < span.end(); ++i) {
    renew(*lanes_[batch.lane], batch.lane, batch.mbuf[i]);
    const std::uint16_t length = rte_pktmbuf_data_len(batch.mbuf[i]);
    batch.bytes += length;
    batch.bytes -= batch.length[i];
    batch.max_length = std::max<std::uint32_t>(batch.max_length, length);
    batch.length[i] = length;
  }
}

void MediaSource::renew(Lane& lane, std::uint32_t lane_index, rte_mbuf* mbuf) {
  const std::uint32_t index = port::ReplayPort::frame_index(mbuf);
  auto* const frame = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
  const std::uint32_t clear = lane.length[index], length = rte_pktmbuf_data_len(mbuf);
  const bool came_clear = udp_of(frame).destination_port == be16(clear_port);
  if (clear != 0 && length == clear + streams_.overhead() && came_clear) [[likely]] {
    if (streams_.both) return set_port(frame, sealed_port);
    cut_tag(frame, clear);
    mbuf->data_len = static_cast<std::uint16_t>(clear);
    mbuf->pkt_len = clear;
    next_packet(lane, index, frame);
  } else if (clear != 0 && length == clear && (!came_clear || frames_return_)) {
    set_port(frame, clear_port);
    next_packet(lane, index, frame);
  } else {
    begin(lane, lane_index, index, mbuf);
  }
  if (checker_ != nullptr) {
    checker_->lanes[lane_index]->clear[index].assign(frame, frame + rte_pktmbuf_data_len(mbuf));
  }
}

// All headers, of a frame that comes for the first time, or that was dropped on its way and may be in any state.
void MediaSource::begin(Lane& lane, std::uint32_t lane_index, std::uint32_t index, rte_mbuf* mbuf) {
  auto* const frame = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
  if (lane.length[index] == 0) {
    const std::uint32_t length = std::max<std::uint32_t>(rte_pktmbuf_data_len(mbuf), rtp_at + rtp_bytes);
    lane.length[index] = static_cast<std::uint16_t>(length);
  }
  const std::uint16_t length = lane.length[index];
  mbuf->data_len = length;
  mbuf->pkt_len = length;
  const std::uint32_t stream = lane_index + streams_.lanes * lane.stream_of(index);
  const packet::IpAddress source = source_of(stream), destination = destination_of();
  packet::header_at<packet::EthernetHeader>(frame, 0).ethertype = be16(packet::ethertype_ipv4);
  auto& ip = packet::header_at<packet::Ipv4Header>(frame, ip_at);
  ip = {.version_ihl = 0x45,
        .tos = 0,
        .total_length = be16(static_cast<std::uint16_t>(length - ip_at)),
        .id = 0,
        .fragment = 0,
        .ttl = 64,
        .protocol = packet::protocol_udp,
        .checksum = 0,
        .source = 0,
        .destination = 0};
  std::memcpy(&ip.source, source.bytes.data(), sizeof ip.source);
  std::memcpy(&ip.destination, destination.bytes.data(), sizeof ip.destination);
  ip.checksum = packet::ipv4_header_checksum(ip);
  packet::UdpHeader& udp = udp_of(frame);
  udp = {.source_port = be16(source_port), .destination_port = be16(clear_port), .length = 0, .checksum = 0};
  std::uint8_t* const rtp = frame + rtp_at;
  std::memset(rtp, 0, rtp_bytes);
  rtp[0] = 0x80;
  rtp[1] = 96;
  const std::uint32_t ssrc = packet::be32(stream);
  std::memcpy(rtp + 8, &ssrc, sizeof ssrc);
  next_packet(lane, index, frame);
  udp.checksum = streams_.checksums ? 0xffff : 0;  // that it is to have one
  function::set_udp_payload_length(frame, udp_at, length - rtp_at);
}

// The packet of `length` bytes in a frame that is longer by the tag.
void MediaSource::cut_tag(std::uint8_t* frame, std::uint32_t length) const {
  take_out(frame, length - rtp_at, streams_.overhead());
  packet::UdpHeader& udp = udp_of(frame);
  const std::uint16_t udp_length = be16(static_cast<std::uint16_t>(length - udp_at));
  change(udp, udp.length, udp_length);  // in the header
  change(udp, udp.length, udp_length);  // in the pseudo-header
  udp.length = udp_length;
  auto& ip = packet::header_at<packet::Ipv4Header>(frame, ip_at);
  const std::uint16_t total = be16(static_cast<std::uint16_t>(length - ip_at));
  ip.checksum = packet::update_checksum(ip.checksum, ip.total_length, total);
  ip.total_length = total;
}

void MediaSource::next_packet(Lane& lane, std::uint32_t index, std::uint8_t* frame) const {
  std::uint16_t before;
  std::memcpy(&before, frame + rtp_at + 2, sizeof before);
  const std::uint16_t after = be16(lane.sequence[lane.stream_of(index)]++);
  change(udp_of(frame), before, after);
  std::memcpy(frame + rtp_at + 2, &after, sizeof after);
}

// -- checking

Expected<void> MediaSource::check(port::ReplayPort& port) {
  auto keys = crypto::KeyTable::make(streams_.keys(), true);
  if (!keys) return tl::unexpected(keys.error());
  checker_ = std::make_unique<Checker>(std::move(*keys));
  for (function::MediaStreamSettings& settings : streams_.settings()) {
    if (settings.direction == srtp::Direction::unprotect) continue;
    checker_->master_keys.push_back(settings.crypto.keys.front().key);
    settings.direction = srtp::Direction::unprotect;
    auto stream = function::MediaStream::make(std::move(settings), checker_->keys);
    if (!stream) return tl::unexpected(stream.error());
    checker_->streams.push_back(std::move(*stream));
  }
  if (auto libsrtp = LibsrtpOpener::make(streams_.suite)) {
    checker_->libsrtp = std::move(*libsrtp);
  } else {
    checker_->why_no_libsrtp = libsrtp.error().message;
  }
  for (std::uint16_t lane = 0; lane < streams_.lanes; ++lane) {
    auto cpu = crypto::Cpu::make();
    if (!cpu) return tl::unexpected(cpu.error());
    checker_->lanes.push_back(std::make_unique<Checker::Lane>(std::move(*cpu)));
    checker_->lanes.back()->clear.resize(streams_.frames);
    checker_->lanes.back()->pool = port.pool(lane);
  }
  port.observe([this](const rte_mbuf* frame) {
    const auto of_pool = [frame](const auto& lane) { return lane->pool == frame->pool; };
    const auto at = std::ranges::find_if(checker_->lanes, of_pool) - checker_->lanes.begin();
    const std::uint32_t own = lanes_[static_cast<std::size_t>(at)]->stream_of(port::ReplayPort::frame_index(frame));
    bool was_opened = false;
    Checker::Lane& lane = *checker_->lanes[static_cast<std::size_t>(at)];
    const std::uint32_t stream = static_cast<std::uint32_t>(at) + streams_.lanes * own;
    std::string why = checker_->look(lane, stream, frame, was_opened);
    if (why.empty() && !was_opened && checker_->libsrtp != nullptr && own % streams_to_a_sample == 0) {
      why = checker_->look_by_libsrtp(lane, stream, frame);
      opened_by_libsrtp.fetch_add(1, std::memory_order_relaxed);
    }
    if (!why.empty()) checker_->fail(why);
    checked.fetch_add(1, std::memory_order_relaxed);
    opened.fetch_add(was_opened ? 1 : 0, std::memory_order_relaxed);
  });
  return {};
}

std::string MediaSource::why_no_libsrtp() const {
  return checker_ == nullptr ? "" : checker_->why_no_libsrtp;
}

std::string MediaSource::wrong() const {
  if (checker_ == nullptr) return {};
  const std::lock_guard lock(checker_->mutex);
  return checker_->wrong;
}

// Empty: the frame is right.
std::string MediaSource::Checker::look(Lane& lane, std::uint32_t stream, const rte_mbuf* mbuf, bool& was_opened) const {
  const auto* const sent = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
  lane.copy.assign(sent, sent + rte_pktmbuf_data_len(mbuf));
  lane.copy.resize(lane.copy.size() + 64);  // what opening borrows behind
  std::uint8_t* const frame = lane.copy.data();
  const std::uint32_t length = rte_pktmbuf_data_len(mbuf);
  std::vector<std::uint8_t>& clear = lane.clear[port::ReplayPort::frame_index(mbuf)];
  const auto name = [&](const char* what) { return fmt::format("stream {}: {}", stream, what); };
  function::MediaFrame media;
  function::read_media_frame(frame, length, media);
  if (media.kind != function::MediaFrameKind::plain || media.udp_offset != udp_at) return name("no plain UDP left");
  if (packet::header_at<packet::Ipv4Header>(frame, ip_at).checksum !=
      packet::ipv4_header_checksum(packet::header_at<packet::Ipv4Header>(frame, ip_at))) {
    return name("a wrong IPv4 checksum left");
  }
  if (!function::udp_checksum_ok(frame, media)) return name("a wrong UDP checksum left");
  std::uint32_t payload = function::udp_payload_length(frame, media);
  was_opened = udp_of(frame).destination_port == be16(sealed_port);
  if (!was_opened) {
    bool rtcp = false;
    function::MediaLeg* const leg = streams[stream]->leg_for({frame + rtp_at, payload}, rtcp);
    srtp::Channel* const channel = leg == nullptr ? nullptr : &*leg->channel;
    crypto::Job job;
    srtp::Pending pending;
    const srtp::Packet packet{frame + rtp_at, payload, payload};
    if (channel == nullptr || channel->prepare(packet, job, pending) != srtp::Status::ok) {
      return name("what left is no SRTP that could be opened");
    }
    crypto::Verdict verdict{};
    lane.cpu.run(keys, {&job, 1}, {&verdict, 1});
    if (channel->finish(pending, verdict) != srtp::Status::ok) return name("the tag that left is not right");
    if (std::memcmp(sent + rtp_at + rtp_bytes, frame + rtp_at + rtp_bytes, pending.length - rtp_bytes) == 0 &&
        pending.length > rtp_bytes + 8) {
      return name("it left in clear");
    }
    payload = pending.length;
  }
  // As it went in, where it was protected; else before that.
  const bool same = rtp_at + payload == clear.size() &&
                    std::memcmp(frame + rtp_at, clear.data() + rtp_at, payload) == 0 &&
                    std::memcmp(frame, clear.data(), ip_at) == 0;
  return same ? std::string() : name("opened, it is not what went in");
}

// Empty: what left protected, and was found right, is so for libsrtp, too.
std::string MediaSource::Checker::look_by_libsrtp(Lane& lane, std::uint32_t stream, const rte_mbuf* mbuf) const {
  const auto* const sent = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
  lane.sample.assign(sent + rtp_at, sent + rte_pktmbuf_data_len(mbuf));
  const auto length = libsrtp->open(stream, master_keys[stream], lane.sample);
  if (!length) return fmt::format("stream {}: {}", stream, length.error().message);
  const std::vector<std::uint8_t>& clear = lane.clear[port::ReplayPort::frame_index(mbuf)];
  const bool same =
      rtp_at + *length == clear.size() && std::memcmp(lane.sample.data(), clear.data() + rtp_at, *length) == 0;
  return same ? std::string() : fmt::format("stream {}: opened by libsrtp, it is not what went in", stream);
}

}  // namespace sluice::cli::bench
