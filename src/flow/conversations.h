// One lane's conversations, whole: the flow table, TCP streams and HTTP put together, as a rule engine uses them.
//
//   Conversations conversations(settings, sink);
//   const Seen seen = conversations.packet(packet, now);   // events come to the sink from within
//   if (seen.flow != nullptr && seen.flow->established() && seen.direction == Direction::to_server) ...
//
// A TCP flow gets an Extra with its first byte of data (or by extra_of(), for flow bits of any flow), from a fixed
// number: where all are in use, one of the closed flows that have one ends for it, the longest closed first. Else, of
// those that nobody has answered, the one that has had its for longest, so that SYNs with data take them from each
// other. Else, of two established ones, by turns, one that has been silent for stream_idle. Without one it is tracked,
// but not reassembled (`extras_refused`). Each TCP stream is looked at as HTTP until its parser stops. Who looks at a
// flow no further gives its record back (give_back()), and the flow stays.
//
// Memory is taken in the constructor, and is what memory_bytes() says. Thread-safety: none, one lane. The sink may not
// call back.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "flow/block_pool.h"
#include "flow/carried.h"
#include "flow/flow_table.h"
#include "flow/http/connection.h"
#include "flow/tcp_stream.h"

namespace sluice::flow {

// What only some flows need. What each segment touches comes first.
struct alignas(64) Extra {
  static constexpr unsigned bit_count = 512;
  static constexpr std::size_t of_each_segment = 256;  // bytes

  TcpStream stream;
  http::Connection* http = nullptr;
  http::StopReason http_stopped = http::StopReason::none;
  bool http_waits = false;       // for the handshake: there was no capacity for its parser before
  std::uint16_t bits_as_of = 0;  // Conversations::bits_of()
  std::uint32_t flow = no_index;
  std::uint32_t next = no_index;  // free list; or of the flow's class, with previous
  std::uint32_t previous = no_index;
  std::array<Carried, 2> carried;  // a rule engine's, by Direction
  using Bits = std::array<std::uint64_t, bit_count / 64>;
  Bits bits{};           // a rule engine's flowbits: by Conversations::bits_of()
  http::Rest http_rest;  // of its HTTP that was set aside, until it goes on
};
static_assert(sizeof(Extra) == 384);

// What a rule engine hears. Views hold during the call; HTTP ones as http/message.h says.
class ConversationSink {
 public:
  // A TCP flow without a record brings data: whether it gets one.
  virtual bool wants_stream(const Flow& /*flow*/) { return true; }
  // A packet's flow is brought up to date by it, and its stream (`streamed`: there is one for it) is not yet. False:
  // the stream does not get it, for the receiver will not.
  virtual bool tracked(Flow& /*flow*/, Direction /*direction*/, bool /*streamed*/) { return true; }
  // Behind tracked(): so much that waits the packet, which is no RST, may release. False: its stream does not get it,
  // for the receiver will not.
  virtual bool may_release(Flow& /*flow*/, Direction /*direction*/, Waiting /*waiting*/) { return true; }
  virtual void stream_data(Flow& flow, Extra& extra, Direction direction, const StreamData& data) = 0;
  // The packet that is looked at has bytes that its stream does not get, or not any more (Reassembler::feed()). Behind
  // what the packet brought besides.
  virtual void not_taken(Flow& /*flow*/, Extra& /*extra*/, Direction /*direction*/) {}
  // The packet must not reach the receiver: `why` is none of `all` and `part`. Before not_taken().
  virtual void refused(Flow& /*flow*/, Direction /*direction*/, Taken /*why*/) {}
  // StreamSink::waits(), takes_waiting().
  virtual std::uint8_t waits(Flow& /*flow*/, Direction /*direction*/) { return 0; }
  virtual bool takes_waiting(Flow& /*flow*/, Direction /*direction*/, std::size_t /*bytes*/) { return true; }
  virtual void stream_gap(Flow& flow, Extra& extra, Direction direction, std::uint64_t bytes) = 0;
  // Whether the parser of HTTP goes without the bytes that stream_data() has just reported: for it they are a gap then,
  // and where it cannot go on behind one, in what is no body, it stops for that (StopReason::gap). `released`: they
  // have waited for what the packet brings; the first of a packet are its own.
  virtual bool http_goes_by(Flow& /*flow*/, bool /*released*/) { return false; }
  virtual void http(Flow& flow, Extra& extra, http::Event event, http::Transaction& transaction) = 0;
  // http::TransactionSink::decodes(), decoded().
  virtual bool decodes(Flow& /*flow*/, std::uint64_t /*bytes*/) { return true; }
  virtual void decoded(Flow& /*flow*/, std::uint64_t /*bytes*/) {}
  // http::TransactionSink::limited(), stopped(). What is `set_aside` goes on as HTTP.
  virtual void http_limited(Flow& /*flow*/, http::Limit /*limit*/) {}
  virtual void http_stopped(Flow& flow, Extra& extra, http::StopReason reason) = 0;
  // Streams and transactions have ended; `extra` may be nullptr.
  virtual void flow_ended(Flow& flow, Extra* extra, FlowEndReason reason) = 0;

 protected:
  ~ConversationSink() = default;
};

struct ConversationSettings {
  FlowSettings flows;
  StreamSettings streams;  // its `midstream` is taken from `flows`
  http::Settings http;
  std::uint32_t extras = 1U << 16;
  std::uint32_t http_connections = 1U << 14;
  std::uint32_t http_transactions = 1U << 15;
  std::uint64_t stream_bytes = 64U << 20;  // for segments that wait and for histories
  std::uint64_t http_bytes = 64U << 20;    // for headers, bodies and decompression
  // For who forwards: data of a conversation that goes on behind its timeout (FlowSettings::remembered) is refused,
  // where it is not taken up in the middle.
  bool drop_silent = false;
  // Established flows that are silent for so long give their record to streams that begin.
  Milliseconds stream_idle = 600'000;
};

struct Seen {
  Flow* flow = nullptr;  // nullptr: refused by the table
  Direction direction = Direction::to_server;
  TcpCheck check = TcpCheck::good;
};

class Conversations final : private FlowEnd, private StreamSink, private http::TransactionSink {
 public:
  Conversations(const ConversationSettings& settings, ConversationSink& sink);
  ~Conversations();
  Conversations(const Conversations&) = delete;
  Conversations& operator=(const Conversations&) = delete;

  Seen packet(const Packet& packet, Milliseconds now) { return this->packet(packet, table_.hash(packet), now); }
  Seen packet(const Packet& packet, std::uint32_t hash, Milliseconds now);
  // Ahead of packet(), once table().prefetch_flow() has brought the flow: the record of its stream, and `payload`, if
  // the stream is to take it.
  void prefetch_stream(std::uint32_t hash, std::string_view payload) const;
  // Later, but before packet(): where the payload will be copied to.
  void prefetch_history(std::uint32_t hash, std::uint16_t source_port, std::size_t bytes) const;
  // The flow's, made if it has none; nullptr: all are in use, counted, or the flow is silent.
  Extra* extra_of(Flow& flow);
  // The flow's record, with its stream, its HTTP and its bits, if it has one; nobody hears of what is left in them, and
  // what waits is freed as further packets come. Not from within packet().
  void give_back(Flow& flow);
  Extra* extra_if_any(const Flow& flow) { return flow.extra == no_index ? nullptr : &extras_[flow.extra]; }

  // Whether bytes that come next in the direction are parsed as HTTP, or may show to be some: the parser has not
  // stopped, and the stream goes on.
  bool may_parse_http(const Flow& flow, Direction direction) const {
    if (flow.extra == no_index) return true;
    const Extra& extra = extras_[flow.extra];
    return extra.http_stopped == http::StopReason::none && reassembler_.goes_on(extra.stream, direction);
  }
  // Within ConversationSink::http(): the direction's bytes that end with those that are parsed, or else with its last.
  std::string_view window(const Flow& flow, Direction direction) const;

  // The bits of a flow, without those that were cleared in all of them since it was asked about last.
  Extra::Bits& bits_of(Extra& extra) {
    if (extra.bits_as_of != bits_as_of_) [[unlikely]] {
      drop_cleared(extra);
    }
    return extra.bits;
  }
  // In all flows, as bits_of() reports them. Under 1 us, but for each 65,535th time, which goes through all extras.
  void clear_bits(const Extra::Bits& mask);

  FlowTable& table() { return table_; }
  const FlowTable& table() const { return table_; }
  // Ends all flows: at the end of a capture.
  void flush() { table_.flush(); }

  const StreamCounters& stream_counters() const { return reassembler_.counters(); }
  // Packets with data behind their sender's own RST, which are refused where `drop_conflicts` is.
  std::uint64_t behind_reset() const { return behind_reset_; }
  // Packets with data that are `bad` (TcpCheck), and refused where the stream is guarded.
  std::uint64_t outside_refused() const { return outside_refused_; }
  // TCP packets with data of conversations that were not seen to begin, or are silent.
  std::uint64_t without_session() const { return without_session_; }
  const http::Counters& http_counters() const { return parser_.counters(); }
  std::uint64_t extras_refused() const { return extras_refused_; }
  std::uint32_t extras_in_use() const { return extras_in_use_; }
  std::uint64_t memory_bytes() const;
  // BlockPool::touch() of its pools, and all records of streams; all else is touched from the start.
  void touch_memory();
  // Of such as these will be, but for what pools need besides their bytes.
  static std::uint64_t memory_bytes(const ConversationSettings& settings);
  const BlockPool& stream_pool() const { return stream_pool_; }
  BlockPool& http_pool() { return http_pool_; }

 private:
  void flow_ended(Flow& flow, FlowEndReason reason) override;
  void data(Direction direction, const StreamData& data) override;
  std::uint8_t waits(Direction direction) override { return sink_.waits(*flow_, direction); }
  bool takes_waiting(Direction direction, std::size_t bytes) override {
    return sink_.takes_waiting(*flow_, direction, bytes);
  }
  void gap(Direction direction, std::uint64_t bytes) override;
  void closed(Direction direction) override;
  void transaction(http::Connection& connection, http::Event event, http::Transaction& transaction) override;
  bool decodes(http::Connection& connection, std::uint64_t bytes) override;
  void decoded(http::Connection& connection, std::uint64_t bytes) override;
  void stopped(http::Connection& connection, http::StopReason reason) override;
  void limited(http::Connection& connection, http::Limit limit) override;
  void restarted(Direction direction) override;
  bool opens_http();
  void parse(Direction direction, std::string_view bytes);
  void parse_what_was_said(Direction direction, const StreamData& data);
  Taken begin_streams(Flow& flow, Extra& extra, Direction direction, const Packet& packet);
  void refuse(const Seen& seen, const Packet& packet);
  void feed(Flow& flow, Extra& extra, Direction direction, const Packet& packet, Taken begun);
  static void close_ended(const Flow& flow, Extra& extra, FlowState before, const std::array<std::uint32_t, 2>& ends);
  void close_http(Extra& extra);
  void free_extra(Flow& flow);
  Extra* extra_for_stream(Flow& flow, Milliseconds now);
  void drop_cleared(Extra& extra) const;
  void ensure_capacity_for_stream(Milliseconds now);
  void end_idle(Milliseconds now);
  bool make_extra();
  void link(Extra& extra, FlowState state);
  void unlink(Extra& extra, FlowState state);

  ConversationSink& sink_;
  FlowTable table_;
  BlockPool stream_pool_;
  BlockPool http_pool_;
  Reassembler reassembler_;
  http::Parser parser_;
  std::vector<Extra> extras_;             // made as they are needed, for which there is capacity from the start
  std::uint32_t free_extras_ = no_index;  // list
  // Of those in use, by FlowTable::class_of() of their flows: which came to it first, and last.
  struct List {
    std::uint32_t head = no_index;
    std::uint32_t tail = no_index;
  };
  std::array<List, 3> in_class_;
  // How often bits were cleared in all flows, and by which of these times a bit was last.
  std::uint16_t bits_as_of_ = 0;
  std::array<std::uint16_t, Extra::bit_count> cleared_{};
  std::uint32_t extras_in_use_ = 0;
  std::uint64_t extras_refused_ = 0;
  std::uint64_t behind_reset_ = 0;
  std::uint64_t outside_refused_ = 0;
  std::uint64_t without_session_ = 0;
  const bool drop_silent_;
  const Milliseconds stream_idle_;
  Flow* flow_ = nullptr;  // whose stream is being fed
  Extra* extra_ = nullptr;
  std::string_view window_;  // of the stream, while it is parsed
  Direction direction_ = Direction::to_server;
  bool has_data_ = false;  // the packet has brought some to its stream
};

}  // namespace sluice::flow
