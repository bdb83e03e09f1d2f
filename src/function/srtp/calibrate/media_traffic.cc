#include "function/srtp/calibrate/media_traffic.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>

#include "function/srtp/calibrate/made_streams.h"
#include "function/srtp/described_streams.h"
#include "media/sdp/crypto_attribute.h"
#include "media/srtp/suite.h"
#include "packet/checksum.h"
#include "packet/headers.h"
#include "packet/ip_address.h"

namespace sluice::function {
namespace {

constexpr std::size_t ethernet = sizeof(packet::EthernetHeader),
                      ethertype = offsetof(packet::EthernetHeader, ethertype);
constexpr std::size_t udp = sizeof(packet::UdpHeader), rtp = 12, ports = 4;
constexpr std::uint8_t payload_type = 96, hops = 64;

// Of a family's header.
struct Layout {
  std::size_t header, addresses, addresses_bytes, protocol, hops;
};
constexpr Layout of_v4{sizeof(packet::Ipv4Header), offsetof(packet::Ipv4Header, source), 8,
                       offsetof(packet::Ipv4Header, protocol), offsetof(packet::Ipv4Header, ttl)};
constexpr Layout of_v6{40, 8, 32, 6, 7};
constexpr const Layout& layout_of(bool six) {
  return six ? of_v6 : of_v4;
}

std::uint16_t word_at(const std::uint8_t* bytes) {
  std::uint16_t word = 0;
  std::memcpy(&word, bytes, sizeof word);
  return packet::be16(word);
}
void set_word(std::uint8_t* bytes, std::uint16_t value) {
  const std::uint16_t word = packet::be16(value);
  std::memcpy(bytes, &word, sizeof word);
}

packet::UdpHeader& udp_of(std::uint8_t* ip_header, const Layout& layout) {
  return *reinterpret_cast<packet::UdpHeader*>(ip_header + layout.header);
}
const packet::UdpHeader& udp_of(const std::uint8_t* ip_header, const Layout& layout) {
  return *reinterpret_cast<const packet::UdpHeader*>(ip_header + layout.header);
}

// Addresses, UDP's header and RTP's, which lie behind each other, and the pseudo-header's other words.
std::uint64_t head_sum(const std::uint8_t* ip_header, const Layout& layout) {
  return packet::partial_sum(ip_header + layout.addresses, layout.header - layout.addresses + udp + rtp) +
         udp_of(ip_header, layout).length + packet::be16(packet::protocol_udp);
}

// Whether a frame is UDP of that family without anything between.
bool is_udp(const std::uint8_t* frame, bool six) {
  const std::uint8_t* const ip_header = frame + ethernet;
  return word_at(frame + ethertype) == (six ? packet::ethertype_ipv6 : packet::ethertype_ipv4) &&
         (six ? ip_header[0] >> 4 == 6 : ip_header[0] == 0x45) &&
         ip_header[layout_of(six).protocol] == packet::protocol_udp;
}

// Of what lies behind RTP's header in `length` bytes of UDP. A frame of the same family that left with a right checksum
// says it without being read: the sums of all parts of it are known but this one's, and a tag's, which is at its end.
std::uint16_t rest_sum(const std::uint8_t* frame, bool six, std::size_t length, std::size_t there) {
  const Layout& layout = layout_of(six);
  const std::uint8_t* const ip_header = frame + ethernet;
  const std::uint8_t* const datagram = ip_header + layout.header;
  const packet::UdpHeader& header = udp_of(ip_header, layout);
  const std::size_t before = packet::be16(header.length);
  const bool is_complete =
      is_udp(frame, six) && header.checksum != 0 && before >= length && layout.header + before <= there;
  if (!is_complete) return packet::fold_sum(packet::partial_sum(datagram + udp + rtp, length - udp - rtp));
  const std::uint16_t tail = packet::fold_sum(packet::partial_sum(datagram + length, before - length));
  const std::uint16_t at_its_place = length % 2 == 0 ? tail : __builtin_bswap16(tail);
  return static_cast<std::uint16_t>(~packet::fold_sum(head_sum(ip_header, layout) + at_its_place));
}

// Of a header whose checksum is 0 until then.
void set_checksum(std::uint8_t* ip_header, const Layout& layout, std::uint16_t rest) {
  const std::uint16_t checksum = packet::finish_sum(head_sum(ip_header, layout) + rest);
  udp_of(ip_header, layout).checksum = checksum == 0 ? 0xffff : checksum;
}

struct Ends {
  packet::IpAddress source, destination;
  std::uint16_t source_port, destination_port;
  bool six() const { return source.family == 6; }
};
std::optional<Ends> ends_of(Settings& settings) {
  const auto source = packet::IpAddress::parse(settings.text("source", ""));
  const auto destination = packet::IpAddress::parse(settings.text("destination", ""));
  if (!source || !destination || source->family != destination->family) return std::nullopt;
  const auto port = [&settings](const char* key) {
    return static_cast<std::uint16_t>(settings.integer(key, 0, 0, 65535));
  };
  return Ends{*source, *destination, port("source_port"), port("destination_port")};
}

bool is_twin(const Ends& ends) {
  static const auto four = packet::IpAddress::parse(twin_source_v4), six = packet::IpAddress::parse(twin_source_v6);
  return ends.source_port >= first_twin_port && (ends.source == *four || ends.source == *six);
}

// At their places behind an Ethernet header.
void write_ends(const Ends& ends, std::uint8_t* headers) {
  const Layout& layout = layout_of(ends.six());
  const std::size_t each = layout.addresses_bytes / 2;
  std::memcpy(headers + layout.addresses, ends.source.bytes.data(), each);
  std::memcpy(headers + layout.addresses + each, ends.destination.bytes.data(), each);
  set_word(headers + layout.header, ends.source_port);
  set_word(headers + layout.header + 2, ends.destination_port);
}

void write_headers(const Ends& ends, std::size_t packet, std::uint32_t ssrc, std::uint8_t* headers) {
  const Layout& layout = layout_of(ends.six());
  write_ends(ends, headers);
  if (ends.six()) {
    headers[0] = 0x60;
    set_word(headers + 4, static_cast<std::uint16_t>(packet - ethernet - layout.header));
  } else {
    headers[0] = 0x45;
    set_word(headers + 2, static_cast<std::uint16_t>(packet - ethernet));
  }
  headers[layout.protocol] = packet::protocol_udp;
  headers[layout.hops] = hops;
  if (!ends.six()) {
    auto& header = *reinterpret_cast<packet::Ipv4Header*>(headers);
    header.checksum = packet::ipv4_header_checksum(header);
  }
  set_word(headers + layout.header + ports, static_cast<std::uint16_t>(packet - ethernet - layout.header));
  std::uint8_t* const media = headers + layout.header + udp;
  media[0] = 0x80;
  media[1] = payload_type;
  const std::uint32_t network = packet::be32(ssrc);
  std::memcpy(media + 8, &network, sizeof network);
}

// What its suite adds to a packet; an MKI is left out.
std::uint16_t tag_of(Settings& settings) {
  std::istringstream words{std::string(media::sdp::crypto_value(settings.text("crypto", "")))};
  std::string tag, name;
  words >> tag >> name;
  const auto suite = srtp::suite_named(name);
  return static_cast<std::uint16_t>(suite ? srtp::facts(*suite).rtp_tag_length : 0);
}

std::string kind_of(bool protects, bool six) {
  return std::string(protects ? "protect IPv" : "unprotect IPv") + (six ? "6" : "4");
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

Expected<std::unique_ptr<engine::Traffic>> MediaTraffic::make(engine::SectionView& view, unsigned most,
                                                              unsigned lanes) {
  auto made = std::make_unique<MediaTraffic>();
  MediaTraffic& traffic = *made;
  traffic.lanes_.resize(lanes);
  std::vector<engine::StreamSource::Stream> sections = described_streams(view);
  std::vector<Ends> unprotecting;
  for (engine::StreamSource::Stream& section : sections) {
    const auto ends = ends_of(section.settings);
    if (ends && section.settings.text("action", "") == "unprotect") unprotecting.push_back(*ends);
  }
  for (engine::StreamSource::Stream& section : sections) {
    const auto ends = ends_of(section.settings);
    if (!ends || section.settings.text("action", "") != "protect") continue;
    Stream stream{};
    stream.six = ends->six();
    stream.packet = static_cast<std::uint16_t>(std::min(most, section.demand.largest_packet));
    stream.tag = tag_of(section.settings);
    write_headers(*ends, stream.packet, static_cast<std::uint32_t>(traffic.streams_ + 1), stream.headers.data());
    const auto lane = static_cast<std::uint32_t>(traffic.streams_++ % lanes);
    const std::size_t number = ends->source_port - std::min(ends->source_port, first_twin_port);
    if (is_twin(*ends) && number < unprotecting.size()) {
      stream.is_twin = true;
      write_ends(unprotecting[number], stream.opened.data());
      traffic.twins_.resize(std::max(traffic.twins_.size(), number + 1), Place{lanes, 0});
      traffic.twins_[number] = {lane, static_cast<std::uint32_t>(traffic.lanes_[lane].streams.size())};
      traffic.kinds_.insert(kind_of(false, stream.six));
    } else {
      traffic.kinds_.insert(kind_of(true, stream.six));
    }
    traffic.lanes_[lane].streams.push_back(stream);
  }
  if (traffic.streams_ < lanes) {
    return make_error("[srtp] has " + std::to_string(traffic.streams_) +
                      " streams that protect, which calibrate can make traffic of, and there are " +
                      std::to_string(lanes) + " lanes: as many or more are needed");
  }
  return made;
}

double MediaTraffic::mean_packet() const {
  double sum = 0;
  for (const Lane& lane : lanes_) {
    double of_lane = 0;
    std::size_t packets = 0;
    for (const Stream& stream : lane.streams) {
      of_lane += stream.packet + (stream.is_twin ? stream.packet + stream.tag : 0);
      packets += stream.is_twin ? 2 : 1;
    }
    sum += of_lane / static_cast<double>(packets);
  }
  return sum / static_cast<double>(lanes_.size());
}

// Null: the frame holds nothing that a twin of this lane has protected.
MediaTraffic::Stream* MediaTraffic::sealed_by(std::uint32_t lane, const std::uint8_t* frame) {
  if (twins_.empty()) return nullptr;
  for (const bool six : {false, true}) {
    if (!is_udp(frame, six)) continue;
    const Layout& layout = layout_of(six);
    const std::uint8_t* const ip_header = frame + ethernet;
    const std::size_t number = std::size_t{word_at(ip_header + layout.header)} - first_twin_port;
    if (number >= twins_.size() || twins_[number].lane != lane) return nullptr;
    Stream& twin = lanes_[lane].streams[twins_[number].index];
    const bool is_its =
        twin.six == six && std::memcmp(ip_header + layout.addresses, twin.headers.data() + layout.addresses,
                                       layout.addresses_bytes + ports) == 0;
    const std::size_t length = packet::be16(udp_of(ip_header, layout).length);
    return is_its && length > twin.packet - ethernet - layout.header ? &twin : nullptr;
  }
  return nullptr;
}

void MediaTraffic::write(std::uint32_t lane, rte_mbuf* frame) {
  auto* const bytes = rte_pktmbuf_mtod(frame, std::uint8_t*);
  std::uint8_t* const ip_header = bytes + ethernet;
  if (const Stream* const twin = sealed_by(lane, bytes)) {
    const Layout& layout = layout_of(twin->six);
    packet::UdpHeader& header = udp_of(ip_header, layout);
    const std::uint16_t rest = rest_sum(bytes, twin->six, packet::be16(header.length), frame->data_len - ethernet);
    std::memcpy(ip_header + layout.addresses, twin->opened.data() + layout.addresses, layout.addresses_bytes + ports);
    ip_header[layout.hops] = hops;
    if (!twin->six) {
      auto& ip = *reinterpret_cast<packet::Ipv4Header*>(ip_header);
      ip.checksum = 0;
      ip.checksum = packet::ipv4_header_checksum(ip);
    }
    header.checksum = 0;
    set_checksum(ip_header, layout, rest);
    return;
  }
  Lane& mine = lanes_[lane];
  Stream& stream = mine.streams[mine.next];
  mine.next = mine.next + 1 == mine.streams.size() ? 0 : mine.next + 1;
  const Layout& layout = layout_of(stream.six);
  const std::uint16_t rest =
      rest_sum(bytes, stream.six, stream.packet - ethernet - layout.header, frame->data_len - ethernet);
  // What was protected has got longer.
  frame->data_len = stream.packet;
  frame->pkt_len = stream.packet;
  set_word(bytes + ethertype, stream.six ? packet::ethertype_ipv6 : packet::ethertype_ipv4);
  set_word(stream.headers.data() + layout.header + udp + 2, stream.sequence++);
  std::memcpy(ip_header, stream.headers.data(), layout.header + udp + rtp);
  set_checksum(ip_header, layout, rest);
}

}  // namespace sluice::function
