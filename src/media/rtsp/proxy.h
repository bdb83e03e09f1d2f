// One client's RTSP connection and the one to its server, with a proxy between them that makes clear media SRTP for the
// client. Without sockets and clocks: bytes and times go in, bytes and events come out.
//
// What it changes: DESCRIBE's answer (offers.h); the profile in SETUP's Transport, both ways, with the ports and
// addresses of an explicit proxy; KeyMgmt of all that clients send, which is their key and goes no further;
// Accept-Encoding of DESCRIBE, which goes; ANNOUNCE and RECORD in an answer's Public and Allow, which go;
// Content-Length with a changed body; and, of an explicit proxy, the authority in URIs (a request's becomes the
// server's, and an answer's what the request had, whatever they were; a Location's only where it is the server's) and
// the server's address in o= and c=. All other headers, bodies and messages pass as they are, authentication's too, but
// for their form (message.h). docs/rtsp.md says what is refused and how.
//
// Order: clients get answers in the order of their requests, the proxy's own among them.
// Keys: a key serves one SETUP. A client that wants the medium again asks for a new description first, or gets 455: the
// same key over another stream of packets with the same SSRC would give both away. Streams: every admit() that says yes
// is followed by one closed() of the same number, with opened() before it when the server agreed. opened() comes before
// the client sees the answer, so that no packet precedes its key. Thread-safety: none; one thread drives a Proxy.
// Memory: by Settings 1 MB at most of what waits for either side, one message of each side that is not whole
// (reader.h), and the URIs of the descriptions whose keys wait; 10 KB in practice.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "media/mikey/message.h"
#include "media/rtsp/offers.h"
#include "media/rtsp/reader.h"
#include "media/rtsp/transport.h"
#include "packet/ip_address.h"

namespace sluice::media::rtsp {

using Time = std::chrono::steady_clock::time_point;
// Seconds since 1970, for MIKEY's time.
using UnixClock = std::function<std::uint64_t()>;
std::uint64_t system_unix_seconds();

// The addresses and ports of RTP and RTCP on one side of the proxy.
struct Leg {
  packet::IpAddress client;
  PortPair client_ports;
  packet::IpAddress server;
  PortPair server_ports;
  bool operator==(const Leg&) const = default;
};

// A medium that a client asks for.
struct StreamRequest {
  std::uint64_t number = 0;  // of this proxy, never given twice
  std::string_view uri;
  std::string_view kind;   // "video"
  std::uint64_t rate = 0;  // bits a second by the description's b=; 0: unknown
  PortPair client_ports;
};

struct Admission {
  bool admitted = true;
  bool ports_left = true;  // false, where it is not admitted: that is why
  // Of an explicit proxy: its own ports, which the server sees as the client's and the client as the server's. Absent
  // in a transparent one: both sides see each other's.
  std::optional<PortPair> towards_server;
  std::optional<PortPair> towards_client;
};

// What a client protects its own RTCP with.
struct ClientKey {
  srtp::Suite suite = srtp::Suite::aes_cm_128_hmac_sha1_80;
  MasterKey key;
  SecretBytes mki;  // empty: none
};

// A medium that the server has agreed to send. Wiped with its last copy.
struct Stream {
  std::uint64_t number = 0;
  std::string session;  // RTSP's
  std::string uri;
  std::string kind;
  Leg client_side;  // SRTP
  Leg server_side;  // in clear; the same as client_side in a transparent proxy
  srtp::Suite suite = srtp::Suite::aes_cm_128_hmac_sha1_80;
  MasterKey to_client;
  std::optional<ClientKey> from_client;  // absent: the client named none
  bool plain_profile = false;            // the client asked for RTP/AVP, as ffmpeg does: its RTCP will come in clear
  std::uint64_t rate = 0;
  std::vector<std::uint32_t> ssrcs;  // of the description and the server's Transport; may be empty
};

enum class EndReason : std::uint8_t {
  teardown,       // the client asked for it and the server did not say no, or the server did, whatever the client says
  timeout,        // nothing heard of the client for the session's timeout
  no_session,     // the server answered 454: it knows the session no more
  client_closed,  // the client closed its connection without a TEARDOWN
  client_gone,    // that connection was lost: reset, or the client answers no more
  server_gone,
  setup_failed,  // admitted, but the server refused, or its answer could not be used
  not_opened,    // admitted, but opened() said no
  ports_in_use,  // likewise: Opening::ports_in_use
  protocol,      // a side's bytes could not be read
  unanswered,    // the server left a SETUP without an answer for Settings::answer_timeout
  overflow,      // more waited for either side than Settings::buffer_limit
  stopped,       // the owner ended the proxy
};
inline constexpr unsigned end_reasons = 13;
const char* end_reason_name(EndReason reason);

// What became of a medium that the server has agreed to send.
enum class Opening : std::uint8_t {
  opened,
  ports_in_use,  // another session has its 5-tuples, and it is being found out whether that one's client is still there
  refused,
};

// Why the proxy answered a request by itself; docs/rtsp.md has the table.
enum class Refusal : std::uint8_t {
  unreadable,          // reader.h's problems                                          400, 413, 414, 431, 505
  version,             // not RTSP/1.x                                                 505
  cseq,                // none, no number, or one that still waits for its answer      400
  proxy_require,       // an option that the proxy does not know                       551
  back_channel,        // media of the client, as ONVIF has them: only servers send    551
  method,              // ANNOUNCE and RECORD: only servers send                       501
  description_body,    // a description where none is expected                         501
  busy,                // of a server: too many of its requests wait for the client    503
  transport,           // it cannot be read                                            400
  no_offer,            // no description on this connection offered the medium a key   455
  key_used,            // the key of its description has served a SETUP                455
  interleaved,         // only RTP over RTSP's connection was asked for                461
  plain_profile,       // RTP/AVP was asked for, and settings say no                   461
  multicast,           //                                                              461
  destination,         // the media should go to another host, or come from one        461
  unusable_transport,  // neither of these, but nothing that can be protected          461
  key_mgmt,            // the client's MIKEY cannot be read or used                    400
  too_many_streams,    //                                                              453
  not_admitted,        // Host::admit()                                                453
  no_media_ports,      // the same: an explicit proxy has no ports left                503
  ports_in_use,        // Host::opened(): another session has the ports, for now       503, with Retry-After
  not_opened,          // Host::opened()                                               503
  description,         // the server's cannot be protected, or nobody asked for it     502
  setup_answer,        // the server's answer to SETUP cannot be used                  502
  server_unreadable,   // what the server sent cannot be read                          502
  unanswered,          // the server has not answered in time                          504
};
inline constexpr unsigned refusals = 26;
const char* refusal_name(Refusal refusal);

// What the proxy leaves out of what a side sent, so that the rest can go on; docs/rtsp.md has the list.
enum class Omission : std::uint8_t {
  medium,            // of a server's description: it cannot be read, or protected
  description_line,  // of the same
  header_line,       // of a message of either side: it is no header
};
inline constexpr unsigned omissions = 3;
const char* omission_name(Omission omission);

// What a proxy asks for and reports. It outlives the proxy; none of it may call the proxy.
class Host {
 public:
  virtual ~Host() = default;
  // No: the client gets 453 Not Enough Bandwidth, or 503 for want of ports; the server hears nothing.
  virtual Admission admit(const StreamRequest& request) = 0;
  // Anything but `opened`: the client gets 503, the server a TEARDOWN.
  virtual Opening opened(const Stream& stream) = 0;
  virtual void closed(std::uint64_t number, EndReason reason) = 0;
  // The proxy answered a request by itself. `why` may be empty; it never holds key material.
  virtual void refused(Refusal refusal, unsigned status, std::string_view why) = 0;
  // Something was left out, `count` times; `why`, likewise without key material, of the first: "line 4: ...".
  virtual void left_out(Omission omission, std::size_t count, std::string_view why) = 0;
};

struct Settings {
  OfferSettings offer;
  bool accept_plain_profile = true;  // SETUP for RTP/AVP of a medium offered as SAVP; no: 461
  ReaderLimits reader;
  std::size_t max_pending = 64;              // requests of a client without an answer; more wait unread
  std::size_t max_streams = 32;              // 453
  std::size_t max_descriptions = 4;          // whose keys wait for a SETUP; the oldest go
  std::size_t output_limit = 256U << 10;     // of both outputs: wants_*() says no while more waits
  std::size_t buffer_limit = 1U << 20;       // of all that waits for either side: more ends it. Above output_limit
  std::chrono::seconds session_timeout{60};  // when the server names none (RFC 2326 section 12.37)
  std::chrono::seconds grace{10};            // over the timeout, for the server goes first
  std::chrono::seconds retry_after{5};       // of the answer to a client whose ports are in use
  std::chrono::seconds answer_timeout{30};   // of a server, from its request's coming; interim answers aside
};

struct Addresses {
  packet::IpAddress client;
  packet::IpAddress server;
  // An explicit proxy's own, as the client and as the server see it; empty in a transparent one.
  packet::IpAddress facing_client;
  packet::IpAddress facing_server;
  // "host:port" of URIs of an explicit proxy: for clients that have not written another one, and what the server shall
  // read. Empty: as they are.
  std::string client_authority;
  std::string server_authority;
};

struct Counters {
  std::uint64_t requests = 0;                       // of clients
  std::uint64_t responses = 0;                      // of servers
  std::uint64_t server_requests = 0;                // of servers
  std::array<std::uint64_t, refusals> refused{};    // by Refusal
  std::uint64_t descriptions = 0;                   // made SRTP
  std::uint64_t unmatched_responses = 0;            // nobody asked for them: dropped
  std::array<std::uint64_t, omissions> left_out{};  // by Omission
  std::uint64_t interleaved_dropped = 0;            // frames of either side: no SETUP that asks for them passes
  std::uint64_t descriptions_forgotten = 0;         // with keys that no SETUP had used, over max_descriptions
  std::uint64_t overflows = 0;                      // 1: ended by buffer_limit
  std::uint64_t opened = 0;
  std::array<std::uint64_t, end_reasons> closed{};
};

class Proxy {
 public:
  Proxy(const Settings& settings, Addresses addresses, Host& host, RandomSource random = system_random,
        UnixClock clock = system_unix_seconds);
  Proxy(const Proxy&) = delete;
  Proxy& operator=(const Proxy&) = delete;
  // Ends with `stopped` what is open.
  ~Proxy();

  void from_client(std::string_view bytes, Time now);
  void from_server(std::string_view bytes, Time now);
  // The connection has ended: by who is there, or it was lost. Bytes that wait for the other side still do: write them,
  // then close it. What a TEARDOWN of the client's asks for has ended by that, whether the server has answered or not.
  void client_closed() { client_ended(EndReason::client_closed); }
  void client_gone() { client_ended(EndReason::client_gone); }
  void server_closed();
  // The owner ends it: likewise.
  void stop() { client_ended(EndReason::stopped); }
  // Ends sessions whose time is over, and answers for the server what it has not in time; once a second is enough.
  void tick(Time now);
  // RTCP of the client has come: it is alive (RFC 2326 appendix A).
  void alive(std::uint64_t number, Time now);

  // What is to be written; consume() it as it is.
  SecretText& to_client() { return to_client_; }
  SecretText& to_server() { return to_server_; }
  // Whether to read on from that side: not while either one does not take what waits for it, for what the proxy answers
  // by itself goes back to who asked.
  bool wants_client() const { return wants_server() && pending_.size() < settings_.max_pending; }
  bool wants_server() const { return !over_ && to_client_.size() + to_server_.size() < settings_.output_limit; }
  // Whether answers to a client's requests are to come.
  bool owes_client() const { return !pending_.empty(); }
  // Bytes that wait for either side, answers that wait for others and what is remembered of their requests among them.
  // At most buffer_limit, and what one message makes of it.
  std::size_t buffered() const;
  // Nothing more will come of it: close both connections once the outputs are empty.
  bool over() const { return over_; }

  const Counters& counters() const { return counters_; }
  std::size_t open_streams() const { return streams_.size(); }

 private:
  struct Refused {
    Refusal refusal;
    std::string why;
  };
  // What a SETUP on its way to the server will become.
  struct Setup {
    std::uint64_t number = 0;
    std::shared_ptr<Offer> offer;
    std::vector<Transport> asked;  // the client's alternatives that went to the server
    PortPair client_ports;
    Admission admission;
    std::optional<ClientKey> client_key;
  };
  // A request of the client's that waits for its answer.
  struct Pending {
    std::string cseq;
    std::string method;
    std::string uri;
    std::string session;
    Time asked;
    std::optional<Setup> setup;
    SecretText answer;  // what can go when those before it have gone
    bool answered = false;
  };
  struct OpenStream {
    Stream stream;
    std::string aggregate;
    Time heard;
    std::chrono::seconds timeout;
  };

  void read_client(Time now);
  void end_if_too_much_waits();
  void client_request(Message& request, Time now);
  void client_response(Message& response);
  void server_response(Message& response, Time now);
  void server_request(Message& request);

  std::optional<Refused> check(const Message& request) const;
  std::optional<Refused> setup_request(Message& request, Pending& pending);
  std::optional<Refused> take_client_key(const Message& request, Setup& setup) const;
  std::optional<Refused> choose_transports(Message& request, Setup& setup) const;
  void put_server_side(Message& request, const Setup& setup) const;
  void pass_answer(Pending& pending, const Message& response);
  void describe_response(Message& response, Pending& pending);
  void setup_response(Message& response, Pending& pending, Time now);
  void setup_failed(Pending& pending, EndReason reason);
  Expected<Stream> agreed(const std::string& session, const Transport& answer, const Setup& setup) const;
  void correct(Transport& answer, const Setup& setup);
  static const Transport* chosen(const Transport& answer, const Setup& setup);
  static const Transport& usable(const std::vector<Transport>& transports, const Setup& setup);
  Transport client_side(Transport answer, const Setup& setup) const;
  void torn_down(std::string_view session, std::string_view uri);

  void forward(Message& request);
  void fix_uris(Message& message, std::string_view client_authority) const;
  std::string_view client_authority(std::string_view uri) const;
  void refuse(Pending& pending, const Refused& refused);
  void count_refused(const Refused& refused, unsigned status);
  void count_left_out(Omission omission, std::size_t count, std::string_view why);
  void count_left_out(const Message& message);
  void answer(Pending& pending, const Message& response);
  void flush_answers();
  std::shared_ptr<Offer> offer_for(std::string_view uri, sdp::Profile asked, bool& used) const;
  std::shared_ptr<Offer> offer_for(std::string_view uri, sdp::Profile asked, bool& used,
                                   bool (*same)(std::string_view, std::string_view)) const;
  void heard(std::string_view session, Time now);
  void end_streams(std::string_view session, EndReason reason);
  void end_all(EndReason reason, bool notify_server);
  void end_asked(bool notify_server);
  void client_ended(EndReason reason);
  void end_unanswered(Time now);
  void give_up(EndReason reason, const Refused& refused);
  bool awaited(std::string_view cseq) const;
  std::deque<Pending>::iterator asked_for(const Message& response);
  void await_unwanted(std::string cseq);
  void tear_down(std::string_view session, std::string_view uri);
  void unreadable(const Reader& reader, bool client);

  Settings settings_;
  Addresses addresses_;
  Host& host_;
  RandomSource random_;
  UnixClock clock_;
  Reader client_reader_;
  Reader server_reader_;
  SecretText to_client_;
  SecretText to_server_;
  std::deque<Pending> pending_;
  std::size_t echoed_ =
      0;  // answers that named their request's CSeq                                   // in the order of their requests
  std::deque<std::vector<std::shared_ptr<Offer>>> descriptions_;  // newest last
  std::vector<OpenStream> streams_;
  std::set<std::string, std::less<>> server_cseqs_;  // of the server's requests that wait for the client
  // Of requests whose answers go no further: the proxy's own, and those that it has answered for the server. The
  // newest.
  std::deque<std::string> unwanted_cseqs_;
  Counters counters_;
  std::uint64_t next_number_ = 1;
  std::uint32_t next_cseq_ = 1'000'000'000;  // of the proxy's own requests
  bool over_ = false;
};

}  // namespace sluice::media::rtsp
