// The parser's records: connections and transactions, who has one, and who gives up his when there is no capacity.
#include <algorithm>
#include <bit>
#include <utility>

#include "base/random_seed.h"
#include "flow/http/brotli_stream.h"
#include "flow/http/connection.h"

namespace sluice::flow::http {
namespace {

constexpr std::size_t retained_body = 4096;  // kept after a transaction, for bytes that may belong to it
constexpr std::size_t most_owed = 4096;      // answers of a connection to requests that were given up
// Who goes first when there is no capacity.
enum Rank : std::uint8_t { not_established, not_http, between_messages, http };

// What is held: transactions, or bytes that wait alone. `idle`: by one that is between messages.
enum Holding : std::uint8_t { nothing, new_pending, new_transactions, idle, pending, transactions };

// What a packet evicts at most. Each that ends within a body gives back as much as some packets bring, so that a few
// are enough; what is left is for the next packet.
constexpr unsigned most_evicted = 4;

}  // namespace

Parser::Parser(const Settings& settings, BlockPool& pool, std::uint32_t connections, std::uint32_t transactions,
               TransactionSink& sink)
    : settings_(settings), pool_(pool), sink_(sink), connections_(connections), transactions_(transactions) {
  seed_ = random_seed();
  settings_.pipelined = std::max(settings_.pipelined, 2U);
  settings_.max_headers = std::clamp(settings_.max_headers, 1U, Settings::most_fields);
  merged_.resize(settings_.max_headers);
  first_of_name_.resize(std::bit_ceil(2 * merged_.size() + 1));
  // What a packet may ask for at once is the next block of a body, one of its bytes as they came, and what undoes two
  // codings: with the default limits, and without br, less than 512 KiB, a sixteenth of 8 MiB. In what is free there is
  // a whole block for br's window, too, which is larger than a body's, for the pool may be in small pieces; unless that
  // is more than a quarter of it.
  reserve_ = pool_.capacity() / 16;
  const std::uint32_t body = std::max(settings_.request_body_limit, settings_.response_body_limit);
  const bool is_unlimited = settings_.request_body_limit == 0 || settings_.response_body_limit == 0;
  const std::size_t block =
      is_unlimited ? BlockPool::largest : std::max(BlockPool::block_size(body), BrotliStream::window_block(body));
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
void Parser::ensure_capacity(const Connection& connection) {
  for (unsigned evicted = 0; evicted < most_evicted && !has_reserve(); ++evicted) {
    Connection* const holder = holder_to_evict(connection);
    if (holder == nullptr) {
      return;
    }
    evict(*holder);
  }
}

Connection* Parser::open(bool established, const Rest& rest) {
  if (!established && !has_capacity_for_new()) {
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

// Where there is none, one connection with some is evicted, and no more. nullptr: there is no capacity for one.
Transaction* Parser::free_transaction(const Connection& connection) {
  const std::size_t capacity = connection.established ? transactions_.size() : transactions_.size() / 4;
  for (const Holding holding : {new_transactions, idle, transactions}) {
    Connection* const oldest = holders_[holding].oldest;
    Connection* const other = oldest == &connection ? oldest->holders.next : oldest;
    const bool may_evict = connection.established || holding == new_transactions;
    if (transactions_in_use_ >= capacity && may_evict && other != nullptr) {
      evict(*other);
    }
  }
  return transactions_in_use_ < capacity ? free_transactions_ : nullptr;
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
