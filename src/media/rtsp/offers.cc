#include "media/rtsp/offers.h"

#include <array>

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

Expected<std::shared_ptr<Offer>> secure(sdp::Medium& medium, const sdp::Description& description, const Origin& origin,
                                        const RandomSource& random, srtp::Suite suite) {
  auto offer = std::make_shared<Offer>();
  offer->profile = medium.profile();
  if (offer->profile != sdp::Profile::avp && offer->profile != sdp::Profile::avpf) {
    return make_error("a medium of " + in_quotes(medium.protocol()) + " cannot be protected: RTP/AVP and RTP/AVPF can");
  }
  offer->kind = medium.kind();
  offer->suite = suite;
  offer->ssrcs = medium.ssrcs();
  if (offer->ssrcs.size() > mikey::max_streams) {
    return make_error("a medium has more than " + std::to_string(mikey::max_streams) + " SSRCs");
  }
  offer->rate = description.rate(medium, origin.ipv6).value_or(0);
  offer->aggregate = control_uri(origin.base, description.session.attribute("control").value_or("*"));
  const std::string_view control = medium.attribute("control").value_or("");
  offer->uris = {control_uri(offer->aggregate, control), control_uri(origin.base, control),
                 resolved_uri(origin.base, control)};
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
