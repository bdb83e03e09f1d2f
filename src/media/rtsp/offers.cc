#include "media/rtsp/offers.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/quote.h"
#include "media/mikey/message.h"
#include "media/rtsp/uri.h"
#include "media/sdp/crypto_attribute.h"
#include "media/text.h"

namespace sluice::media::rtsp {

namespace {

Expected<MasterKey> new_key(srtp::Suite suite, const RandomSource& random) {
  SecretBytes bytes(srtp::facts(suite).key_and_salt_length());
  if (auto filled = random(bytes); !filled) {
    return tl::unexpected(filled.error());
  }
  return MasterKey(bytes);
}

Expected<SecretText> mikey_of(const Offer& offer, std::uint64_t unix_seconds, const RandomSource& random) {
  std::array<std::uint8_t, 20> bytes;
  if (auto filled = random(bytes); !filled) {
    return tl::unexpected(filled.error());
  }
  mikey::Message message;
  for (std::size_t i = 16; i < bytes.size(); ++i) {
    message.csb_id = message.csb_id << 8 | bytes[i];
  }
  for (const std::uint32_t ssrc : offer.ssrcs) {
    message.streams.push_back({ssrc, 0});
  }
  message.ntp_time = mikey::ntp_of(unix_seconds);
  message.suite = offer.suite;
  message.key = offer.key;
  return mikey::key_mgmt_attribute(mikey::write(message, std::span(bytes).first<16>()));
}

// The address is the last word of o= and of c=.
void set_address(sdp::Line& line, const Origin& origin) {
  const std::string_view text = line.view();
  const std::size_t blank = text.rfind(' ');
  if (blank == std::string_view::npos) {
    return;
  }
  const auto address = packet::IpAddress::parse(text.substr(blank + 1));
  if (!address || *address != origin.server) {
    return;
  }
  SecretText changed(text.substr(0, blank + 1));
  changed.append(origin.facing_client.str());
  line.text = std::move(changed);
}

// The name of an attribute; empty: it is none. Also as some peers read them: with blanks in front, of any case.
std::string_view attribute_name(std::string_view line) {
  line = trim(line);
  if (!same_name(trim(take_until(line, '=')), "a")) return {};
  return trim(take_until(line, ':'));
}

// What would send a client's packets to the server itself (ICE's candidates), or keep the proxy's from it.
bool leads_past_proxy(const sdp::Line& line) {
  const std::string_view name = attribute_name(line.view());
  return same_name(name, "candidate") || same_name(name, "remote-candidates") || same_name(name, "source-filter");
}

// a=rtcp:PORT IN IP4 ADDRESS (RFC 3605): the proxy's, whichever address or name of the server's it is.
void name_rtcp(sdp::Line& line, const Origin& origin) {
  if (!same_name(attribute_name(line.view()), "rtcp")) return;
  std::string_view rest = line.view();
  take_until(rest, ':');
  rest = trim(rest);
  const std::string port(take_until(rest, ' '));
  if (trim(rest).empty()) return;
  line.text = SecretText("a=rtcp:");
  line.text.append(port + (origin.facing_client.family == 6 ? " IN IP6 " : " IN IP4 ") + origin.facing_client.str());
}

void name_proxy(sdp::Section& section, const Origin& origin) {
  if (origin.server_authority.empty()) {
    return;
  }
  std::erase_if(section.lines, leads_past_proxy);
  for (sdp::Line& line : section.lines) {
    name_rtcp(line, origin);
    if (line.type() == 'o' || line.type() == 'c') {
      set_address(line, origin);
    }
    constexpr std::string_view control = "a=control:";
    if (line.view().starts_with(control)) {
      const std::string uri = rtsp_to_authority(line.view().substr(control.size()), origin.client_authority);
      line.text = SecretText(control);
      line.text.append(uri);
    }
  }
}

bool is_key(std::string_view line) {
  const std::string_view name = attribute_name(line);
  return same_name(name, "crypto") || same_name(name, "key-mgmt");
}

void remove_keys(sdp::Section& section) {
  std::erase_if(section.lines, [](const sdp::Line& line) { return is_key(line.view()); });
}

// Every URI by which a client may ask for the medium. Of several a=control some take the first, some the last.
std::vector<std::string> uris_of(const sdp::Medium& medium, std::string_view session_control, const Origin& origin) {
  constexpr std::size_t most_controls = 4;
  std::vector<std::string_view> controls = medium.attributes("control");
  if (controls.empty()) {
    controls = {""};
  }
  controls.resize(std::min(controls.size(), most_controls));
  constexpr std::size_t most_bytes = 64U << 10;
  std::vector<std::string> uris;
  std::size_t bytes = 0;
  const auto add = [&](std::string uri) {
    bytes += uri.size();
    if (bytes <= most_bytes && std::ranges::find(uris, uri) == uris.end()) uris.push_back(std::move(uri));
  };
  std::vector<std::string_view> bases = {origin.base};
  bases.insert(bases.end(), origin.other_bases.begin(), origin.other_bases.end());
  for (const std::string_view base : bases) {
    const std::string aggregate = control_uri(base, session_control);
    std::string joined = aggregate;  // ffmpeg puts each behind those before it
    for (const std::string_view control : controls) {
      for (std::string& uri : control_uris(aggregate, control)) add(std::move(uri));
      for (std::string& uri : control_uris(base, control)) add(std::move(uri));
      joined = control_uri(joined, control);
    }
    add(joined);
  }
  return uris;
}

// Why it cannot be protected; nothing: it can.
std::optional<std::string> problem_of(const sdp::Medium& medium) {
  const sdp::Profile profile = medium.profile();
  if (profile != sdp::Profile::avp && profile != sdp::Profile::avpf) {
    return "a medium of " + in_quotes(medium.protocol()) + " cannot be protected: RTP/AVP and RTP/AVPF can";
  }
  return std::nullopt;
}

Expected<std::shared_ptr<Offer>> secure(sdp::Medium& medium, const sdp::Description& description, const Origin& origin,
                                        const RandomSource& random, srtp::Suite suite) {
  auto offer = std::make_shared<Offer>();
  offer->profile = medium.profile();
  offer->kind = medium.kind();
  offer->suite = suite;
  offer->ssrcs = medium.ssrcs();
  if (offer->ssrcs.size() > mikey::max_streams) {
    offer->ssrcs.clear();  // MIKEY need name none
  }
  offer->rate = description.rate(medium, origin.ipv6).value_or(0);
  const std::string_view session_control = description.session.attribute("control").value_or("*");
  offer->aggregate = control_uri(origin.base, session_control);
  offer->uris = uris_of(medium, session_control, origin);
  auto key = new_key(suite, random);
  if (!key) {
    return tl::unexpected(key.error());
  }
  offer->key = *key;
  const auto mikey = mikey_of(*offer, origin.unix_seconds, random);
  if (!mikey) {
    return tl::unexpected(mikey.error());
  }
  remove_keys(medium);
  medium.set_protocol(sdp::profile_name(sdp::secured(offer->profile)));
  sdp::CryptoAttribute crypto;
  crypto.suite = suite;
  crypto.keys.push_back({offer->key, {}, {}, 0});
  medium.add_attribute("crypto", sdp::crypto_text(crypto).view());
  medium.add_attribute("key-mgmt", mikey->view());
  return offer;
}

}  // namespace

Expected<Offered> secure_description(std::string_view description, const Origin& origin, const RandomSource& random,
                                     const OfferSettings& settings) {
  auto parsed = sdp::Description::parse(description, settings.limits);
  if (!parsed) {
    return tl::unexpected(parsed.error());
  }
  Offered offered;
  remove_keys(parsed->session);
  name_proxy(parsed->session, origin);
  offered.left_out = std::move(parsed->left_out);
  std::erase_if(parsed->media, [&offered](const sdp::Medium& medium) {
    const auto problem = problem_of(medium);
    if (problem) offered.left_out.push_back({true, "line " + std::to_string(medium.line_number) + ": " + *problem});
    return problem.has_value();
  });
  const auto lost = std::ranges::find_if(offered.left_out, [](const sdp::LeftOut& one) { return one.medium; });
  if (parsed->media.empty() && lost != offered.left_out.end()) {
    return make_error("none of its media can be offered; the first: " + lost->why);
  }
  for (sdp::Medium& medium : parsed->media) {
    name_proxy(medium, origin);
    auto offer = secure(medium, *parsed, origin, random, settings.suite);
    if (!offer) {
      return tl::unexpected(offer.error());
    }
    offered.media.push_back(std::move(*offer));
  }
  offered.description = parsed->text();
  return offered;
}

}  // namespace sluice::media::rtsp
