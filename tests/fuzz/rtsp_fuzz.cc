// Any bytes from a client and a server through the proxy. It stays inside them and its bounds, also of what waits to be
// read, and every stream that is admitted ends once. No clear description and no key but the proxy's reaches the
// client, and no key of the client's the server. What both get is the same, byte for byte, however the bytes are cut.
//
// Input: a byte that says how the second run is cut, by its highest bit that the proxy is explicit, and by the next one
// that nobody sends what the proxy does not want. Then come parts: '<' or '>' (to the client, to the server) and two
// bytes of length before the bytes. Instead of them 't': as many seconds go by; 'c' or 's': the client or the server
// reads.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "media/mikey/message.h"
#include "media/rtsp/proxy.h"
#include "media/sdp/crypto_attribute.h"
#include "media/text.h"
#include "require.h"

using namespace sluice;
using namespace sluice::media;

namespace {

struct Part {
  char kind;
  std::string_view bytes;
  std::size_t length;
};

// Keys that differ, and are the same in each run.
struct Keys {
  Expected<void> make(std::span<std::uint8_t> bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      bytes[i] = i < 4 ? static_cast<std::uint8_t>(made.size() >> (8 * i)) : std::uint8_t{7};
    }
    made.emplace_back(bytes);
    return {};
  }
  bool has(const MasterKey& key) const { return std::find(made.begin(), made.end(), key) != made.end(); }

  std::vector<MasterKey> made;
};

constexpr rtsp::PortPair own_ports{20000, 20001};

// An explicit proxy gives each side ports of its own; a transparent one gives none.
struct Observer final : rtsp::Host {
  Observer(const rtsp::Addresses& addresses, const Keys& keys) : addresses(addresses), keys(keys) {}
  bool is_explicit() const { return !addresses.client_authority.empty(); }
  rtsp::Admission admit(const rtsp::StreamRequest& request) override {
    REQUIRE(request.number > last);
    last = request.number;
    rtsp::Admission admission;
    admission.admitted = request.number % 5 != 0;
    if (admission.admitted) {
      admitted.insert(request.number);
      if (is_explicit()) {
        const bool one_port = request.client_ports.rtp == request.client_ports.rtcp;
        admission.towards_server = admission.towards_client =
            one_port ? rtsp::PortPair{own_ports.rtp, own_ports.rtp} : own_ports;
      }
    }
    text += 'a';
    return admission;
  }
  rtsp::Opening opened(const rtsp::Stream& stream) override {
    REQUIRE(admitted.contains(stream.number));
    REQUIRE(keys.has(stream.to_client));
    REQUIRE(stream.to_client.size() == srtp::facts(stream.suite).key_and_salt_length());
    REQUIRE(stream.client_side.client_ports.rtp != 0 && stream.server_side.server_ports.rtp != 0);
    if (is_explicit()) {
      REQUIRE(stream.client_side.server == addresses.facing_client);
      REQUIRE(stream.server_side.client == addresses.facing_server);
      REQUIRE(stream.client_side.server_ports.rtp == own_ports.rtp);
      REQUIRE(stream.server_side.client_ports.rtp == own_ports.rtp);
    } else {
      REQUIRE(stream.client_side == stream.server_side);
    }
    text += 'o' + stream.session;
    if (stream.number % 11 == 0) return rtsp::Opening::ports_in_use;
    return stream.number % 7 == 0 ? rtsp::Opening::refused : rtsp::Opening::opened;
  }
  void closed(std::uint64_t number, rtsp::EndReason reason) override {
    REQUIRE(admitted.erase(number) == 1);
    text += rtsp::end_reason_name(reason);
  }
  void refused(rtsp::Refusal refusal, unsigned status, std::string_view) override {
    REQUIRE(status >= 400 && status < 600);
    text += rtsp::refusal_name(refusal);
  }
  void left_out(rtsp::Omission omission, std::size_t count, std::string_view) override {
    REQUIRE(count > 0);
    text += rtsp::omission_name(omission);
  }
  const rtsp::Addresses& addresses;
  const Keys& keys;
  std::uint64_t last = 0;
  std::set<std::uint64_t> admitted;
  std::string text;
};

std::vector<Part> parts_of(std::string_view bytes) {
  std::vector<Part> parts;
  while (bytes.size() >= 3) {
    const std::size_t length = static_cast<unsigned char>(bytes[1]) * 256U + static_cast<unsigned char>(bytes[2]);
    const bool has_bytes = bytes[0] != 't' && bytes[0] != 'c' && bytes[0] != 's';
    const std::string_view body = has_bytes ? bytes.substr(3, length) : std::string_view{};
    parts.push_back({bytes[0], body, length});
    bytes.remove_prefix(3 + body.size());
  }
  return parts;
}

// Whole messages that can be read, each in the one way in which it is written.
template <typename F>
void each_message(std::string_view text, const F& f) {
  rtsp::Reader reader({10'000, 50'000, 100, 200'000});
  reader.append(text);
  std::size_t size = 0;
  while (true) {
    rtsp::Reader::Item item = reader.next();
    const auto* const message = std::get_if<rtsp::Message>(&item);
    if (message == nullptr) {
      break;
    }
    const SecretText again = message->text();
    REQUIRE(text.substr(size, again.size()) == again.view());
    size += again.size();
    const std::string_view head = again.view().substr(0, again.size() - message->body().size());
    REQUIRE(head.find("\n ") == std::string_view::npos && head.find("\n\t") == std::string_view::npos);
    f(*message);
  }
  REQUIRE(reader.problem() == rtsp::Problem::none && reader.pending() == 0 && size == text.size());
}

// No key of the client's.
void check_for_server(std::string_view text) {
  each_message(text, [](const rtsp::Message& message) { REQUIRE(message.header_count("KeyMgmt") == 0); });
}

// What any client may take for a description: by its type, or by its first line.
bool is_description(const rtsp::Message& message) {
  std::string_view body = message.body(), type = message.header("Content-Type").value_or("");
  body.remove_prefix(std::min(body.size(), body.find_first_not_of(" \t\r\n")));
  return same_name(trim(take_until(type, ';')), "application/sdp") || body == "v=0" || body.starts_with("v=0\r") ||
         body.starts_with("v=0\n") || body.starts_with("m=");
}

// Every medium is SRTP's and has one key, the proxy's, in both forms; nobody else has put one in. Lines as the most
// liberal of clients reads them: a CR ends one, too, and blanks in front are nothing.
void check_description(std::string_view body, const Keys& keys) {
  std::optional<MasterKey> crypto, mikey;
  bool in_medium = false;
  const auto medium_ends = [&] {
    REQUIRE(!in_medium || (crypto && mikey && *crypto == *mikey && keys.has(*crypto)));
    crypto.reset();
    mikey.reset();
  };
  while (!body.empty()) {
    const std::size_t end = std::min(body.size(), body.find_first_of("\r\n"));
    std::string_view line = trim(body.substr(0, end));
    body.remove_prefix(std::min(body.size(), end + 1));
    const bool has_type = line.find('=') != std::string_view::npos;
    const std::string_view type = has_type ? trim(take_until(line, '=')) : std::string_view{};
    line = trim(line);
    if (same_name(type, "m")) {
      medium_ends();
      in_medium = true;
      take_until(line, ' ');
      take_until(line, ' ');
      const std::string_view protocol = take_until(line, ' ');
      REQUIRE(protocol == "RTP/SAVP" || protocol == "RTP/SAVPF");
    } else if (same_name(type, "a")) {
      const std::string_view name = trim(take_until(line, ':'));
      if (same_name(name, "crypto")) {
        const auto parsed = sdp::parse_crypto(line);
        REQUIRE(in_medium && !crypto && parsed && parsed->keys.size() == 1);
        crypto = parsed->keys.front().key;
      } else if (same_name(name, "key-mgmt")) {
        REQUIRE(in_medium && !mikey && take_until(line, ' ') == "mikey");
        const auto bytes = base64_decode(line);
        REQUIRE(bytes);
        const auto parsed = mikey::parse(*bytes);
        REQUIRE(parsed);
        mikey = parsed->key;
      }
    }
  }
  medium_ends();
}

void check_for_client(std::string_view text, const Keys& keys) {
  each_message(text, [&keys](const rtsp::Message& message) {
    if (is_description(message)) {
      check_description(message.body(), keys);
    }
  });
}

// What one message of these limits, and what the proxy says to the server at its end, can become: an answer has 32
// media at most, and each gets two lines of keys.
constexpr std::size_t of_one_message = 64U << 10;

struct Way {
  std::size_t piece;
  bool is_explicit, asks;  // the latter: wants_client() and wants_server()
};

std::string run(const std::vector<Part>& parts, const Way& way) {
  const auto [piece, is_explicit, asks] = way;
  rtsp::Settings settings;
  settings.output_limit = 4U << 10;
  settings.buffer_limit = 7U << 10;  // in reach of inputs as long as libFuzzer makes them
  settings.reader = {2000, 6000, 30, 4000};
  settings.max_pending = 5;
  settings.max_streams = 4;
  settings.max_descriptions = 2;
  rtsp::Addresses addresses;
  addresses.client = *packet::IpAddress::parse("10.9.0.2");
  addresses.server = *packet::IpAddress::parse("10.9.0.1");
  if (is_explicit) {
    addresses.facing_client = *packet::IpAddress::parse("10.9.0.3");
    addresses.facing_server = *packet::IpAddress::parse("10.9.0.4");
    addresses.client_authority = "10.9.0.3:554";
    addresses.server_authority = "10.9.0.1:554";
  }
  Keys keys;
  Observer observer(addresses, keys);
  std::string text;
  {
    rtsp::Proxy proxy(
        settings, addresses, observer, [&keys](std::span<std::uint8_t> bytes) { return keys.make(bytes); },
        [] { return std::uint64_t{1'800'000'000}; });
    rtsp::Time now{};
    const auto read = [&text](SecretText& output) {
      text.append(output.view());
      output.clear();
    };
    for (const Part& part : parts) {
      if (part.kind == 't') {
        now += std::chrono::seconds(part.length);
        proxy.tick(now);
      } else if (part.kind == 'c') {
        check_for_client(proxy.to_client().view(), keys);
        read(proxy.to_client());
      } else if (part.kind == 's') {
        check_for_server(proxy.to_server().view());
        read(proxy.to_server());
      } else if (asks && !(part.kind == '>' ? proxy.wants_client() : proxy.wants_server())) {
        continue;
      }
      for (std::size_t at = 0; at < part.bytes.size(); at += piece) {
        const std::string_view bytes = part.bytes.substr(at, piece);
        part.kind == '>' ? proxy.from_client(bytes, now) : proxy.from_server(bytes, now);
      }
      REQUIRE(proxy.buffered() >= proxy.to_client().size() + proxy.to_server().size());
      REQUIRE(proxy.buffered() <= settings.buffer_limit + of_one_message);
      REQUIRE(proxy.over() || proxy.buffered() <= settings.buffer_limit);
    }
    REQUIRE(proxy.open_streams() <= settings.max_streams);
    text.append(proxy.to_client().view()).append("|").append(proxy.to_server().view());
    check_for_client(proxy.to_client().view(), keys);
    check_for_server(proxy.to_server().view());
    if (proxy.counters().opened % 2 == 0) {
      proxy.client_closed();
    }
  }
  REQUIRE(observer.admitted.empty());
  return text + observer.text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) {
    return 0;
  }
  const std::vector<Part> parts = parts_of({reinterpret_cast<const char*>(data) + 1, size - 1});
  const bool is_explicit = (data[0] & 0x80) != 0, asks = (data[0] & 0x40) != 0;
  const std::string whole = run(parts, {1U << 20, is_explicit, asks});
  const std::string cut = run(parts, {1U + data[0] % 64, is_explicit, asks});
  REQUIRE(whole == cut);
  return 0;
}
