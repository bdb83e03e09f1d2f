// The parser's frame: connections, transactions, what a side does next.
#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "base/random_seed.h"
#include "flow/http/connection.h"
#include "flow/http/looks.h"
#include "flow/http/text.h"

namespace sluice::flow::http {
namespace {

constexpr std::size_t slice = 2048;          // of a segment, looked at in one go while lines are read
constexpr std::size_t retained_body = 4096;  // kept after a transaction, for bytes that may belong to it
constexpr std::size_t most_owed = 4096;      // answers of a connection to requests that were given up

// Who goes first when there is no room.
enum Rank : std::uint8_t { not_established, not_http, between_messages, http };

// What is held: transactions, or bytes that wait alone. `idle`: by one that is between messages.
enum Holding : std::uint8_t { nothing, new_pending, new_transactions, idle, pending, transactions };

// What a packet evicts at most. Each that ends within a body gives back as much as some packets bring, so that a few
// are enough; what is left is for the next packet.
constexpr unsigned most_evicted = 4;

bool in_body(Phase phase) {
  return phase == Phase::body_fixed || phase == Phase::body_to_close || phase == Phase::chunk_data;
}

// Whether a CR that is no line's end to the parser, and is to some servers, stands in a line of a request, or in what
// has come of it; of that, `known` bytes have been looked at.
bool has_lone_cr(std::string_view line, std::size_t known) {
  for (std::size_t at = line.find('\r', known - std::min<std::size_t>(known, 1)); at != std::string_view::npos;
       at = line.find('\r', at + 1)) {
    if (at + 1 < line.size() && line[at + 1] != '\n') {
      return true;
    }
  }
  return false;
}

// In a first line, behind a method: what stands there may be no request's.
bool begins_known_request(std::string_view line) {
  line = trim_front(line);
  return is_known_method(take_word(line));
}

// A client of HTTP/2 may send 64 KiB of bodies before it hears of its server (RFC 9113 section 6.9.2).
constexpr std::size_t before_http2 = 96U << 10;

}  // namespace

const char* stop_reason_name(StopReason reason) {
  static constexpr std::array<const char*, stop_reasons> names = {
      "none", "not_http",  "tunnel",    "upgrade", "http2",    "header_too_long",
      "gap",  "no_memory", "bad_chunk", "evicted", "set_aside"};
  return names[static_cast<unsigned>(reason)];
}

Parser::Parser(const Settings& settings, BlockPool& pool, std::uint32_t connections, std::uint32_t transactions,
               TransactionSink& sink)
    : settings_(settings), pool_(pool), sink_(sink), connections_(connections), transactions_(transactions) {
  seed_ = random_seed();
  settings_.pipelined = std::max(settings_.pipelined, 2U);
  settings_.max_headers = std::clamp(settings_.max_headers, 1U, Settings::most_fields);
  merged_.resize(settings_.max_headers);
  first_of_name_.resize(std::bit_ceil(2 * merged_.size() + 1));
  // What a packet may ask for at once is the next block of a body, one of its bytes as they came, and what undoes two
  // codings: with the default limits less than 512 KiB, a sixteenth of 8 MiB. In what is free there is a whole block
  // for a body, too, for the pool may be in small pieces; unless that is more than a quarter of it.
  reserve_ = pool_.capacity() / 16;
  const std::uint32_t body = std::max(settings_.request_body_limit, settings_.response_body_limit);
  const bool is_unlimited = settings_.request_body_limit == 0 || settings_.response_body_limit == 0;
  const std::size_t block = is_unlimited ? BlockPool::largest : BlockPool::block_size(body);
  reserved_block_ = std::min({block, BlockPool::largest, std::bit_floor(pool_.capacity() / 4)});
  for (Connection& connection : connections_) {
    connection.order.next = free_connections_;
    free_connections_ = &connection;
  }
  for (Transaction& transaction : transactions_) {
    transaction.next = free_transactions_;
    free_transactions_ = &transaction;
  }
}

template <Links Connection::*links>
void Parser::List<links>::add(Connection& connection) {
  connection.*links = {nullptr, newest};
  (newest != nullptr ? (newest->*links).next : oldest) = &connection;
  newest = &connection;
}

template <Links Connection::*links>
void Parser::List<links>::remove(Connection& connection) {
  Links& own = connection.*links;
  (own.before != nullptr ? (own.before->*links).next : oldest) = own.next;
  (own.next != nullptr ? (own.next->*links).before : newest) = own.before;
  own = {};
}

// As the one that had bytes last.
void Parser::enlist(Connection& connection) {
  const bool is_http = connection.sides[0].is_http || connection.sides[1].is_http;
  const bool is_new = !connection.established, is_idle = is_between_messages(connection);
  const bool waits = connection.sides[0].pending.size() != 0 || connection.sides[1].pending.size() != 0;
  connection.heard = heard_;
  connection.rank = is_new ? not_established : !is_http ? not_http : is_idle ? between_messages : http;
  lists_[connection.rank].add(connection);
  if (connection.first != nullptr) {
    hold_as(connection, is_new ? new_transactions : is_idle ? idle : transactions);
  } else if (waits) {
    hold_as(connection, is_new ? new_pending : pending);
  }
}

void Parser::delist(Connection& connection) {
  lists_[connection.rank].remove(connection);
  hold_none(connection);
}

// It has a transaction now.
void Parser::hold(Connection& connection) {
  hold_as(connection, connection.established ? transactions : new_transactions);
}

void Parser::hold_as(Connection& connection, std::uint8_t holding) {
  hold_none(connection);
  connection.holder_rank = holding;
  holders_[holding].add(connection);
}

void Parser::hold_none(Connection& connection) {
  if (const std::uint8_t holding = std::exchange(connection.holder_rank, nothing); holding != nothing) {
    holders_[holding].remove(connection);
  }
}

// Nothing of it has begun that is not whole.
bool Parser::is_between_messages(const Connection& connection) {
  const auto at_beginning = [](const Side& side) {
    const bool reads = side.phase == Phase::detect || side.phase == Phase::first_line;
    return (reads && side.pending.size() == 0) || side.phase == Phase::ignore;
  };
  const bool all_whole =
      connection.first == connection.retained && connection.waiting <= 1 && connection.owed.size() == 0;
  return connection.stopped == StopReason::none && all_whole && at_beginning(connection.sides[0]) &&
         at_beginning(connection.sides[1]);
}

Rest Parser::rest(const Connection& connection) {
  Rest rest;
  rest.there = true;
  rest.made = static_cast<std::uint32_t>(connection.made);
  for (std::size_t side = 0; side < 2; ++side) {
    rest.phases[side] = connection.sides[side].phase;
    rest.is_http[side] = connection.sides[side].is_http;
  }
  rest.asked = connection.asked;
  rest.answered = connection.answered;
  rest.answered_otherwise = connection.answered_otherwise;
  rest.is_http1 = connection.is_http1;
  rest.limited = connection.limited;
  return rest;
}

void Parser::go_on_with(Connection& connection, const Rest& rest) {
  connection.made = rest.made;
  for (std::size_t side = 0; side < 2; ++side) {
    connection.sides[side].phase = rest.phases[side];
    connection.sides[side].is_http = rest.is_http[side];
    connection.sides[side].is_other = rest.phases[side] == Phase::ignore;
  }
  connection.asked = rest.asked;
  connection.answered = rest.answered;
  connection.answered_otherwise = rest.answered_otherwise;
  connection.is_http1 = rest.is_http1;
  connection.limited = rest.limited;
}

void Parser::evict(Connection& connection) {
  if (connection.stopped != StopReason::none) {
    sink_.stopped(connection, StopReason::evicted);
  } else if (connection.established && is_between_messages(connection)) {
    ++counters_.stopped[static_cast<unsigned>(StopReason::set_aside)];
    sink_.stopped(connection, StopReason::set_aside);
  } else {
    stop(connection, StopReason::evicted);
  }
  close(&connection);
}

// Who holds something that another needs, other than that: of those that are established the longest without bytes, but
// first those that lose nothing. nullptr: nobody does.
Connection* Parser::holder_to_evict(const Connection& connection) const {
  const auto oldest_of = [&](Holding holding) {
    Connection* const oldest = holders_[holding].oldest;
    return oldest == &connection ? oldest->holders.next : oldest;
  };
  for (const Holding holding : {new_pending, new_transactions, idle}) {
    if (Connection* const oldest = oldest_of(holding)) return oldest;
  }
  Connection* const one = oldest_of(pending);
  Connection* const other = oldest_of(transactions);
  const bool is_older = one != nullptr && (other == nullptr || heard_ - one->heard > heard_ - other->heard);
  return is_older ? one : other;
}

// In the pool, before a packet of that connection needs it.
void Parser::make_room(const Connection& connection) {
  for (unsigned evicted = 0; evicted < most_evicted && !has_reserve(); ++evicted) {
    Connection* const holder = holder_to_evict(connection);
    if (holder == nullptr) {
      return;
    }
    evict(*holder);
  }
}

Connection* Parser::open(bool established, const Rest& rest) {
  if (!established && !has_room_for_new()) {
    return nullptr;
  }
  for (unsigned rank = 0; free_connections_ == nullptr && rank <= (established ? unsigned{Rank::http} : 0U); ++rank) {
    if (lists_[rank].oldest != nullptr) {
      evict(*lists_[rank].oldest);
    }
  }
  Connection* const connection = free_connections_;
  if (connection == nullptr) {
    counters_.stopped[static_cast<unsigned>(StopReason::no_memory)] += established ? 1 : 0;
    return nullptr;
  }
  free_connections_ = connection->order.next;
  connection->established = established;
  if (rest.there) {
    go_on_with(*connection, rest);
  }
  enlist(*connection);
  counters_.connections += rest.there ? 0 : 1;
  return connection;
}

void Parser::event(Connection& connection, Event event, Transaction& transaction) {
  sink_.transaction(connection, event, transaction);
}

void Parser::data(Connection& connection, Direction direction, std::string_view bytes) {
  free_decoding_ += decoded_to * bytes.size();
  ++heard_;
  if (connection.stopped == StopReason::none && connection.established) {
    make_room(connection);
  } else if (connection.stopped == StopReason::none && !has_room_for_new()) {
    stop(connection, StopReason::no_memory);
  }
  run(connection, direction, bytes);
  delist(connection);
  enlist(connection);
}

std::size_t Parser::most_pending(const Side& side) const {
  const std::size_t most = settings_.header_limit;
  return slice + (side.phase == Phase::http2_wait ? std::max(most, before_http2) : most);
}

void Parser::run(Connection& connection, Direction direction, std::string_view bytes) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  for (;;) {
    if (connection.stopped != StopReason::none || side.phase == Phase::ignore) {
      if (side.is_other && direction == Direction::to_server && connection.answered && !bytes.empty()) {
        exceed(connection, Limit::framing);  // to its server that was a request, and this is another
      }
      counters_.ignored_bytes += bytes.size() + side.pending.size();
      side.pending.clear(pool_);
      if (connection.stopped != StopReason::none) {
        release(connection);
      }
      return;
    }
    if (in_body(side.phase)) {
      const bool from_pending = side.pending.size() != 0;
      const std::string_view next = from_pending ? side.pending.view() : bytes;
      if (next.empty()) {
        return;
      }
      const std::size_t count = take_body(connection, direction, next);
      if (from_pending) {
        drop_pending(side, count);
      } else {
        bytes.remove_prefix(count);
      }
      continue;
    }
    if (step(connection, direction)) {
      continue;
    }
    if (bytes.empty()) {
      return;
    }
    if (side.pending.size() > most_pending(side)) {
      stop(connection, StopReason::header_too_long, Limit::header_line);
    } else if (!side.pending.append(pool_, bytes.substr(0, slice))) {
      Word word;
      const bool is_first =
          side.phase == Phase::detect && direction == Direction::to_server && side.pending.size() == 0;
      const Looks looks = is_first ? looks_like_request(bytes, word) : Looks::other;
      connection.asked |= looks == Looks::http || looks == Looks::open;  // is_http() sees what waits
      stop(connection, StopReason::no_memory);
    } else {
      bytes.remove_prefix(std::min(bytes.size(), slice));
    }
  }
}

// One step of a side that reads lines. False: more bytes are needed.
bool Parser::step(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  switch (side.phase) {
    case Phase::detect:
      return detect(connection, direction);
    case Phase::chunk_size:
      return side.pending.size() != 0 && chunk_size(connection, direction);
    case Phase::http2_wait:
      if (waits_for_http2(connection)) {
        return false;
      }
      side.phase = Phase::first_line;
      return true;
    case Phase::connect_wait:  // a request is one to a server that refuses, whatever the answer will be
      if (looks_like_request(side.pending.view(), side.word) != Looks::http) {
        return false;
      }
      side.word = {};
      side.phase = Phase::first_line;
      return true;
    case Phase::perhaps_body:
      return perhaps_body(connection);
    case Phase::first_line:
    case Phase::header_lines:
    case Phase::trailer_lines:
      return line_step(connection, direction);
    default:
      return false;
  }
}

bool Parser::line_step(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  Line line;
  const bool first = side.phase == Phase::first_line;
  const std::size_t known = side.scanned;
  const bool is_whole = next_line(side, direction, line);
  if (direction == Direction::to_server && !connection.limited) {
    const std::string_view come = is_whole ? line.whole : side.pending.view();
    if (has_lone_cr(come, known) && (!first || begins_known_request(come))) {
      exceed(connection, Limit::framing);
    }
  }
  if (!is_whole) {
    return first && direction == Direction::to_client && side.pending.size() != 0 && not_a_status(connection, line);
  }
  if (line.text.size() > settings_.header_limit) {
    stop(connection, StopReason::header_too_long, Limit::header_line);
  } else if (!first) {
    header_line(connection, direction, line);
  } else if (direction == Direction::to_server) {
    request_line(connection, line);
  } else {
    return not_a_status(connection, line);
  }
  return true;
}

// Of what waits: it has been parsed, and what follows it has not been looked at.
void Parser::drop_pending(Side& side, std::size_t count) {
  side.pending.drop_front(pool_, count);
  side.scanned = 0;
  side.word = {};
  side.chunk_extension = false;
}

// Whether this is HTTP at all. False: more bytes are needed.
bool Parser::detect(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  Side& other = connection.sides[static_cast<unsigned>(opposite(direction))];
  if (side.pending.size() == 0) {
    return false;
  }
  const bool client = direction == Direction::to_server;
  const std::string_view pending = side.pending.view();
  const std::size_t looked_at = side.word.begin;
  const Looks looks = client ? looks_like_request(pending, side.word) : looks_like_response(pending);
  if ((looks == Looks::open || looks == Looks::unlikely) && !side.closed) {
    const std::size_t line = pending.substr(looked_at).rfind('\n');
    if (client && side.word.begin == pending.size() && line != std::string_view::npos) {
      drop_pending(side, looked_at + line + 1);  // blank lines, however many
    }
    return false;
  }
  if (client && looks == Looks::other && !side.is_http) {
    const ProxyHeader header = proxy_header(pending.substr(side.word.begin));
    if (header.looks == Looks::open && !side.closed) {
      return false;
    }
    if (header.looks == Looks::http) {
      drop_pending(side, side.word.begin + header.size);
      return true;
    }
  }
  if (!client && other.phase == Phase::http2_wait) {
    if (may_answer_http2(pending)) {
      if (pending.size() < http2_answer_size && !side.closed) {
        return false;
      }
      stop(connection, StopReason::http2);
      return true;
    }
    connection.is_http1 = true;
    run(connection, Direction::to_server, {});
    if (connection.stopped != StopReason::none) {
      return true;
    }
  }
  if (looks == Looks::http || (!client && other.is_http)) {
    side.is_http = true;
    side.word = {};
    side.phase = Phase::first_line;
    return true;
  }
  if (client && side.is_http) {  // it was, up to a CONNECT
    stop(connection, StopReason::tunnel);
    return true;
  }
  side.is_other = true;
  side.phase = Phase::ignore;
  if (!client || other.is_other) {
    stop(connection, StopReason::not_http);
  }
  return true;
}

// Where there is none, one connection with some is evicted, and no more. nullptr: there is no room for one.
Transaction* Parser::free_transaction(const Connection& connection) {
  const std::size_t room = connection.established ? transactions_.size() : transactions_.size() / 4;
  for (const Holding holding : {new_transactions, idle, transactions}) {
    Connection* const oldest = holders_[holding].oldest;
    Connection* const other = oldest == &connection ? oldest->holders.next : oldest;
    const bool may_evict = connection.established || holding == new_transactions;
    if (transactions_in_use_ >= room && may_evict && other != nullptr) {
      evict(*other);
    }
  }
  return transactions_in_use_ < room ? free_transactions_ : nullptr;
}

Transaction* Parser::make(Connection& connection, bool in_front) {
  const bool scarce = transactions_in_use_ * 2 >= transactions_.size();
  const bool is_too_many = !in_front && connection.waiting >= (scarce ? 2 : settings_.pipelined);
  if (is_too_many && !give_up_oldest(connection)) {
    stop(connection, StopReason::no_memory, Limit::framing);
    return nullptr;
  }
  Transaction* const transaction = free_transaction(connection);
  if (transaction == nullptr) {
    stop(connection, StopReason::no_memory);
    return nullptr;
  }
  free_transactions_ = transaction->next;
  transaction->next = nullptr;
  transaction->number = connection.made++;
  if (connection.first == nullptr) {
    hold(connection);
  }
  if (in_front || connection.first == nullptr) {
    transaction->next = connection.first;
    connection.first = transaction;
    connection.last = connection.last == nullptr ? transaction : connection.last;
  } else {
    connection.last->next = transaction;
    connection.last = transaction;
  }
  ++connection.waiting;
  ++transactions_in_use_;
  ++counters_.transactions;
  return transaction;
}

void Parser::unlink(Connection& connection, Transaction* transaction) {
  Transaction* before = nullptr;
  for (Transaction* at = connection.first; at != transaction; at = at->next) {
    before = at;
  }
  (before != nullptr ? before->next : connection.first) = transaction->next;
  if (connection.last == transaction) {
    connection.last = before;
  }
  if (connection.first == nullptr) {
    hold_none(connection);
  }
  --connection.waiting;
  --transactions_in_use_;
  transaction->clear(pool_);
  transaction->next = free_transactions_;
  free_transactions_ = transaction;
}

// The responses to those that were given up come before that to the first which was not. False: there are too many.
bool Parser::give_up_oldest(Connection& connection) {
  for (Transaction* at = connection.first; at != nullptr; at = at->next) {
    const bool is_open = at == connection.sides[0].current || at == connection.sides[1].current;
    if (is_open || is_being_answered(*at)) {
      continue;
    }
    const bool is_owed = !at->response.complete;
    connection.retained = at == connection.retained ? nullptr : connection.retained;
    const Owed owed = at->is_head ? Owed::head : at->is_connect ? Owed::connect : Owed::other;
    unlink(connection, at);
    counters_.unanswered += is_owed ? 1 : 0;
    return !is_owed || (connection.owed.size() < most_owed &&
                        connection.owed.append(pool_, {reinterpret_cast<const char*>(&owed), sizeof owed}));
  }
  return true;
}

// The transaction is over, but for bytes that may still turn out to belong to its response.
void Parser::retain(Connection& connection, Transaction& transaction) {
  let_go(connection);
  connection.retained = &transaction;
  for (Message* const message : {&transaction.request, &transaction.response}) {
    if (message->body.size() > retained_body) {
      message->body.clear(pool_);
      message->body_shown = 0;
    }
  }
}

void Parser::let_go(Connection& connection) {
  if (connection.retained != nullptr) {
    unlink(connection, connection.retained);
    connection.retained = nullptr;
  }
}

void Parser::gap(Connection& connection, Direction direction, std::uint64_t bytes) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  if (connection.stopped != StopReason::none || side.phase == Phase::ignore) {
    return;
  }
  const bool counted = side.phase == Phase::body_fixed || side.phase == Phase::chunk_data;
  if (!in_body(side.phase) || (counted && bytes > side.left)) {
    stop(connection, StopReason::gap);
    return;
  }
  Message& message = direction == Direction::to_server ? side.current->request : side.current->response;
  message.flags.gap = true;
  if (side.decoder.active()) {
    side.decoder.abandon();
  }
  if (!counted) {
    return;
  }
  side.left -= bytes;
  if (side.left == 0 && side.phase == Phase::chunk_data) {
    side.phase = Phase::chunk_size;
  } else if (side.left == 0) {
    end_body(connection, direction);
  }
}

void Parser::closed(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  if (side.closed) {
    return;
  }
  side.closed = true;
  run(connection, direction, {});
  if (connection.stopped == StopReason::none) {
    end_of_side(connection, direction);
  }
}

// The side sends no more: what is open ends here.
void Parser::end_of_side(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  const bool request = direction == Direction::to_server;
  if (side.current != nullptr) {
    Message& message = request ? side.current->request : side.current->response;
    if (!message.headers_done && message.line_size != 0) {
      message.flags.incomplete = true;
      end_headers(connection, direction);
    }
  }
  if (side.current != nullptr && connection.stopped == StopReason::none) {
    Message& message = request ? side.current->request : side.current->response;
    message.flags.incomplete = message.flags.incomplete || side.phase != Phase::body_to_close;
    side.has_trailers ? end_trailers(connection, direction) : end_body(connection, direction);
  }
}

// What does not look like HTTP yet may, beyond the limit, be a request line, or blanks before one.
bool Parser::is_http(const Connection& connection) const {
  if (connection.answered) {
    return true;
  }
  if (connection.answered_otherwise) {
    return false;
  }
  const auto begins = [&](Direction direction) {
    const Side& side = connection.sides[static_cast<unsigned>(direction)];
    const std::string_view pending = side.pending.view();
    const bool at_line =
        side.phase == Phase::detect || side.phase == Phase::first_line || side.phase == Phase::http2_wait;
    if (pending.empty() || !at_line) {
      return false;
    }
    Word word;
    const Looks looks = direction == Direction::to_client ? looks_like_response(trim_front(pending))
                                                          : looks_like_request(pending, word);
    return looks == Looks::http || (looks == Looks::open && direction == Direction::to_server);
  };
  return connection.asked || begins(Direction::to_server) || begins(Direction::to_client);
}

// Unless it is another protocol's.
void Parser::exceed(Connection& connection, Limit limit) {
  if (is_http(connection)) {
    tell_limit(connection, limit);
  }
}

void Parser::tell_limit(Connection& connection, Limit limit) {
  if (std::exchange(connection.limited, true)) {
    return;
  }
  ++counters_.limited[static_cast<unsigned>(limit)];
  sink_.limited(connection, limit);
}

// What was not established is parsed when it is, where there was no memory for it.
void Parser::stop(Connection& connection, StopReason reason, Limit beyond) {
  const bool wants_memory = reason == StopReason::no_memory || reason == StopReason::evicted;
  if (beyond == Limit::none && wants_memory && connection.established) {
    beyond = Limit::memory;
  }
  const bool is_limited = beyond != Limit::none && is_http(connection);
  connection.stopped = reason;
  ++counters_.stopped[static_cast<unsigned>(reason)];
  for (const Direction direction : {Direction::to_server, Direction::to_client}) {
    Side& side = connection.sides[static_cast<unsigned>(direction)];
    if (side.current != nullptr) {
      Message& message = direction == Direction::to_server ? side.current->request : side.current->response;
      message.flags.incomplete = true;
      end_body(connection, direction);
    }
    side.phase = Phase::ignore;
  }
  if (is_limited) {
    tell_limit(connection, beyond);
  }
  sink_.stopped(connection, reason);
}

// Gives back the memory of all that the connection holds.
void Parser::release(Connection& connection) {
  while (connection.first != nullptr) {
    unlink(connection, connection.first);
  }
  for (Side& side : connection.sides) {
    side.pending.clear(pool_);
    side.header.clear(pool_);
    side.text.clear(pool_);
    side.fields.clear(pool_);
    side.decoder.clear(pool_);
    side.coded.clear(pool_);
    side.scanned = 0;
    side.word = {};
    side.has_trailers = side.have_header = side.header_folded = side.chunk_extension = false;
    side.current = nullptr;
  }
  connection.owed.clear(pool_);
  connection.retained = nullptr;
}

void Parser::close(Connection* connection) {
  if (connection == nullptr) {
    return;
  }
  closed(*connection, Direction::to_server);
  closed(*connection, Direction::to_client);
  abandon(connection);
}

void Parser::abandon(Connection* connection) {
  if (connection == nullptr) {
    return;
  }
  release(*connection);
  for (Side& side : connection->sides) {
    side.phase = Phase::detect;
    side.is_http = side.is_other = side.closed = side.after_lf_cr = side.junk = side.have_header = false;
    side.left = 0;
  }
  connection->made = 0;
  connection->stopped = StopReason::none;
  connection->asked = connection->answered = connection->answered_otherwise = connection->limited = false;
  connection->is_http1 = false;
  connection->user = nullptr;
  delist(*connection);
  connection->order.next = free_connections_;
  free_connections_ = connection;
}

}  // namespace sluice::flow::http
