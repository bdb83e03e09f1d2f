#include "flow/conversations.h"

#include <bit>
#include <limits>
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

// The conversation has ended with an RST of this side, which does not go on after it.
bool has_reset(const Flow& flow, Direction direction) {
  return flow.reset() && flow.new_syn == static_cast<std::uint32_t>(direction);
}

// Of a silent flow: whether this side goes on with what has ended here. The other side of an RST that did not get it
// may, until it is answered with an RST.
bool may_go_on(const Flow& flow, Direction direction) {
  return flow.has_all(FlowFlag::fin_both) && flow.new_syn == 1U - static_cast<std::uint32_t>(direction);
}

}  // namespace

Conversations::Conversations(const ConversationSettings& settings, ConversationSink& sink)
    : sink_(sink),
      table_(settings.flows, this),
      stream_pool_(settings.stream_bytes),
      http_pool_(settings.http_bytes),
      reassembler_(with_midstream(settings.streams, settings.flows.midstream), stream_pool_),
      parser_(settings.http, http_pool_, settings.http_connections, settings.http_transactions, *this),
      drop_silent_(settings.drop_silent),
      stream_idle_(settings.stream_idle) {
  extras_.reserve(settings.extras);
}

// Another free record. False: there are as many as there may be.
bool Conversations::make_extra() {
  if (extras_.size() == extras_.capacity()) return false;
  extras_.emplace_back().next = free_extras_;
  free_extras_ = static_cast<std::uint32_t>(extras_.size() - 1);
  return true;
}

Conversations::~Conversations() {
  table_.flush();
}

std::uint64_t Conversations::memory_bytes() const {
  return FlowTable::memory_bytes(table_.capacity()) + stream_pool_.memory_bytes() + http_pool_.memory_bytes() +
         parser_.memory_bytes() + extras_.capacity() * sizeof(Extra);
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
  const FlowState before = seen.flow->state;
  const std::array<std::uint32_t, 2> ends = seen.flow->end;
  seen.check = table_.track(*seen.flow, seen.direction, packet, now, expected);
  if (seen.flow->state != before && seen.flow->extra != no_index) [[unlikely]] {
    unlink(extras_[seen.flow->extra], before);
    link(extras_[seen.flow->extra], seen.flow->state);
  }
  Extra* extra = nullptr;
  if (packet.protocol == packet::protocol_tcp && !packet.fragment && seen.check == TcpCheck::good) {
    const bool is_new = seen.flow->extra == no_index;
    extra = packet.payload.empty() ? extra_if_any(*seen.flow) : extra_for_stream(*seen.flow, now);
    if (is_new && extra != nullptr) [[unlikely]] {
      close_ended(*seen.flow, *extra, before, ends);
    }
  }
  without_session_ += seen.check == TcpCheck::no_session && !packet.payload.empty() ? 1 : 0;
  bool goes_on = sink_.tracked(*seen.flow, seen.direction, extra != nullptr);
  if (goes_on && extra != nullptr && (packet.tcp_flags & tcp_rst) == 0 && Reassembler::something_waits(extra->stream))
      [[unlikely]] {
    const Waiting waiting = Reassembler::may_release(extra->stream, seen.direction, packet);
    goes_on = waiting.segments == 0 || sink_.may_release(*seen.flow, seen.direction, waiting);
  }
  if (seen.check != TcpCheck::good && goes_on) [[unlikely]] {
    refuse(seen, packet);
  }
  if (extra == nullptr) {
    return seen;
  }
  Taken begun = Taken::all;
  if (opening) [[unlikely]] {
    begun = begin_streams(*seen.flow, *extra, seen.direction, packet);
  }
  if (goes_on && !((packet.tcp_flags & tcp_rst) != 0 && seen.flow->reset_unanswered())) {
    feed(*seen.flow, *extra, seen.direction, packet, begun);
  }
  return seen;
}

// What is `bad` the end host would ignore; it may know better, and take bytes that its stream never gets. A silent
// conversation goes on at its hosts, too.
void Conversations::refuse(const Seen& seen, const Packet& packet) {
  if (packet.payload.empty() || (packet.tcp_flags & tcp_rst) != 0) {
    return;
  }
  if (seen.check == TcpCheck::bad && reassembler_.is_guarded()) {
    ++outside_refused_;
    sink_.refused(*seen.flow, seen.direction, Taken::outside);
  } else if (seen.check == TcpCheck::no_session && drop_silent_ && seen.flow->state == FlowState::silent &&
             !may_go_on(*seen.flow, seen.direction)) {
    sink_.refused(*seen.flow, seen.direction, Taken::silent);
  }
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
  if (taken == Taken::conflict || taken == Taken::no_capacity) {
    sink_.refused(flow, direction, taken);
  }
  if (taken != Taken::all) {
    sink_.not_taken(flow, extra, direction);
  }
  if (extra.http != nullptr && extra.http_stopped != http::StopReason::none) {
    extra.http_waits = !extra.http->established && extra.http_stopped == http::StopReason::no_memory;
    close_http(extra);
    extra.http_stopped = extra.http_waits ? http::StopReason::none : extra.http_stopped;
  }
}

void Conversations::touch_memory() {
  stream_pool_.touch();
  http_pool_.touch();
  while (make_extra()) {
  }
}

Extra* Conversations::extra_for_stream(Flow& flow, Milliseconds now) {
  if (flow.extra == no_index) [[unlikely]] {
    if (!sink_.wants_stream(flow)) {
      return nullptr;
    }
    if (free_extras_ == no_index && !make_extra()) {
      ensure_capacity_for_stream(now);
    } else if (stream_pool_.in_use() > stream_pool_.capacity() / 4 * 3) {
      end_idle(now);
    }
  }
  return extra_of(flow);
}

// Closed flows keep theirs for what still comes of them, and have no right to it when another needs one; nor do those
// that one side alone has made, nor one that has been silent for long. One flow ends at most: it has what is wanted.
void Conversations::ensure_capacity_for_stream(Milliseconds now) {
  for (const FlowState state : {FlowState::closed, FlowState::fresh}) {
    const List& list = in_class_[FlowTable::class_of(state)];
    if (list.head != no_index) {
      table_.evict(table_.at(extras_[list.head].flow));
      return;
    }
  }
  end_idle(now);
}

// Of the two established flows with a record that have waited longest for a look.
void Conversations::end_idle(Milliseconds now) {
  const List& list = in_class_[FlowTable::class_of(FlowState::established)];
  for (int look = 0; look < 2 && list.head != no_index; ++look) {
    Extra& extra = extras_[list.head];
    Flow& flow = table_.at(extra.flow);
    if (table_.evict_silent(flow, now, stream_idle_)) {
      return;
    }
    unlink(extra, flow.state);
    link(extra, flow.state);
  }
}

void Conversations::link(Extra& extra, FlowState state) {
  List& list = in_class_[FlowTable::class_of(state)];
  const auto index = static_cast<std::uint32_t>(&extra - extras_.data());
  extra.previous = list.tail;
  extra.next = no_index;
  (list.tail != no_index ? extras_[list.tail].next : list.head) = index;
  list.tail = index;
}

void Conversations::unlink(Extra& extra, FlowState state) {
  List& list = in_class_[FlowTable::class_of(state)];
  (extra.previous != no_index ? extras_[extra.previous].next : list.head) = extra.next;
  (extra.next != no_index ? extras_[extra.next].previous : list.tail) = extra.previous;
}

Extra* Conversations::extra_of(Flow& flow) {
  if (flow.extra != no_index) {
    return &extras_[flow.extra];
  }
  if (flow.state == FlowState::silent) {
    return nullptr;
  }
  if (free_extras_ == no_index && !make_extra()) {
    ++extras_refused_;
    return nullptr;
  }
  flow.extra = free_extras_;
  Extra& extra = extras_[free_extras_];
  free_extras_ = extra.next;
  ++extras_in_use_;
  extra.flow = table_.index_of(flow);
  extra.bits_as_of = bits_as_of_;
  link(extra, flow.state);
  if (flow.protocol == packet::protocol_tcp && !flow.of_fragments() && !flow.has(FlowFlag::midstream)) {
    // The handshake was tracked before there was a stream: it begins behind the SYNs.
    reassembler_.begin(extra.stream, Direction::to_server, flow.initial[0] + 1);
    if (flow.state != FlowState::fresh) {
      reassembler_.begin(extra.stream, Direction::to_client, flow.initial[1] + 1);
    }
  }
  return &extra;
}

// The first data of a conversation that has ended without any, `ends` before this packet: it is in no stream.
void Conversations::close_ended(const Flow& flow, Extra& extra, FlowState before,
                                const std::array<std::uint32_t, 2>& ends) {
  const bool reset = before == FlowState::closed && flow.reset();
  for (const Direction direction : {Direction::to_server, Direction::to_client}) {
    const auto side = static_cast<unsigned>(direction);
    const bool fin = flow.has(side == 0 ? FlowFlag::fin_client : FlowFlag::fin_server);
    if (reset || (fin && before != FlowState::fresh && ends[side] == flow.initial[side] + 2)) {
      Reassembler::end_without_data(extra.stream, direction);
    }
  }
}

void Conversations::clear_bits(const Extra::Bits& mask) {
  if (bits_as_of_ == std::numeric_limits<std::uint16_t>::max()) {
    for (Extra& extra : extras_) {
      drop_cleared(extra);
      extra.bits_as_of = 0;
    }
    cleared_ = {};
    bits_as_of_ = 0;
  }
  ++bits_as_of_;
  for (std::size_t bit = 0; bit < cleared_.size(); ++bit) {
    if ((mask[bit / 64] >> bit % 64 & 1) != 0) {
      cleared_[bit] = bits_as_of_;
    }
  }
}

void Conversations::drop_cleared(Extra& extra) const {
  for (std::size_t word = 0; word < extra.bits.size(); ++word) {
    for (std::uint64_t left = extra.bits[word]; left != 0; left &= left - 1) {
      const auto bit = static_cast<std::size_t>(std::countr_zero(left));
      if (cleared_[word * 64 + bit] > extra.bits_as_of) {
        extra.bits[word] &= ~(std::uint64_t{1} << bit);
      }
    }
  }
  extra.bits_as_of = bits_as_of_;
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
  free_extra(flow);
}

void Conversations::give_back(Flow& flow) {
  if (flow.extra != no_index) {
    parser_.abandon(extras_[flow.extra].http);
    free_extra(flow);
  }
}

void Conversations::free_extra(Flow& flow) {
  Extra& extra = extras_[flow.extra];
  reassembler_.release(extra.stream);
  const std::uint32_t index = flow.extra;
  unlink(extra, flow.state);
  extra = Extra{};
  extra.next = free_extras_;
  free_extras_ = index;
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
  if (!opens_http()) {
    return;
  }
  if (sink_.http_goes_by(*flow_, released)) [[unlikely]] {
    parser_.gap(*extra_->http, direction, data.fresh.size());
    return;
  }
  if (std::exchange(extra_->http_waits, false)) [[unlikely]] {
    parse_what_was_said(direction, data);
  }
  window_ = data.window;
  direction_ = direction;
  parse(direction, data.fresh);
  window_ = {};
}

void Conversations::parse(Direction direction, std::string_view bytes) {
  if (extra_->http_stopped == http::StopReason::none && opens_http()) {
    parser_.data(*extra_->http, direction, bytes);
  }
}

// There was no capacity for its parser, or not any more, before it was established: what came before `data`, as far as
// it was kept.
void Conversations::parse_what_was_said(Direction direction, const StreamData& data) {
  for (const Direction side : {Direction::to_server, Direction::to_client}) {
    const bool own = side == direction;
    const std::uint64_t size = own ? data.offset : extra_->stream.sides[static_cast<unsigned>(side)].offset;
    const std::string_view said =
        own ? data.window.substr(0, data.window.size() - data.fresh.size()) : reassembler_.kept(extra_->stream, side);
    if (size != 0 && said.size() == size) {
      parse(side, said);
    } else if (size != 0 && extra_->http_stopped == http::StopReason::none) {
      parser_.gap(*extra_->http, side, size);
    }
  }
}

// Or has it open. False: there is no memory for it, or not before it is established.
bool Conversations::opens_http() {
  const bool established = flow_->has(FlowFlag::was_open) && !flow_->unanswered();
  if (extra_->http != nullptr) {
    extra_->http->established = established;
    return true;
  }
  const http::Rest rest = std::exchange(extra_->http_rest, {});
  extra_->http = parser_.open(established || rest.there, rest);  // what was set aside was established
  if (extra_->http == nullptr) {
    extra_->http_waits = !established;
    if (!established) {
      return false;
    }
    extra_->http_stopped = http::StopReason::no_memory;
    sink_.http_stopped(*flow_, *extra_, extra_->http_stopped);
    return false;
  }
  extra_->http->user = extra_;
  extra_->http->established = established;
  return true;
}

// HTTP begins anew, too, with what the other side has said, as far as that is whole.
void Conversations::restarted(Direction direction) {
  extra_->carried[static_cast<unsigned>(direction)] = {};
  extra_->http_waits = false;
  extra_->http_rest = {};
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
  if (extra_->http != nullptr || (extra_->http_rest.there && opens_http())) {
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

void Conversations::decoded(http::Connection& connection, std::uint64_t bytes) {
  sink_.decoded(table_.at(static_cast<Extra*>(connection.user)->flow), bytes);
}

void Conversations::limited(http::Connection& connection, http::Limit limit) {
  sink_.http_limited(table_.at(static_cast<Extra*>(connection.user)->flow), limit);
}

void Conversations::stopped(http::Connection& connection, http::StopReason reason) {
  Extra& extra = *static_cast<Extra*>(connection.user);
  extra.http_stopped = reason;
  if (reason == http::StopReason::evicted) {
    extra.http = nullptr;  // the parser closes it
    extra.http_waits = !connection.established;
    extra.http_stopped = extra.http_waits ? http::StopReason::none : reason;
  } else if (reason == http::StopReason::set_aside) {
    extra.http = nullptr;  // likewise
    extra.http_rest = http::Parser::rest(connection);
    extra.http_stopped = http::StopReason::none;
  }
  sink_.http_stopped(table_.at(extra.flow), extra, reason);
}

}  // namespace sluice::flow
