#include "port/replay_conversations.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <utility>

#include "packet/builder.h"
#include "packet/headers.h"
#include "port/replay_codings.h"
#include "port/replay_request.h"

namespace sluice::port {
namespace {

using packet::Bytes;
using packet::tcp_ack;
using packet::tcp_fin;
using packet::tcp_rst;
using packet::tcp_syn;

constexpr unsigned frames_each = 64;         // of those under way at once, one after another
constexpr unsigned frames_each_reset = 256;  // of one that is reset
constexpr unsigned least_frames = 12;
constexpr unsigned more_frames = 32;
constexpr unsigned planted_one_in = 32;
constexpr std::uint32_t small_frame = 79;  // of a mix: what an acknowledgement stands for
constexpr std::size_t least_payload = 32;  // of a segment that something has to fit into
constexpr std::uint16_t stream_port = 4000, http_port = 80;

enum Side : unsigned { client, server };

// What all conversations of a queue share.
struct Shared {
  explicit Shared(const ConversationSource& of) : source(of), random(of.seed) {}

  unsigned headers() const { return 14 + (source.family == 4 ? 20 : 40) + 20; }
  // Of the next segment with data.
  std::size_t payload_size() {
    std::uint32_t size = source.mix->next();
    for (; size <= small_frame && small_due != 0; --small_due) size = source.mix->next();
    return size > headers() ? size - headers() : 1;
  }

  const ConversationSource& source;
  std::mt19937_64 random;
  std::uint64_t small_due = 0;  // frames that were made instead of small ones of the mix
  unsigned number = 0;          // of the next conversation
};

class Conversation {
 public:
  Conversation(Shared& shared, unsigned frames, std::vector<Bytes>& out)
      : shared_(shared),
        out_(out),
        left_(frames),
        planted_(shared.number % planted_one_in == 0),
        address_{shared.source.address(), shared.source.address()},
        sequence_{static_cast<std::uint32_t>(shared.random()), static_cast<std::uint32_t>(shared.random())} {
    port_[client] = static_cast<std::uint16_t>(1024 + shared.number++ % 60000);
    port_[server] = shared.source.http ? http_port : stream_port;
  }

  void write() {
    send(client, tcp_syn);
    send(server, tcp_syn | tcp_ack);
    send(client, tcp_ack);
    if (shared_.source.resets) return write_reset();
    left_ -= 3;  // for the end
    shared_.source.http ? write_http() : write_stream();
    left_ = 3;
    send(client, tcp_fin | tcp_ack);
    send(server, tcp_fin | tcp_ack);
    send(client, tcp_ack);
  }

 private:
  void send(Side from, std::uint8_t flags, const Bytes& payload = {}) {
    const Side to = from == client ? server : client;
    packet::PacketBuilder builder;
    builder.eth("02:00:00:00:00:01", shared_.source.own_mac);
    if (shared_.source.family == 4) {
      builder.ipv4(address_[from], address_[to]);
    } else {
      builder.ipv6(address_[from], address_[to]);
    }
    const bool acknowledges = (flags & tcp_ack) != 0;
    builder.tcp(port_[from], port_[to]).tcp_flags(flags);
    builder.tcp_sequence(sequence_[from], acknowledges ? sequence_[to] : 0);
    builder.ttl(255).payload(payload).pad_to(packet::FrameMix::smallest_frame);
    out_.push_back(builder.build());
    sequence_[from] += static_cast<std::uint32_t>(payload.size()) + ((flags & (tcp_syn | tcp_fin)) != 0 ? 1 : 0);
    if (acknowledges) waiting_[to] = 0;
    waiting_[from] += payload.empty() ? 0 : 1;
    shared_.small_due += payload.empty() ? 1 : 0;
    --left_;
  }

  // With the other side's acknowledgement, where two segments have none yet.
  void send_data(Side from, const Bytes& payload) {
    send(from, tcp_ack, payload);
    if (waiting_[from] == 2 && left_ != 0) send(from == client ? server : client, tcp_ack);
  }

  void write_stream() {
    bool plants = planted_;
    for (Side side = client; left_ != 0; side = side == client ? server : client) {
      const std::uint64_t segments = plants ? 2 : 1 + shared_.random() % (side == client ? 2 : 8);
      for (std::uint64_t s = 0; s < segments && left_ != 0; ++s) {
        Bytes payload(std::max(shared_.payload_size(), plants ? least_payload : 1));
        shared_.source.fill(payload);
        if (plants && s == 0) std::ranges::copy(planted_text.first, payload.end() - planted_text.first.size());
        if (plants && s == 1) std::ranges::copy(planted_text.second, payload.begin());
        send_data(side, payload);
      }
      plants = false;
    }
  }

  void write_reset() {
    const std::uint32_t missing = sequence_[client]++;
    while (left_ != 1) {
      Bytes payload(shared_.payload_size());
      shared_.source.fill(payload);
      send(client, tcp_ack, payload);
    }
    sequence_[client] = missing;
    send(client, tcp_rst | tcp_ack);
  }

  void write_http() {
    bool plants = planted_;
    while (left_ >= 3) {
      request(std::exchange(plants, false));
      shared_.source.codings ? coded_response() : response();
    }
    while (left_ != 0) send(client, tcp_ack);  // its window has grown
  }

  void request(bool plants) {
    if (shared_.source.contents != nullptr && !plants) {
      const std::string text = attack_request(*shared_.source.contents, shared_.random);
      return send(client, tcp_ack, Bytes(text.begin(), text.end()));
    }
    const std::string path = plants ? planted_path.whole() : "/articles/" + word() + "/" + word() + ".html?page=1";
    const std::string text = "GET " + path + " HTTP/1.1\r\nHost: www." + word() +
                             ".example\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 "
                             "Firefox/128.0\r\nAccept: text/html,application/xhtml+xml,*/*;q=0.8\r\nAccept-Language: "
                             "en-US,en;q=0.5\r\nAccept-Encoding: gzip, deflate\r\nCookie: session=" +
                             word() + word() + "\r\nConnection: keep-alive\r\n\r\n";
    const std::size_t cut = plants ? text.find(planted_path.second) : text.size();
    send(client, tcp_ack, Bytes(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(cut)));
    if (plants) send(client, tcp_ack, Bytes(text.begin() + static_cast<std::ptrdiff_t>(cut), text.end()));
  }

  static std::string response_headers(bool text, std::size_t body) {
    return "HTTP/1.1 200 OK\r\nServer: nginx\r\nDate: Sun, 22 Nov 2026 12:00:00 GMT\r\nContent-Type: " +
           std::string(text ? "text/html; charset=utf-8" : "image/png") +
           "\r\nContent-Length: " + std::to_string(body) + "\r\nCache-Control: max-age=600\r\n\r\n";
  }

  void response() {
    // With an acknowledgement for every two of them, they fit into what is left.
    const std::uint64_t most = std::max(1U, left_ * 2 / 3);
    const std::uint64_t segments = std::min(1 + shared_.random() % 8, most);
    const bool text = shared_.source.text;
    const std::size_t head = response_headers(text, 0).size() + least_payload;
    std::vector<std::size_t> sizes;
    std::size_t sum = 0;
    for (std::uint64_t s = 0; s < segments; ++s) {
      sizes.push_back(std::max(shared_.payload_size(), s == 0 ? head : least_payload));
      sum += sizes.back();
    }
    const std::size_t digits = std::to_string(sum).size();
    const std::size_t body = sum - response_headers(text, 0).size() - digits;
    const std::string headers = response_headers(text, body);
    Bytes message(headers.begin(), headers.end());
    message.resize(headers.size() + body);
    shared_.source.fill(std::span(message).subspan(headers.size()));
    for (std::size_t s = 0, at = 0; s < sizes.size(); at += sizes[s++]) {
      const std::size_t end = std::min(at + sizes[s], message.size());
      send_data(server, Bytes(message.begin() + static_cast<std::ptrdiff_t>(at),
                              message.begin() + static_cast<std::ptrdiff_t>(end)));
    }
  }

  void coded_response() {
    const std::vector<std::string>& bodies = coded_bodies();
    const std::string& body = bodies[shared_.random() % bodies.size()];
    const std::string text = "HTTP/1.1 200 OK\r\nContent-Encoding: " + std::string(coded_body_encoding) +
                             "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    send_data(server, Bytes(text.begin(), text.end()));
  }

  std::string word() {
    std::string letters;
    for (std::uint64_t bits = shared_.random(); letters.size() < 8; bits >>= 8) {
      letters += static_cast<char>('a' + bits % 26);
    }
    return letters;
  }

  Shared& shared_;
  std::vector<Bytes>& out_;
  unsigned left_;  // frames
  const bool planted_;
  const std::array<packet::IpAddress, 2> address_;
  std::array<std::uint16_t, 2> port_{};
  std::array<std::uint32_t, 2> sequence_;
  std::array<unsigned, 2> waiting_{};  // segments of the side that are not acknowledged
};

// Conversations one after another, of so many frames together.
std::vector<Bytes> row_of(Shared& shared, unsigned frames) {
  std::vector<Bytes> row;
  if (shared.source.resets) {
    Conversation(shared, frames, row).write();
    return row;
  }
  while (frames != 0) {
    unsigned count = least_frames + static_cast<unsigned>(shared.random() % more_frames);
    if (frames < count + least_frames) count = frames;
    Conversation(shared, count, row).write();
    frames -= count;
  }
  return row;
}

}  // namespace

std::vector<std::vector<std::uint8_t>> make_conversations(const ConversationSource& source) {
  Shared shared(source);
  const unsigned rows = std::max(1U, source.frames / (source.resets ? frames_each_reset : frames_each));
  std::vector<std::vector<Bytes>> row(rows);
  std::vector<unsigned> turns;
  for (unsigned r = 0; r < rows; ++r) {
    const unsigned frames = source.frames / rows + (r < source.frames % rows ? 1 : 0);
    row[r] = row_of(shared, frames);
    turns.insert(turns.end(), frames - (source.resets ? 1 : 0), r);
  }
  std::shuffle(turns.begin(), turns.end(), shared.random);
  for (unsigned r = 0; source.resets && r < rows; ++r) turns.push_back(r);
  std::vector<std::size_t> next(rows);
  std::vector<Bytes> frames;
  frames.reserve(source.frames);
  for (const unsigned r : turns) frames.push_back(std::move(row[r][next[r]++]));
  return frames;
}

}  // namespace sluice::port
