#include "flow/conversations.h"

#include <optional>
#include <utility>

#include "base/prefetch.h"
#include "packet/headers.h"

namespace sluice::flow {
namespace {

StreamSettings with_midstream(StreamSettings settings, bool midstream) {
  settings.midstream = midstream;
  return settings;
}

// The conversation has ended with an RST of this side, which does not go on after it. One that was taken up in the
// middle may have been ended by anybody's.
bool has_reset(const Flow& flow, Direction direction) {
  const bool by_fin = flow.has(FlowFlag::fin_client) && flow.has(FlowFlag::fin_server);
  return flow.state == FlowState::closed && !by_fin && !flow.has(FlowFlag::midstream) &&
         flow.new_syn == static_cast<std::uint32_t>(direction);
}

}  // namespace

Conversations::Conversations(const ConversationSettings& settings, ConversationSink& sink)
    : sink_(sink),
      table_(settings.flows, this),
      stream_pool_(settings.stream_bytes),
      http_pool_(settings.http_bytes),
      reassembler_(with_midstream(settings.streams, settings.flows.midstream), stream_pool_),
      parser_(settings.http, http_pool_, settings.http_connections, settings.http_transactions, *this),
      extras_(settings.extras) {
  for (std::uint32_t i = settings.extras; i-- > 0;) {
    extras_[i].next = free_extra_;
    free_extra_ = i;
  }
}

Conversations::~Conversations() {
  table_.flush();
}

std::uint64_t Conversations::memory_bytes() const {
  return FlowTable::memory_bytes(table_.capacity()) + stream_pool_.memory_bytes() + http_pool_.memory_bytes() +
         parser_.memory_bytes() + extras_.size() * sizeof(Extra);
}

std::uint64_t Conversations::memory_bytes(const ConversationSettings& settings) {
  return FlowTable::memory_bytes(settings.flows.capacity) + settings.stream_bytes + settings.http_bytes +
         http::Parser::memory_bytes(settings.http_connections, settings.http_transactions) +
         settings.extras * sizeof(Extra);
}

Seen Conversations::packet(const Packet& packet, std::uint32_t hash, Milliseconds now) {
  Seen seen;
  seen.flow = table_.find_or_make(packet, hash, now, seen.direction);
  if (seen.flow == nullptr) {
    return seen;
  }
  const bool opening = seen.flow->state == FlowState::half_open || (packet.tcp_flags & tcp_syn) != 0;
  std::optional<std::uint32_t> expected;
  if ((packet.tcp_flags & tcp_rst) != 0 && seen.flow->extra != no_index) {
    expected = Reassembler::expected(extras_[seen.flow->extra].stream, seen.direction);
  }
  seen.check = table_.track(*seen.flow, seen.direction, packet, now, expected);
  Extra* extra = nullptr;
  if (packet.protocol == packet::protocol_tcp && !packet.fragment && seen.check == TcpCheck::good) {
    extra = packet.payload.empty() ? extra_if_any(*seen.flow) : extra_for_stream(*seen.flow);
  }
  const bool goes_on = sink_.tracked(*seen.flow, seen.direction, extra != nullptr);
  if (extra == nullptr) {
    return seen;
  }
  Taken begun = Taken::all;
  if (opening) [[unlikely]] {
    begun = begin_streams(*seen.flow, *extra, seen.direction, packet);
  }
  if (goes_on) {
    feed(*seen.flow, *extra, seen.direction, packet, begun);
  }
  return seen;
}

void Conversations::prefetch_stream(std::uint32_t hash, std::string_view payload) const {
  const Flow* const flow = table_.peek(hash);
  if (flow == nullptr || flow->extra == no_index) {
    return;
  }
  prefetch(&extras_[flow->extra], Extra::of_each_segment);
  if (!payload.empty()) {
    prefetch(payload.data(), payload.size());
  }
}

void Conversations::prefetch_history(std::uint32_t hash, std::uint16_t source_port, std::size_t bytes) const {
  const Flow* const flow = table_.peek(hash);
  if (flow == nullptr || flow->extra == no_index) {
    return;
  }
  const Direction direction = source_port == flow->client_port ? Direction::to_server : Direction::to_client;
  if (const auto* const place = Reassembler::place_of(extras_[flow->extra].stream, direction, bytes)) {
    prefetch(place, bytes);
  }
}

// A SYN beside others, or the answer that says which of them counts: the streams begin where the flow does. Which of
// a client's SYNs counts is left to the server, unless one brings data.
Taken Conversations::begin_streams(Flow& flow, Extra& extra, Direction direction, const Packet& packet) {
  if (flow.has(FlowFlag::midstream) || (packet.tcp_flags & tcp_rst) != 0) {
    return Taken::all;
  }
  flow_ = &flow;
  extra_ = &extra;
  const bool syn = (packet.tcp_flags & tcp_syn) != 0, ack = (packet.tcp_flags & tcp_ack) != 0;
  const auto begin = [&](Direction which, bool settled) {
    const std::uint32_t first = flow.initial[static_cast<unsigned>(which)] + 1;
    return reassembler_.begin_again(extra.stream, which, first, settled, *this);
  };
  const bool unsettled = flow.state == FlowState::fresh || flow.state == FlowState::half_open;
  const Taken mine = syn && unsettled && (ack || !packet.payload.empty()) ? begin(direction, ack) : Taken::all;
  return mine == Taken::all && ack ? begin(opposite(direction), true) : mine;
}

void Conversations::feed(Flow& flow, Extra& extra, Direction direction, const Packet& packet, Taken begun) {
  flow_ = &flow;
  extra_ = &extra;
  parser_.begin_packet();
  has_data_ = false;
  Taken taken = Taken::part;
  const bool brings_data = !packet.payload.empty() && (packet.tcp_flags & tcp_rst) == 0;
  if (brings_data && reassembler_.settings().drop_conflicts && has_reset(flow, direction)) [[unlikely]] {
    ++behind_reset_;
    taken = Taken::conflict;
  } else if (begun != Taken::all) [[unlikely]] {
    taken = begun;
  } else {
    taken = reassembler_.feed(extra.stream, direction, packet, *this);
  }
  if (taken == Taken::conflict || taken == Taken::no_room) {
    sink_.refused(flow, direction, taken);
  }
  if (taken != Taken::all) {
    sink_.not_taken(flow, extra, direction);
  }
  if (extra.http != nullptr && extra.http_stopped != http::StopReason::none) {
    close_http(extra);
  }
}

// Closed flows keep theirs for what still comes of them, and have no right to it when another needs one.
Extra* Conversations::extra_for_stream(Flow& flow) {
  while (flow.extra == no_index && free_extra_ == no_index && table_.evict_closed(flow)) {
  }
  return extra_of(flow);
}

Extra* Conversations::extra_of(Flow& flow) {
  if (flow.extra != no_index) {
    return &extras_[flow.extra];
  }
  if (free_extra_ == no_index) {
    ++extras_refused_;
    return nullptr;
  }
  flow.extra = free_extra_;
  Extra& extra = extras_[free_extra_];
  free_extra_ = extra.next;
  ++extras_in_use_;
  extra.flow = table_.index_of(flow);
  if (flow.protocol == packet::protocol_tcp && !flow.has(FlowFlag::midstream)) {
    // The handshake was tracked before there was a stream: it begins behind the SYNs.
    reassembler_.begin(extra.stream, Direction::to_server, flow.initial[0] + 1);
    if (flow.state != FlowState::fresh) {
      reassembler_.begin(extra.stream, Direction::to_client, flow.initial[1] + 1);
    }
  }
  return &extra;
}

void Conversations::flow_ended(Flow& flow, FlowEndReason reason) {
  if (flow.extra == no_index) {
    sink_.flow_ended(flow, nullptr, reason);
    return;
  }
  Extra& extra = extras_[flow.extra];
  flow_ = &flow;
  extra_ = &extra;
  reassembler_.finish(extra.stream, *this);
  close_http(extra);
  sink_.flow_ended(flow, &extra, reason);
  reassembler_.release(extra.stream);
  const std::uint32_t index = flow.extra;
  extra = Extra{};
  extra.next = free_extra_;
  free_extra_ = index;
  flow.extra = no_index;
  --extras_in_use_;
}

void Conversations::close_http(Extra& extra) {
  parser_.close(extra.http);
  extra.http = nullptr;
}

std::string_view Conversations::window(const Flow& flow, Direction direction) const {
  if (&flow == flow_ && direction == direction_ && !window_.empty()) {
    return window_;
  }
  return flow.extra == no_index ? std::string_view() : reassembler_.kept(extras_[flow.extra].stream, direction);
}

void Conversations::data(Direction direction, const StreamData& data) {
  const bool released = std::exchange(has_data_, true);
  sink_.stream_data(*flow_, *extra_, direction, data);
  if (extra_->http_stopped != http::StopReason::none) {
    return;
  }
  if (sink_.http_goes_by(*flow_, released)) [[unlikely]] {
    if (opens_http()) {
      parser_.gap(*extra_->http, direction, data.fresh.size());
    }
    return;
  }
  window_ = data.window;
  direction_ = direction;
  parse(direction, data.fresh);
  window_ = {};
}

void Conversations::parse(Direction direction, std::string_view bytes) {
  if (opens_http()) {
    parser_.data(*extra_->http, direction, bytes);
  }
}

// Or has it open. False: there is no memory for it.
bool Conversations::opens_http() {
  if (extra_->http != nullptr) {
    return true;
  }
  extra_->http = parser_.open();
  if (extra_->http == nullptr) {
    extra_->http_stopped = http::StopReason::no_memory;
    sink_.http_stopped(*flow_, *extra_, extra_->http_stopped);
    return false;
  }
  extra_->http->user = extra_;
  return true;
}

// HTTP begins anew, too, with what the other side has said, as far as that is whole.
void Conversations::restarted(Direction direction) {
  extra_->carried[static_cast<unsigned>(direction)] = {};
  if (extra_->http != nullptr) {
    close_http(*extra_);
  }
  extra_->http_stopped = http::StopReason::none;
  const StreamSide& other = extra_->stream.sides[static_cast<unsigned>(opposite(direction))];
  const std::string_view said = reassembler_.kept(extra_->stream, opposite(direction));
  if (!said.empty() && said.size() == other.offset) {
    parse(opposite(direction), said);
  }
}

void Conversations::gap(Direction direction, std::uint64_t bytes) {
  sink_.stream_gap(*flow_, *extra_, direction, bytes);
  if (extra_->http != nullptr) {
    parser_.gap(*extra_->http, direction, bytes);
  }
}

void Conversations::closed(Direction direction) {
  if (extra_->http != nullptr) {
    parser_.closed(*extra_->http, direction);
  }
}

void Conversations::transaction(http::Connection& connection, http::Event event, http::Transaction& transaction) {
  Extra& extra = *static_cast<Extra*>(connection.user);
  sink_.http(table_.at(extra.flow), extra, event, transaction);
}

bool Conversations::decodes(http::Connection& connection, std::uint64_t bytes) {
  return sink_.decodes(table_.at(static_cast<Extra*>(connection.user)->flow), bytes);
}

void Conversations::stopped(http::Connection& connection, http::StopReason reason) {
  Extra& extra = *static_cast<Extra*>(connection.user);
  extra.http_stopped = reason;
  if (reason == http::StopReason::evicted) {
    extra.http = nullptr;  // the parser closes it
  }
  sink_.http_stopped(table_.at(extra.flow), extra, reason);
}

}  // namespace sluice::flow
