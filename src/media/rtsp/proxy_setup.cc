// SETUP: what a client asks for and what the server agrees to.
#include <algorithm>

#include "media/rtsp/proxy.h"
#include "media/rtsp/proxy_text.h"
#include "media/rtsp/uri.h"
#include "media/text.h"

namespace sluice::media::rtsp {

namespace {

constexpr std::size_t max_session_bytes = 512;

// Whether `value` names that address; nothing named is fine.
bool names_address(const Transport& transport, std::string_view parameter, const packet::IpAddress& address) {
  if (!transport.has(parameter)) {
    return true;
  }
  const auto named = packet::IpAddress::parse(std::string(transport.value(parameter).value_or("")));
  return named && *named == address;
}

bool is_loopback(const packet::IpAddress& address) {
  return address.family == 4 ? address.bytes[0] == 127 : address == packet::IpAddress::parse("::1").value();
}

bool is_group(const packet::IpAddress& address) {
  return address.family == 4 ? (address.bytes[0] & 0xf0) == 0xe0 : address.bytes[0] == 0xff;
}

// Takes away a source or destination that names nobody: then media come from the server and go to the client.
void remove_empty_addresses(Transport& transport) {
  for (const char* const name : {"source", "destination"}) {
    const std::string_view value = transport.value(name).value_or("");
    if (transport.has(name) && (value.empty() || value == "0.0.0.0" || value == "::")) {
      transport.remove(name);
    }
  }
}

// RTSP 2.0's (RFC 7826 section 18.54), which some servers of 1.0 may take: they name other ports than client_port and
// server_port do, and any address.
bool names_addresses(const Transport& transport) {
  return transport.has("dest_addr") || transport.has("src_addr");
}

// Below these are the services of UDP, which the data path distinguishes from media by their ports: it does not guard
// media there.
constexpr std::uint16_t least_port = 1024;

bool are_low(const PortPair& ports) {
  return std::min(ports.rtp, ports.rtcp) < least_port;
}

// Why this alternative cannot be served over SRTP; nothing: it can.
std::optional<Refusal> problem_of(const Transport& transport, const packet::IpAddress& client, bool plain_allowed) {
  const sdp::Profile profile = transport.profile();
  if (transport.tcp() || transport.has("interleaved")) {
    return Refusal::interleaved;
  }
  if (transport.has("multicast")) {
    return Refusal::multicast;
  }
  const auto ports = transport.ports("client_port");
  if (profile == sdp::Profile::other || !transport.udp() || !transport.plays() || !ports || are_low(*ports)) {
    return Refusal::unusable_transport;
  }
  if (sdp::secured(profile) != profile && !plain_allowed) {
    return Refusal::plain_profile;
  }
  if (!names_address(transport, "destination", client) || names_addresses(transport) || transport.has("source")) {
    return Refusal::destination;
  }
  return std::nullopt;
}

// "timeout" of "id;timeout=60". None in "timeout=0", by which servers mean that they wait for ever.
std::optional<std::uint32_t> timeout_of(std::string_view session) {
  while (!session.empty()) {
    std::string_view value = trim(take_until(session, ';'));
    if (same_name(trim(take_until(value, '=')), "timeout")) {
      const auto seconds = number<std::uint32_t>(without_quotes(trim(value)), 86'400);
      return seconds == 0U ? std::nullopt : seconds;
    }
  }
  return std::nullopt;
}

}  // namespace

// Of the newest description that has the medium: the client has no other keys. Some servers describe one medium once
// for each profile, under one URI: the key is that of the profile which is asked for, as long as no SETUP has had it.
std::shared_ptr<Offer> Proxy::offer_for(std::string_view uri, sdp::Profile asked, bool& used) const {
  used = false;
  auto found = offer_for(uri, asked, used, same_resource);
  return found != nullptr || used ? found : offer_for(uri, asked, used, alike_resource);
}

std::shared_ptr<Offer> Proxy::offer_for(std::string_view uri, sdp::Profile asked, bool& used,
                                        bool (*same)(std::string_view, std::string_view)) const {
  std::shared_ptr<Offer> other;
  for (auto description = descriptions_.rbegin(); description != descriptions_.rend(); ++description) {
    for (const std::shared_ptr<Offer>& offer : *description) {
      const auto is_it = [&](const std::string& one) { return same(one, uri); };
      if (std::none_of(offer->uris.begin(), offer->uris.end(), is_it)) continue;
      if (offer->used) {
        used = true;
      } else if (offer->profile == asked) {
        return offer;
      } else if (other == nullptr) {
        other = offer;
      }
    }
    if (used || other != nullptr) break;
  }
  return other;
}

std::optional<Proxy::Refused> Proxy::setup_request(Message& request, Pending& pending) {
  Setup setup;
  bool used = false;
  auto unusable = choose_transports(request, setup);
  const sdp::Profile asked = unusable ? sdp::Profile::avp : sdp::plain(setup.asked.front().profile());
  setup.offer = offer_for(pending.uri, asked, used);
  if (setup.offer == nullptr) {
    return Refused{used ? Refusal::key_used : Refusal::no_offer, pending.uri};
  }
  if (unusable) {
    return unusable;
  }
  if (auto refusal = take_client_key(request, setup)) {
    return refusal;
  }
  const auto is_setup = [](const Pending& one) { return one.setup && !one.answered; };
  const auto on_the_way = static_cast<std::size_t>(std::count_if(pending_.begin(), pending_.end(), is_setup));
  if (streams_.size() + on_the_way >= settings_.max_streams) {
    return Refused{Refusal::too_many_streams, {}};
  }
  setup.number = next_number_++;
  setup.admission = host_.admit({setup.number, pending.uri, setup.offer->kind, setup.offer->rate, setup.client_ports});
  if (!setup.admission.admitted) {
    return Refused{setup.admission.ports_left ? Refusal::not_admitted : Refusal::no_media_ports, {}};
  }
  setup.offer->used = true;
  pending.setup = std::move(setup);
  put_server_side(request, *pending.setup);
  return std::nullopt;
}

// Leaves in the request what the server may choose from, in clear profiles; all with the ports of the first.
std::optional<Proxy::Refused> Proxy::choose_transports(Message& request, Setup& setup) const {
  const auto value = request.joined("Transport");
  auto transports = parse_transports(value ? value->view() : std::string_view{});
  if (!transports) {
    return Refused{Refusal::transport, transports.error().message};
  }
  std::optional<Refusal> refusal;
  std::vector<Transport> kept;
  for (Transport& transport : *transports) {
    remove_empty_addresses(transport);
    const auto problem = problem_of(transport, addresses_.client, settings_.accept_plain_profile);
    if (problem) {
      refusal = refusal ? refusal : problem;
      continue;
    }
    const PortPair ports = *transport.ports("client_port");
    if (setup.asked.empty()) {
      setup.client_ports = ports;
    } else if (ports != setup.client_ports) {
      continue;
    }
    setup.asked.push_back(transport);
    transport.set_profile(sdp::plain(transport.profile()));
    kept.push_back(std::move(transport));
  }
  if (kept.empty()) {
    return Refused{*refusal, std::string(value->view())};
  }
  request.set_header("Transport", transports_text(kept));
  return std::nullopt;
}

std::optional<Proxy::Refused> Proxy::take_client_key(const Message& request, Setup& setup) const {
  const auto value = request.joined("KeyMgmt");
  if (!value) {
    return std::nullopt;
  }
  const auto header = mikey::parse_key_mgmt_header(value->view());
  if (!header) {
    return Refused{Refusal::key_mgmt, header.error().message};
  }
  if (*header) {
    const auto message = mikey::parse((*header)->data);
    if (!message) {
      return Refused{Refusal::key_mgmt, message.error().message};
    }
    // Keys that are derived anew on the way cost before a packet is authenticated, and RTCP needs none.
    if (message->derivation_rate != 0) {
      return Refused{Refusal::key_mgmt, "a key derivation rate of a client is not supported"};
    }
    setup.client_key = ClientKey{message->suite, message->key, message->mki};
  }
  return std::nullopt;
}

void Proxy::put_server_side(Message& request, const Setup& setup) const {
  if (!setup.admission.towards_server) {
    return;
  }
  auto transports = parse_transports(request.header("Transport").value_or(""));
  for (Transport& transport : *transports) {
    if (transport.has("client_port")) {
      transport.set_ports("client_port", *setup.admission.towards_server);
    }
    if (transport.has("destination")) {
      transport.set("destination", addresses_.facing_server.str());
    }
  }
  request.set_header("Transport", transports_text(*transports));
}

void Proxy::setup_failed(Pending& pending, EndReason reason) {
  pending.setup->offer->used = false;
  ++counters_.closed[static_cast<std::size_t>(reason)];
  host_.closed(pending.setup->number, reason);
  pending.setup.reset();
}

void Proxy::setup_response(Message& response, Pending& pending, Time now) {
  if (response.status() >= 300) {
    setup_failed(pending, EndReason::setup_failed);
    pass_answer(pending, response);
    return;
  }
  const auto written = response.joined("Transport");
  const auto transports = parse_transports(written ? written->view() : std::string_view{});
  const std::string session(session_of(response.header("Session").value_or("")));
  const auto give_up = [&](Refusal refusal, EndReason reason, const std::string& why) {
    const std::string aggregate = pending.setup->offer->aggregate;
    if (!session.empty() && session.size() <= max_session_bytes) {
      // A new session has nothing else in it; of an older one only this medium goes.
      tear_down(session, pending.session.empty() ? aggregate : pending.uri);
    }
    setup_failed(pending, reason);
    refuse(pending, {refusal, why});
  };
  if (holds_description(response)) {
    give_up(Refusal::description, EndReason::setup_failed, unmatched_description);
    return;
  }
  Transport answered;
  if (transports) {
    answered = usable(*transports, *pending.setup);
    correct(answered, *pending.setup);
  }
  auto stream = transports ? agreed(session, answered, *pending.setup) : tl::unexpected(transports.error());
  if (!stream) {
    give_up(Refusal::setup_answer, EndReason::setup_failed, stream.error().message);
    return;
  }
  stream->uri = pending.uri;
  Setup& setup = *pending.setup;
  const Opening opening = host_.opened(*stream);
  if (opening != Opening::opened) {
    opening == Opening::ports_in_use ? give_up(Refusal::ports_in_use, EndReason::ports_in_use, {})
                                     : give_up(Refusal::not_opened, EndReason::not_opened, {});
    return;
  }
  if (!answered.ports("server_port")) {
    answered.set_ports("server_port", stream->server_side.server_ports);
  }
  ++counters_.opened;
  const auto timeout = timeout_of(response.header("Session").value_or(""));
  response.set_header("Transport", transports_text({client_side(std::move(answered), setup)}));
  streams_.push_back({std::move(*stream), setup.offer->aggregate, now,
                      timeout ? std::chrono::seconds(*timeout) : settings_.session_timeout});
  pending.setup.reset();
  answer(pending, response);
}

// What servers get wrong of the two ends, and players pass over. Media come from the server's address and go where the
// client asked for, or else they belong to no stream and are not let through.
void Proxy::correct(Transport& answer, const Setup& setup) {
  remove_empty_addresses(answer);
  // A name cannot be compared with the server's address.
  const auto address_in = [&answer](std::string_view name) {
    return packet::IpAddress::parse(std::string(answer.value(name).value_or("")));
  };
  if (const auto source = address_in("source"); !source || is_loopback(*source)) {
    answer.remove("source");
  }
  const auto leave_out = [&](const char* name) {
    if (answer.remove(name)) {
      count_left_out(Omission::header_line, 1, "Transport: another " + std::string(name) + " than was asked for");
    }
  };
  const packet::IpAddress client = setup.admission.towards_server ? addresses_.facing_server : addresses_.client;
  if (const auto destination = address_in("destination"); !destination || !is_group(*destination)) {
    if (!destination || *destination != client) leave_out("destination");
  }
  if (const auto ports = answer.ports("client_port"); !ports) {
    answer.remove("client_port");
  } else if (*ports != setup.admission.towards_server.value_or(setup.client_ports)) {
    leave_out("client_port");
  }
}

// The client's alternative that the server has chosen; nullptr: none. Some servers say AVPF of what is AVP.
const Transport* Proxy::chosen(const Transport& answer, const Setup& setup) {
  for (const Transport& asked : setup.asked) {
    if (sdp::plain(asked.profile()) == answer.profile()) {
      return &asked;
    }
  }
  const bool is_clear = answer.profile() == sdp::Profile::avp || answer.profile() == sdp::Profile::avpf;
  return is_clear ? &setup.asked.front() : nullptr;
}

// Of an answer with several alternatives the first that was asked for; else the first.
const Transport& Proxy::usable(const std::vector<Transport>& transports, const Setup& setup) {
  const auto is_usable = [&setup](const Transport& one) {
    return one.udp() && !one.has("multicast") && chosen(one, setup) != nullptr;
  };
  const auto first = std::ranges::find_if(transports, is_usable);
  return first == transports.end() ? transports.front() : *first;
}

Transport Proxy::client_side(Transport answer, const Setup& setup) const {
  answer.set_profile(chosen(answer, setup)->profile());
  if (setup.admission.towards_server) {
    answer.set_ports("client_port", setup.client_ports);
    if (answer.has("destination")) {
      answer.set("destination", addresses_.client.str());
    }
  }
  if (setup.admission.towards_client) {
    answer.set_ports("server_port", *setup.admission.towards_client);
    if (answer.has("source")) {
      answer.set("source", addresses_.facing_client.str());
    }
  }
  return answer;
}

Expected<Stream> Proxy::agreed(const std::string& session, const Transport& answer, const Setup& setup) const {
  const PortPair towards_server = setup.admission.towards_server.value_or(setup.client_ports);
  const auto server_ports = answer.ports_in("server_port");
  if (session.size() > max_session_bytes) {
    return make_error("its Session is longer than 512 bytes");
  }
  if (!answer.udp() || answer.has("multicast") || chosen(answer, setup) == nullptr) {
    return make_error("its Transport is none of those it was asked for");
  }
  if (!server_ports) {
    return make_error(
        "its Transport has no server_port that can be read: nobody could say which packets are the medium's");
  }
  if (are_low(*server_ports)) {
    return make_error("its Transport has a server_port below 1024");
  }
  const Leg leg{addresses_.client, setup.client_ports, addresses_.server, *server_ports};
  if (!names_address(answer, "source", addresses_.server)) {
    const auto named = packet::IpAddress::parse(std::string(answer.value("source").value_or("")));
    return make_error("its Transport has another source" + (named ? ", " + named->str() + "," : std::string()) +
                      " than the server, " + addresses_.server.str() +
                      ": media from there would belong to no stream. Let the server send from the address that "
                      "clients connect to, or clients connect to that one");
  }
  if (names_addresses(answer)) {
    return make_error("its Transport has dest_addr or src_addr, of RTSP 2.0");
  }
  Stream stream;
  stream.client_side = stream.server_side = leg;
  if (setup.admission.towards_server) {
    stream.server_side.client = addresses_.facing_server;
    stream.server_side.client_ports = towards_server;
  }
  if (setup.admission.towards_client) {
    stream.client_side.server = addresses_.facing_client;
    stream.client_side.server_ports = *setup.admission.towards_client;
  }
  if (!names_address(answer, "destination", stream.server_side.client)) {
    return make_error("its Transport has a group as its destination: it is multicast");
  }
  const Transport& asked = *chosen(answer, setup);
  stream.number = setup.number;
  stream.session = session;
  stream.kind = setup.offer->kind;
  stream.suite = setup.offer->suite;
  stream.to_client = setup.offer->key;
  stream.from_client = setup.client_key;
  stream.plain_profile = sdp::secured(asked.profile()) != asked.profile();
  stream.rate = setup.offer->rate;
  stream.ssrcs = setup.offer->ssrcs;
  const auto ssrc = answer.ssrc();
  if (ssrc && std::find(stream.ssrcs.begin(), stream.ssrcs.end(), *ssrc) == stream.ssrcs.end()) {
    stream.ssrcs.push_back(*ssrc);
  }
  return stream;
}

}  // namespace sluice::media::rtsp
