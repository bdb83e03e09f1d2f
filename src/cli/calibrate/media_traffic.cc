#include "cli/calibrate/media_traffic.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>

#include "control/stream_demands.h"
#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/ip_address.h"

namespace sluice::cli {
namespace {

constexpr std::size_t ethernet = sizeof(packet::EthernetHeader);
constexpr std::size_t ip = sizeof(packet::Ipv4Header), udp = sizeof(packet::UdpHeader), rtp = 12;
constexpr std::uint8_t payload_type = 96;

// Addresses, UDP's header and RTP's, which lie behind each other, and the pseudo-header's other words.
std::uint64_t head_sum(const std::uint8_t* ip_header) {
  constexpr std::size_t addresses = offsetof(packet::Ipv4Header, source);
  const auto& header = *reinterpret_cast<const packet::UdpHeader*>(ip_header + ip);
  return packet::partial_sum(ip_header + addresses, ip - addresses + udp + rtp) + header.length +
         packet::be16(packet::protocol_udp);
}

// Of what lies behind RTP's header in `length` bytes of UDP. A frame that left with a right checksum says it without
// being read: the sums of all parts of it are known but this one's, and a tag's, which is at its end.
std::uint16_t rest_sum(const std::uint8_t* ip_header, std::size_t length, std::size_t there) {
  const std::uint8_t* const datagram = ip_header + ip;
  const auto& header = *reinterpret_cast<const packet::UdpHeader*>(datagram);
  const std::size_t before = packet::be16(header.length);
  const bool tells = ip_header[0] == 0x45 && ip_header[9] == packet::protocol_udp && header.checksum != 0 &&
                     before >= length && ip + before <= there;
  if (!tells) return packet::fold_sum(packet::partial_sum(datagram + udp + rtp, length - udp - rtp));
  const std::uint16_t tail = packet::fold_sum(packet::partial_sum(datagram + length, before - length));
  const std::uint16_t at_its_place = length % 2 == 0 ? tail : __builtin_bswap16(tail);
  return static_cast<std::uint16_t>(~packet::fold_sum(head_sum(ip_header) + at_its_place));
}

bool has_srtp(const control::Config& config) {
  return std::ranges::find(config.engine.chain, "srtp") != config.engine.chain.end();
}

// Its ends, if traffic can be made of it.
struct Ends {
  packet::IpAddress source, destination;
};
std::optional<Ends> ends_of(Settings& settings) {
  const auto source = packet::IpAddress::parse(settings.text("source", ""));
  const auto destination = packet::IpAddress::parse(settings.text("destination", ""));
  const bool protects = settings.text("action", "") == "protect";
  if (!protects || !source || !destination || source->family != 4 || destination->family != 4) return std::nullopt;
  return Ends{*source, *destination};
}

// What would keep frames away from the device, and what goes with that.
constexpr const char* limits[] = {"rate",     "burst",        "packet_bytes", "ingress",
                                  "measured", "measure_time", "rate_margin"};

}  // namespace

std::string without_limits(const std::string& text) {
  std::istringstream lines(text);
  std::string all;
  bool stream = false;
  for (std::string line; std::getline(lines, line);) {
    std::string words = line;
    std::erase_if(words, [](char c) { return c == ' ' || c == '\t'; });
    if (words.starts_with('[')) stream = words.starts_with("[[srtp.stream]]");
    const auto is_limit = [&words](const char* key) { return words.starts_with(std::string(key) + '='); };
    if (!stream || std::ranges::none_of(limits, is_limit)) all += line;
    all += '\n';
  }
  return all;
}

std::size_t MediaTraffic::usable_streams(control::Config& config) {
  if (!has_srtp(config)) return 0;
  auto streams = config.section("srtp").sections("stream");
  return static_cast<std::size_t>(
      std::ranges::count_if(streams, [](Settings& one) { return ends_of(one).has_value(); }));
}

Expected<MediaTraffic> MediaTraffic::make(control::Config& config, unsigned most, unsigned lanes) {
  MediaTraffic traffic;
  if (!has_srtp(config)) return traffic;
  traffic.lanes_.resize(lanes);
  for (control::StreamSection& section : control::stream_demands(config)) {
    Settings& settings = section.settings;
    const auto ends = ends_of(settings);
    if (!ends) continue;
    const unsigned packet = std::min(most, section.demand.largest_packet);
    Stream stream{};
    stream.packet = static_cast<std::uint16_t>(packet);
    auto& header = *reinterpret_cast<packet::Ipv4Header*>(stream.headers.data());
    header.version_ihl = 0x45;
    header.total_length = packet::be16(static_cast<std::uint16_t>(packet - ethernet));
    header.ttl = 64;
    header.protocol = packet::protocol_udp;
    std::memcpy(&header.source, ends->source.bytes.data(), 4);
    std::memcpy(&header.destination, ends->destination.bytes.data(), 4);
    header.checksum = packet::ipv4_header_checksum(header);
    auto& ports = *reinterpret_cast<packet::UdpHeader*>(stream.headers.data() + ip);
    ports.source_port = packet::be16(static_cast<std::uint16_t>(settings.integer("source_port", 0, 0, 65535)));
    ports.destination_port =
        packet::be16(static_cast<std::uint16_t>(settings.integer("destination_port", 0, 0, 65535)));
    ports.length = packet::be16(static_cast<std::uint16_t>(packet - ethernet - ip));
    std::uint8_t* const media = stream.headers.data() + ip + udp;
    media[0] = 0x80;
    media[1] = payload_type;
    const std::uint32_t ssrc = packet::be32(static_cast<std::uint32_t>(traffic.streams_ + 1));
    std::memcpy(media + 8, &ssrc, sizeof ssrc);
    traffic.lanes_[traffic.streams_++ % lanes].streams.push_back(stream);
  }
  if (traffic.streams_ < lanes) {
    return make_error("[srtp] has " + std::to_string(traffic.streams_) +
                      " streams to be protected over IPv4, which calibrate can make traffic of, and there are " +
                      std::to_string(lanes) + " lanes: as many or more are needed");
  }
  return traffic;
}

double MediaTraffic::mean_packet() const {
  double sum = 0;
  for (const Lane& lane : lanes_) {
    double of_lane = 0;
    for (const Stream& stream : lane.streams) of_lane += stream.packet;
    sum += of_lane / static_cast<double>(lane.streams.size());
  }
  return sum / static_cast<double>(lanes_.size());
}

void MediaTraffic::write(std::uint32_t lane, rte_mbuf* frame) {
  Lane& mine = lanes_[lane];
  Stream& stream = mine.streams[mine.next];
  mine.next = mine.next + 1 == mine.streams.size() ? 0 : mine.next + 1;
  std::uint8_t* const headers = rte_pktmbuf_mtod(frame, std::uint8_t*) + ethernet;
  const std::uint16_t rest = rest_sum(headers, stream.packet - ethernet - ip, frame->data_len - ethernet);
  // What was protected has got longer.
  frame->data_len = stream.packet;
  frame->pkt_len = stream.packet;
  const std::uint16_t sequence = packet::be16(stream.sequence++);
  std::memcpy(stream.headers.data() + ip + udp + 2, &sequence, sizeof sequence);
  std::memcpy(headers, stream.headers.data(), stream.headers.size());
  static_assert(ip + udp + rtp == sizeof(Headers));
  const std::uint16_t checksum = packet::finish_sum(head_sum(headers) + rest);
  reinterpret_cast<packet::UdpHeader*>(headers + ip)->checksum = checksum == 0 ? 0xffff : checksum;
}

}  // namespace sluice::cli
