// HTTP/1.x of one TCP connection, from the bytes of both directions in order to transactions (RFC 9112), as a lenient
// client reads them: what an attacker's server sends to get past an inspection, browsers still show.
//
//   Parser parser(settings, pool, transactions, sink);      // a lane's
//   Connection* connection = parser.open();
//   parser.data(*connection, Direction::to_server, bytes);   // from StreamSink::data: StreamData::fresh
//   parser.gap(*connection, direction, bytes); parser.closed(*connection, direction);
//   parser.close(connection);                                // its end: what is open completes, memory goes back
//
// Whether a connection is HTTP is found out from the first bytes of either side, on any port: behind empty lines and
// blanks a method, a space and what can be a URI; "HTTP/". While only one side has shown to be something else, that
// side's bytes are dropped.
//
// Events come as soon as their piece is whole, in this order for a message:
//   request_line, request_headers, request_body (each time it has grown, has begun anew, as content_decoder.h says, or
//   has reached its limit), request_complete. A request's body that was decoded begins anew when it is whole, as it
//   came, for most servers decode none
//   response_line, response_headers, response_body, response_complete
// Fields behind a body in chunks come as request_trailers or response_trailers, before the message is complete: it has
// them among its headers then.
// A response may begin before its request is complete. A response without a request makes a transaction whose
// request is flagged missing. After the last event of both messages the transaction is kept until the connection shows
// what comes next: bytes behind a response that begin no other (a Content-Length too small) are added to its body
// (unexpected_body), with response_body and response_complete once more; of bodies above 4 KiB only those bytes.
//
// As libhtp 0.5 in Suricata does it: lines end in CR LF, LF, LF CR or a CR alone (responses); headers fold, with NUL
// too; a folded line with a colon is a header of its own (HTTP/1.1 responses); names match without case and NULs; chunk
// sizes of responses may stand behind white space and before anything that is no digit, but for the last one (0x8 is no
// size); a response's body declared chunked that is not is taken as it is; the first number of Content-Length counts,
// chunked goes before it; what comes instead of a status line is an HTTP/0.9 body, unless the next line begins with H.
// Different: see docs/flows.md.
//
// HTTP/2's preface (RFC 9113 section 3.4) at the beginning of a connection is one when the server answers it with
// SETTINGS. Until then it waits with what follows it; what is none after all is a request like others.
//
// Bounds: Settings; once half of the transactions are in use, two requests of a connection may wait, not `pipelined`;
// when all are, one that has some is evicted. Everything else is in the pool and the store of transactions; while the
// pool is nearly full, what an established connection brings evicts a few others, before it is parsed: those that are
// not established, then those between messages, then the longest without bytes. Bodies end at their limit: flagged, and
// no further body events. A connection that cannot be parsed on has a StopReason; what it held completes as
// `incomplete`. The transactions do not depend on how the bytes were cut into segments, but for body events.
//
// A connection that is evicted between messages loses nothing but bytes that would still belong to its last response:
// it is set aside, and goes on in another record with what it sends next (Rest).
//
// Of a connection that is HTTP the sink hears when it goes beyond a Limit. It is HTTP once it has had a status line,
// or, where the answer did not begin with something else, a request whose method is known or whose version is HTTP's.
//
// Thread-safety: none, one lane. The sink may not call the parser. Cost: two copies of the headers, one of the body.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "flow/block_pool.h"
#include "flow/http/framing.h"
#include "flow/http/message.h"
#include "flow/http/settings.h"
#include "flow/http/text.h"
#include "flow/packet.h"

namespace sluice::flow::http {

enum class Event : std::uint8_t {
  request_line,
  request_headers,
  request_body,
  request_complete,
  response_line,
  response_headers,
  response_body,
  response_complete,
  request_trailers,
  response_trailers,
};

struct Connection;

class TransactionSink {
 public:
  virtual void transaction(Connection& connection, Event event, Transaction& transaction) = 0;
  virtual void stopped(Connection& connection, StopReason reason) = 0;
  // Once for a connection that is HTTP, behind the events of what is still shown, and before stopped().
  virtual void limited(Connection& /*connection*/, Limit /*limit*/) {}
  // A body's decoding takes more than what comes with its packet (Parser::begin_packet()), by what makes so many bytes.
  // False: the body is cut there.
  virtual bool decodes(Connection& /*connection*/, std::uint64_t /*bytes*/) { return true; }
  // It has taken so much besides, before it could be asked for; the body is cut, or goes on.
  virtual void decoded(Connection& /*connection*/, std::uint64_t /*bytes*/) {}

 protected:
  ~TransactionSink() = default;
};

// What one side is about to send.
enum class Phase : std::uint8_t {
  detect,
  first_line,
  header_lines,
  body_fixed,     // `left` bytes
  body_to_close,  // all bytes
  chunk_size,
  chunk_data,  // `left` bytes
  trailer_lines,
  perhaps_body,  // a response that should have none, but declares one
  connect_wait,  // behind CONNECT, until the response, or a request
  http2_wait,    // before what may be HTTP/2's preface, until the server's first bytes
  ignore,        // not HTTP, or stopped
};

struct Side {
  Phase phase = Phase::detect;
  bool is_http = false;
  bool is_other = false;  // its first bytes are no HTTP
  bool closed = false;
  bool after_lf_cr = false;      // the line before ended in LF CR
  bool junk = false;             // lines were skipped before the status line
  bool has_trailers = false;     // some have come; `text` and `fields` have the message's headers, too
  bool have_header = false;      // `header` holds one that may go on in the next line
  bool header_folded = false;    // it has more than one line
  bool chunk_extension = false;  // of `pending` it has been seen
  Buffer pending;                // bytes not parsed yet
  Buffer header;                 // a header's lines so far, joined
  Buffer text;                   // names and values of the message's headers
  Buffer fields;                 // of them, Field each
  std::uint32_t scanned = 0;     // of pending: no line end before
  Word word;                     // of pending, where one is looked for
  Framing framing;               // of the message that `current` is
  std::uint64_t left = 0;
  Transaction* current = nullptr;  // being parsed
  ContentDecoder decoder;
  Buffer coded;  // a request's body as it came, where it is decoded
};

// Of a connection that was set aside, what another record goes on with.
struct Rest {
  std::uint32_t made = 0;  // transactions: the next one's number
  Phase phases[2] = {Phase::detect, Phase::detect};
  bool is_http[2] = {};
  bool asked = false, answered = false, answered_otherwise = false, is_http1 = false, limited = false;
  bool there = false;  // false: there was none
};

struct Connection;

// What a request was that was given up before its answer: that says how the answer ends.
enum class Owed : std::uint8_t { other, head, connect };

// A connection's place in a list.
struct Links {
  Connection* next = nullptr;
  Connection* before = nullptr;
};

struct Connection {
  Side sides[2];                 // by Direction
  Transaction* first = nullptr;  // oldest; its response is the next to come
  Transaction* last = nullptr;
  Transaction* retained = nullptr;  // complete; bytes that follow may belong to it
  Buffer owed;                      // Owed each: answers that come before that to `first`
  unsigned waiting = 0;             // transactions between them
  std::uint64_t made = 0;
  StopReason stopped = StopReason::none;
  bool asked = false;     // a request line has come that is one
  bool answered = false;  // a status line has
  bool answered_otherwise = false;
  bool is_http1 = false;  // what looks like HTTP/2's preface is a request
  bool limited = false;
  void* user = nullptr;  // the caller's
  // The caller's, before data(): its handshake is done, so that it is no forged packet's alone.
  bool established = true;
  Links order;                   // the parser's free list, or one of connections by their last bytes
  Links holders;                 // of those with transactions, or with bytes that wait, likewise
  std::uint8_t rank = 0;         // of `order`
  std::uint8_t holder_rank = 0;  // of `holders`; 0: it is in none
  std::uint32_t heard = 0;       // when its last bytes came, in calls of data() for all
};

class Parser {
 public:
  // Capacity for so many connections and transactions at a time, reserved here.
  Parser(const Settings& settings, BlockPool& pool, std::uint32_t connections, std::uint32_t transactions,
         TransactionSink& sink);
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // Evicts one when all are in use: the longest without bytes of those that are not established, else of those that
  // have not shown to be HTTP, else of those between messages, else of all. The sink hears that it stopped (`evicted`,
  // or `set_aside`, when rest() says what to go on with), and it is closed. nullptr: there is none (counted as stopped
  // for no_memory). `rest`: of one that was set aside, and is no new one.
  //
  // One that is not established evicts none that is, neither here nor for a transaction, and has no capacity once half
  // of the pool is in use, or a quarter of the transactions: it stops for no_memory, or is nullptr and not counted, and
  // may be opened again when it is established.
  Connection* open(bool established = true, const Rest& rest = {});
  static Rest rest(const Connection& connection);
  void data(Connection& connection, Direction direction, std::string_view bytes);
  // For what a packet brings, however many pieces of data(): it may make free_decoding bytes by decoding, and
  // decoded_to for each that it brings. Of more the sink is asked (TransactionSink::decodes()).
  void begin_packet() { free_decoding_ = free_decoding; }
  static constexpr std::uint64_t free_decoding = 4096, decoded_to = 20;
  void gap(Connection& connection, Direction direction, std::uint64_t bytes);
  void closed(Connection& connection, Direction direction);
  void close(Connection* connection);
  // The same, and nobody hears of what is open in it.
  void abandon(Connection* connection);

  const Counters& counters() const { return counters_; }
  std::uint64_t memory_bytes() const { return memory_bytes(connections_.capacity(), transactions_.capacity()); }
  static std::uint64_t memory_bytes(std::uint64_t connections, std::uint64_t transactions) {
    return connections * sizeof(Connection) + transactions * sizeof(Transaction);
  }

 private:
  // parser.cc
  void run(Connection& connection, Direction direction, std::string_view bytes);
  std::size_t most_pending(const Side& side) const;
  bool step(Connection& connection, Direction direction);
  bool line_step(Connection& connection, Direction direction);
  bool detect(Connection& connection, Direction direction);
  void drop_pending(Side& side, std::size_t count);
  void stop(Connection& connection, StopReason reason, Limit limit = Limit::none);
  bool is_http(const Connection& connection) const;
  void exceed(Connection& connection, Limit limit);
  void report_limit(Connection& connection, Limit limit);
  void end_of_side(Connection& connection, Direction direction);
  void event(Connection& connection, Event event, Transaction& transaction);

  // records.cc
  Transaction* make(Connection& connection, bool in_front);
  // In the order of their last bytes.
  template <Links Connection::*links>
  struct List {
    void add(Connection& connection);
    void remove(Connection& connection);
    Connection* oldest = nullptr;
    Connection* newest = nullptr;
  };
  void enlist(Connection& connection);
  static bool is_between_messages(const Connection& connection);
  static void go_on_with(Connection& connection, const Rest& rest);
  void delist(Connection& connection);
  void hold(Connection& connection);
  void hold_as(Connection& connection, std::uint8_t holding);
  void hold_none(Connection& connection);
  bool has_capacity_for_new() const { return pool_.in_use() * 2 < pool_.capacity(); }
  bool has_reserve() const { return pool_.in_use() <= pool_.capacity() - reserve_ && pool_.has(reserved_block_); }
  void ensure_capacity(const Connection& connection);
  Connection* holder_to_evict(const Connection& connection) const;
  Transaction* free_transaction(const Connection& connection);
  void evict(Connection& connection);
  void unlink(Connection& connection, Transaction* transaction);
  bool give_up_oldest(Connection& connection);
  void let_go(Connection& connection);
  void retain(Connection& connection, Transaction& transaction);
  void release(Connection& connection);

  // lines.cc
  struct Line {
    std::string_view text;   // without its end
    std::string_view whole;  // with it
    bool crlf = true;
    bool ends_headers = false;
  };
  bool next_line(Side& side, Direction direction, Line& line);
  bool response_line_end(Side& side, std::string_view pending, Line& line);
  bool request_line_end(Side& side, std::string_view pending, Line& line);
  void header_line(Connection& connection, Direction direction, const Line& line);
  bool continues(const Side& side, Direction direction, std::string_view line);
  bool add_field(Side& side, Message& message);
  // A field of the message's while they are merged.
  struct Merged {
    Field found, made;
    std::uint64_t hash;
    std::uint32_t next, last;  // of the same name: 1 + number, 0: none; the last one's number, of the first
    FieldName name;
    bool first;
  };
  void chain_names(const Side& side, std::size_t count);
  bool merge_fields(Side& side, Message& message, bool request);
  void end_headers(Connection& connection, Direction direction);
  bool begin_trailers(Side& side, const Message& message);
  void end_trailers(Connection& connection, Direction direction);
  bool keep_raw(Connection& connection, Message& message, std::string_view whole);

  // body.cc
  class BodyAppender;
  std::size_t take_body(Connection& connection, Direction direction, std::string_view bytes);
  static bool is_plain_size(Side& side, Direction direction, std::size_t from, std::size_t end);
  bool chunk_size(Connection& connection, Direction direction);
  void bad_chunk(Connection& connection, Direction direction, Limit limit);
  void add_body(Connection& connection, Direction direction, std::string_view bytes);
  void begin_body(Connection& connection, Direction direction);
  void end_body(Connection& connection, Direction direction);
  void keep_coded(Side& side, Message& message, std::string_view bytes);
  void report_lost(Connection& connection, bool lost);
  void show_coded(Connection& connection, Side& side, Message& message);
  void body_event(Connection& connection, Direction direction, std::size_t before, bool truncated_before);

  // request.cc
  void request_line(Connection& connection, const Line& line);
  void request_headers(Connection& connection);
  bool waits_for_http2(Connection& connection);
  void request_done(Connection& connection);

  // response.cc
  void status_line(Connection& connection, const Line& line);
  bool not_a_status(Connection& connection, const Line& line);
  void body_without_status(Connection& connection);
  static bool is_being_answered(const Transaction& transaction);
  Transaction* begin_response(Connection& connection);
  void response_headers(Connection& connection);
  void response_done(Connection& connection);
  bool perhaps_body(Connection& connection);

  Settings settings_;
  BlockPool& pool_;
  TransactionSink& sink_;
  std::vector<Connection> connections_;
  std::vector<Transaction> transactions_;
  Connection* free_connections_ = nullptr;
  Transaction* free_transactions_ = nullptr;
  std::size_t transactions_in_use_ = 0;
  List<&Connection::order> lists_[4];      // by Rank: the first are evicted first
  List<&Connection::holders> holders_[6];  // by Holding
  std::uint32_t heard_ = 0;                // calls of data()
  std::size_t reserve_ = 0, reserved_block_ = 0;
  Counters counters_;
  std::uint64_t free_decoding_ = 0;
  std::uint64_t seed_;  // of names' hashes
  std::vector<Merged> merged_;
  std::vector<std::uint32_t> first_of_name_;  // by hash: 1 + number
};

}  // namespace sluice::flow::http
