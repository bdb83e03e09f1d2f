// A server's description of clear media made into one of SRTP: RTP/AVP becomes RTP/SAVP (AVPF SAVPF), and each medium
// gets a key of its own, offered twice: as a=crypto (RFC 4568; ffmpeg takes it) and as a=key-mgmt with MIKEY (RFC 4567;
// GStreamer's rtspsrc takes it). One suite, for RTSP has no answer in which a client could choose. a=crypto and
// a=key-mgmt of the server's go. Everything else stays as sdp::Description has it.
//
// A medium that is not RTP/AVP or AVPF could not be protected: it is left out, alone, and no SETUP finds it. A
// description of which no medium is left is an error.
// Thread-safety: none needed. Cost: control path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "media/sdp/description.h"
#include "media/secret.h"
#include "media/srtp/suite.h"
#include "packet/ip_address.h"

namespace sluice::media::rtsp {

struct Offer {
  std::string kind;                          // "video"
  std::vector<std::string> uris;             // that a SETUP for it may have: see control_uris() in uri.h
  std::string aggregate;                     // the URI of all media together
  sdp::Profile profile = sdp::Profile::avp;  // the server's
  srtp::Suite suite = srtp::Suite::aes_cm_128_hmac_sha1_80;
  MasterKey key;
  std::uint64_t rate = 0;  // bits a second by b=; 0: the description does not say
  std::vector<std::uint32_t> ssrcs;
  bool used = false;  // its key may have protected packets: it serves one SETUP
};

struct Offered {
  SecretText description;
  std::vector<std::shared_ptr<Offer>> media;
  std::vector<sdp::LeftOut> left_out;
};

struct OfferSettings {
  srtp::Suite suite = srtp::Suite::aes_cm_128_hmac_sha1_80;
  sdp::Limits limits;
};

// Where a description comes from.
struct Origin {
  std::string_view base;  // what controls are relative to: Content-Base, Content-Location or the request's URI
  // What clients may take for the base instead: not all read each of the three.
  std::vector<std::string> other_bases = {};
  bool ipv6 = false;               // the media will travel over it
  std::uint64_t unix_seconds = 0;  // for MIKEY's time
  // Of an explicit proxy: absolute controls with the first get the second, o= and c= of the server the proxy's address,
  // as has every a=rtcp with one; a=candidate, a=remote-candidates and a=source-filter go. Nothing changes when they
  // are empty.
  std::string_view server_authority;
  std::string_view client_authority;
  packet::IpAddress server, facing_client;
};

Expected<Offered> secure_description(std::string_view description, const Origin& origin, const RandomSource& random,
                                     const OfferSettings& settings);

}  // namespace sluice::media::rtsp
