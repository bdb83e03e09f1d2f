#include "function/inspect/inspection.h"

#include <x86intrin.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "flow/tcp_track.h"
#include "function/inspect/http_buffers.h"
#include "function/inspect/inspection_as_if.h"
#include "match/automaton/key_scan.h"
#include "match/rules/rule_scope.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

using flow::Direction;
using match::Buffer;
using match::Buffers;
using match::Point;
using Scope = match::Detector::Scope;

constexpr std::size_t most_held_alerts = 16;

constexpr std::uint16_t is_http = FlowMark::http, dropped = FlowMark::dropped, passed = FlowMark::passed;

}  // namespace

Inspection::Inspection(std::unique_ptr<InspectionSearch> search, const InspectionSettings& settings, AlertSink& sink)
    : search_(std::move(search)),
      settings_(settings),
      sink_(sink),
      fragments_(settings.fragments),
      conversations_(settings.conversations, *this) {
  set_policy();
  held_alerts_.reserve(most_held_alerts);
}

std::unique_ptr<InspectionSearch> Inspection::exchange(std::unique_ptr<InspectionSearch> search) {
  held_ = {};  // by the old rules' numbers
  search->rates.take_over(search_->rates);
  search->alerts.take_over(search_->alerts);
  const match::FlowBits renamed = search->rules->detector().renamed(rules().detector());
  if (match::has_any(renamed, renamed)) conversations_.clear_bits(renamed);
  std::swap(search_, search);
  set_policy();
  return search;
}

void Inspection::set_policy() {
  const bool blocks = rules().detector().blocks();
  drops_left_ = settings_.drop_on_overload && blocks;
  drops_limited_ = settings_.drop_on_http_limit && blocks;
}

Inspection::~Inspection() = default;

void Inspection::set_headers(Buffers& buffers, const match::PacketFacts& packet) {
  if (packet.family == 4) buffers.set(Buffer::ipv4_header, packet.ip_header);
  if (packet.family == 6) buffers.set(Buffer::ipv6_header, packet.ip_header);
  if (packet.has_tcp) buffers.set(Buffer::tcp_header, packet.transport_header);
  if (packet.has_ports && packet.protocol == packet::protocol_udp) {
    buffers.set(Buffer::udp_header, packet.transport_header);
  }
  if (packet.has_icmp) {
    buffers.set(packet.family == 4 ? Buffer::icmpv4_header : Buffer::icmpv6_header, packet.transport_header);
  }
}

const Judgement& Inspection::loud_frame(std::string_view frame, std::uint32_t hash, const KeyHits& hits) {
  if (may_be_quiet(frame, hits)) return plain_frame(frame, hash, hits);
  begin_frame(frame, hits);
  read_facts();
  if (subject_.packet.family == 0) {
    ++counters_.not_ip;
    between_frames();
    return subject_.judgement;
  }
  flow::Packet packet;
  flow::Flow* flow = nullptr;
  if (flow::read_packet(subject_.packet, packet)) {
    flow = conversations_.packet(packet, hash, now_ / 1000).flow;
    if (flow == nullptr) ++counters_.no_flow;
  }
  bool by_flow = false;
  if (flow == nullptr || asks_anew(*flow, packet)) {
    inspect_packet(nullptr, false);
  } else if ((flow->user & dropped) != 0) {
    by_flow = drop_by_flow(*flow);
  }
  if (packet.fragment) [[unlikely]] {
    flow = inspect_datagram(flow, by_flow);
  }
  return end_frame(flow, by_flow);
}

// Nothing of the flow is looked at any more: what it holds, others may need. Alerts that are held are of its HTTP.
// Whether the frame is dropped for its flow alone.
[[gnu::noinline]] bool Inspection::drop_by_flow(flow::Flow& flow) {
  tell_held();
  conversations_.give_back(flow);
  return !std::exchange(subject_.judgement.drop, true);
}

// A SYN where a conversation was dropped that has been silent for its timeout: if the server answers it, it has
// forgotten that one, and another begins.
bool Inspection::asks_anew(const flow::Flow& flow, const flow::Packet& packet) {
  return (flow.user & dropped) != 0 && flow.state == flow::FlowState::silent && packet.payload.empty() &&
         (packet.tcp_flags & (flow::tcp_syn | flow::tcp_ack)) == flow::tcp_syn;
}

void Inspection::read_facts() {
  std::construct_at(&subject_.packet);  // where it is read: a copy would wait for what was just written
  packet::read_headers(subject_.frame, subject_.packet);
}

DropReason Inspection::drop_reason() const {
  if (subject_.judgement.by_rule) return DropReason::rules;
  if (subject_.judgement.stream == flow::Taken::conflict) return DropReason::conflict;
  if (subject_.judgement.stream == flow::Taken::no_room) return DropReason::no_room;
  if (subject_.judgement.stream == flow::Taken::outside) return DropReason::outside;
  if (subject_.judgement.stream == flow::Taken::silent) return DropReason::silent;
  if (subject_.judgement.overload) return DropReason::budget;
  if (subject_.judgement.http_limit) return DropReason::http_limit;
  return subject_.judgement.fragment ? DropReason::fragment : DropReason::rules;
}

void Inspection::tell_dropped(const flow::Flow* flow, bool by_flow) {
  subject_.judgement.why = by_flow ? DropReason::flow_drop : drop_reason();
  const bool by_rule = subject_.judgement.why == DropReason::rules && subject_.judgement.by_rule;
  sink_.dropped({now_, subject_.frame, &subject_.packet, subject_.direction, flow, subject_.judgement.why,
                 by_rule ? &rules() : nullptr, by_rule ? blocking_rule_ : 0});
}

// A packet comes before its stream: what passes or drops it does so first.
bool Inspection::tracked(flow::Flow& flow, Direction direction, bool streamed) {
  subject_.direction = direction;
  flow_ = &flow;
  if ((flow.user & dropped) != 0) return false;
  if ((flow.user & passed) != 0) return true;
  if (quiet_ && !depends_ && !streamed) return true;
  if (drops_left_ && streamed && drops_unseen(flow)) [[unlikely]] {
    return false;
  }
  return tracked_by_rules(flow, direction, streamed);
}

bool Inspection::tracked_by_rules(flow::Flow& flow, Direction direction, bool streamed) {
  const bool quiet = quiet_ && (!depends_ || is_quiet_in(&flow, streamed));
  if (quiet && !streamed) return true;
  if (std::exchange(quiet_, false)) read_facts();  // for what the stream brings, or the packet's rules
  const std::uint32_t begin = subject_.packet.tcp_sequence + ((subject_.packet.tcp_flags & flow::tcp_syn) != 0 ? 1 : 0);
  const bool first = begin == flow.initial[static_cast<unsigned>(direction)] + 1;
  if (streamed && first && looks_like_http(subject_.packet.payload)) flow.user |= is_http;
  if (!quiet) inspect_packet(&flow, streamed);
  return !subject_.judgement.drop;
}

void Inspection::finish() {
  between_frames();
  subject_.packet = {};
  conversations_.flush();
  tell_held();
}

match::FlowFacts Inspection::facts_of(const flow::Flow& flow, Direction direction) const {
  match::FlowFacts facts;
  facts.known = true;
  facts.direction =
      direction == Direction::to_server ? match::FlowDirection::to_server : match::FlowDirection::to_client;
  // Closed by FINs, it was; one of them may have been a decoy, and its side go on. Silent, it may be so at its hosts.
  const bool by_fins = flow.has(flow::FlowFlag::fin_client) && flow.has(flow::FlowFlag::fin_server);
  facts.established =
      flow.established() || flow.state == flow::FlowState::silent || (flow.state == flow::FlowState::closed && by_fins);
  facts.application = (flow.user & is_http) != 0 ? match::Protocol::http : match::Protocol::ip;
  const auto sent = [&](std::size_t side) -> std::uint64_t {
    const bool heard = flow.has(side == 0 ? flow::FlowFlag::heard_client : flow::FlowFlag::heard_server);
    return heard ? flow.end[side] - flow.initial[side] - 1 : 0;
  };
  if (flow.protocol == packet::protocol_tcp) {
    facts.client_bytes = sent(0);
    facts.server_bytes = sent(1);
  }
  return facts;
}

// Of bytes of a stream, or HTTP's. A SYN's with Fast Open (RFC 7413) are of a conversation that its cookie says was
// there before: a server hands them on at once, and answers before its SYN-ACK is acknowledged.
match::FlowFacts Inspection::stream_facts_of(const flow::Flow& flow, Direction direction) const {
  match::FlowFacts facts = facts_of(flow, direction);
  facts.reassembled = true;
  if (facts.established || flow.protocol != packet::protocol_tcp) return facts;
  const std::uint8_t flags = subject_.packet.tcp_flags;
  if (flow.state == flow::FlowState::fresh) {
    facts.established = (flags & (flow::tcp_syn | flow::tcp_ack)) == flow::tcp_syn &&
                        !subject_.packet.payload.empty() && flow::has_fast_open(subject_.packet.transport_header);
  } else if (flow.state == flow::FlowState::half_open) {
    facts.established = flow::sequence_after(flow.acked[0], flow.initial[0] + 1);
  }
  return facts;
}

// What the device has found in the frame, because its batch is late.
bool Inspection::leaves_hits() {
  const bool are_some = subject_.hits.known ? subject_.hits.keys.count != 0 : subject_.hits.too_many;
  if (!are_some || !is_late()) return false;
  ++counters_.left;
  overload();
  return true;
}

// What the device has too many keys of to tell is searched by the core, as part of what confirming may take: such
// payloads are made, and the core would be busy with nothing else. A datagram has waited for its last fragment.
std::size_t Inspection::search_payload(std::string_view bytes, std::size_t from) {
  return subject_.hits.too_many ? search_slices(bytes, from, is_datagram_).found : search(Buffer::payload, bytes, from);
}

bool Inspection::may_search() {
  if (share_.time.allows_search()) return true;
  ++counters_.left;
  overload();
  return false;
}

std::optional<std::size_t> Inspection::search_in_time(Buffer buffer, std::string_view bytes) {
  if (!share_.time.limited()) return search(buffer, bytes);
  if (!may_search()) return std::nullopt;
  const std::uint64_t began = __rdtsc();
  const std::size_t found = search(buffer, bytes);
  share_.time.spend(__rdtsc() - began);
  return found;
}

// What is left and not known counts as decisive.
void Inspection::overload(bool decisive) {
  subject_.judgement.overload = true;
  subject_.judgement.undecided |= decisive;
  subject_.judgement.drop |= decisive && drops_left_;
}

// Into search_->found, behind the patterns that earlier slices of the same payload have found, which are so many.
std::size_t Inspection::search(Buffer buffer, std::string_view bytes, std::size_t from, std::size_t before) {
  counters_.searched += bytes.size();
  by_keys_ = false;
  const unsigned klass = rules().detector().classes().class_of(subject_.packet);
  std::vector<std::uint32_t>& found = search_->found;
  match::CpuMatcher::Scratch& scratch = *search_->matching[static_cast<std::size_t>(buffer)];
  const std::uint64_t refused = scratch.failed();
  const std::size_t count = rules().matcher(buffer).match(scratch, bytes, klass, found.data() + before,
                                                          found.size() - before, from, before != 0);
  if (scratch.failed() != refused) [[unlikely]] {
    ++counters_.refused;
    overload();
  }
  return count;
}

// The patterns that the device's keys stand for; `bytes`: what was searched, with the stream's `history` before it,
// where keys may begin that end in it. `before_by_core`: of patterns that reach into the new bytes, keys that end
// before them are not known either.
std::size_t Inspection::take_hits(const KeyHits& hits, std::string_view bytes, std::size_t history,
                                  bool before_by_core) {
  by_keys_ = true;
  if (hits.count == 0 && history == 0) return 0;
  const match::KeySet& keys = rules().keys();
  std::vector<std::uint32_t>& found = search_->keys;
  found.assign(hits.key, hits.key + hits.count);
  if (history != 0) {
    constexpr std::size_t reach = match::Key::max_length - 1;
    const std::size_t unknown = before_by_core ? std::min(history, rules().longest_pattern()) : 0;
    const std::size_t before = std::min(history, unknown + reach);
    const std::string_view seam = bytes.substr(history - before, before + reach);
    match::scan_keys(rules().gram_table().view(), seam, before - unknown,
                     rules().detector().classes().class_of(subject_.packet), found);
  }
  std::vector<std::uint32_t>& patterns = search_->candidates;
  patterns.clear();
  for (const std::uint32_t key : found) {
    const auto of = keys.patterns_of(key);
    patterns.insert(patterns.end(), of.begin(), of.end());
  }
  std::sort(patterns.begin(), patterns.end());
  patterns.erase(std::unique(patterns.begin(), patterns.end()), patterns.end());
  std::copy(patterns.begin(), patterns.end(), search_->found.begin());
  return patterns.size();
}

// Rules that need nothing found hold for a frame whose batch is late, too.
void Inspection::inspect_packet(flow::Flow* flow, bool in_stream) {
  const bool is_left = leaves_hits();
  std::size_t found = 0;
  by_keys_ = is_left && subject_.hits.known;
  const match::Detector& detector = rules().detector();
  if (!is_left && (!in_stream || detector.searches_packets(detector.classes().class_of(subject_.packet)))) {
    found = subject_.hits.known ? take_hits(subject_.hits.keys, subject_.packet.payload, 0)
                                : search_payload(subject_.packet.payload, 0);
  }
  // A fragment is of a flow without ports: what a rule says of one it does not say of the others.
  flow::Flow* const told = subject_.packet.fragment() ? nullptr : flow;
  const Scope scope = in_stream ? Scope::packets : Scope::all;
  if (!has_candidates(scope, found, subject_.packet.payload.size(), addresses_told(told))) {  // as most packets
    if (told != nullptr) tell_addresses(*told);
    return;
  }
  match::FlowFacts facts;
  if (flow != nullptr) facts = facts_of(*flow, subject_.direction);
  facts.in_stream = in_stream;
  Buffers buffers;
  set_headers(buffers, subject_.packet);
  buffers.set(Buffer::payload, subject_.packet.payload);
  flow::Extra* extra = flow == nullptr ? nullptr : conversations_.extra_if_any(*flow);
  const bool all = inspect(facts, flow, extra, buffers, subject_.packet.payload);
  if (told != nullptr && all && !subject_.passed) tell_addresses(*told);
}

void Inspection::tell_addresses(flow::Flow& flow) const {
  constexpr std::uint16_t told = FlowMark::told_to_server | FlowMark::told_to_client;
  constexpr std::uint16_t others = (1U << FlowMark::generation_at) - 1;
  const std::uint16_t generation = mark_of_generation();
  if (flow.user >> FlowMark::generation_at != generation) {
    flow.user = static_cast<std::uint16_t>((flow.user & others & ~told) | generation << FlowMark::generation_at);
  }
  flow.user |= told_mark();
}

void Inspection::stream_data(flow::Flow& flow, flow::Extra& extra, Direction direction, const flow::StreamData& data) {
  if ((flow.user & is_http) == 0 && data.offset == 0 && looks_like_http(data.fresh)) flow.user |= is_http;
  const AsIf as_if(*this, flow, direction);
  const bool is_left = (flow.user & (dropped | passed)) != 0 || subject_.passed;
  if (is_left || (!drops_left_ && leaves_hits())) {
    flow::Carried& carried = extra.carried[static_cast<unsigned>(direction)];
    carried.pass(0, 0, false);
    carried.by_keys = false;  // what keys there are in it is not known either
    return;
  }
  if (!is_datagram_ || &flow != flow_) share_.allowance += data.fresh.size();
  inspect_piece(flow, extra, direction, data);
  keep_dropping(flow);
}

// A stream has taken the bytes of a frame that is dropped because they were not inspected whole: sent again they would
// be old ones, and pass.
void Inspection::keep_dropping(flow::Flow& flow) const {
  if (subject_.judgement.undecided && drops_left_) flow.user |= dropped;
}

void Inspection::inspect_piece(flow::Flow& flow, flow::Extra& extra, Direction direction,
                               const flow::StreamData& data) {
  flow::Carried& carried = extra.carried[static_cast<unsigned>(direction)];
  carried.use(rules().generation());
  const std::uint64_t left = counters_.left;
  const std::size_t found = find_in(data, carried);
  const bool searched = counters_.left == left;
  carried.pass(data.window.size() - data.fresh.size(), data.fresh.size(),
               searched && !rules().detector().calls_for_http({search_->found.data(), found}));
  bool all = true;
  if (!has_stream_candidates(carried, found, data, all)) {
    carried.keep(search_->detector.open(), search_->detector.begun(), all);
    return;
  }
  const match::FlowFacts facts = stream_facts_of(flow, direction);
  Buffers buffers;
  set_headers(buffers, subject_.packet);
  buffers.set(Buffer::payload, data.window);
  all &= inspect(facts, &flow, &extra, buffers, data.fresh);
  carried.keep(search_->detector.open(), search_->detector.begun(), all);
  for (const std::uint32_t rule : search_->matched) {
    if (rules().detector().has_pattern(rule)) carried.hold(rule);
  }
  note_unset(flow, direction, data.fresh.size());
}

// By the rules for streams, as a piece without history: those for packets have looked at it. Rules of streams alone see
// what is in the stream and nothing else.
void Inspection::not_taken(flow::Flow& flow, flow::Extra& extra, Direction direction) {
  if ((flow.user & (dropped | passed)) != 0 || subject_.passed || leaves_hits()) return;
  const std::size_t count = subject_.hits.known ? take_hits(subject_.hits.keys, subject_.packet.payload, 0)
                                                : search_payload(subject_.packet.payload, 0);
  if (!has_candidates(Scope::streams, count, subject_.packet.payload.size(), false)) return;
  match::FlowFacts facts = stream_facts_of(flow, direction);
  facts.beside_stream = true;
  Buffers buffers;
  set_headers(buffers, subject_.packet);
  buffers.set(Buffer::payload, subject_.packet.payload);
  inspect(facts, &flow, &extra, buffers, subject_.packet.payload);
}

void Inspection::refused(flow::Flow& flow, Direction, flow::Taken why) {
  if ((flow.user & passed) != 0 || subject_.passed) return;
  subject_.judgement.drop = true;
  subject_.judgement.stream = why;
}

Inspection::Held Inspection::held_of(std::uint32_t rule, const flow::Flow& flow) const {
  return {conversations_.table().index_of(flow), rule,
          2 * transaction_->number + (subject_.direction == Direction::to_client ? 2 : 1)};
}

bool Inspection::has_held(std::uint32_t rule, const flow::Flow& flow) const {
  return std::find(held_.begin(), held_.end(), held_of(rule, flow)) != held_.end();
}

bool Inspection::held_before(std::uint32_t rule, const flow::Flow& flow) {
  if (has_held(rule, flow)) return true;
  held_[next_held_++ % held_.size()] = held_of(rule, flow);
  return false;
}

// Its place in the table, and the numbers of its transactions, are the next one's.
void Inspection::flow_ended(flow::Flow& flow, flow::Extra*, flow::FlowEndReason) {
  forget_waiting(flow);
  tell_held();
  other_flow_ = nullptr;
  if ((flow.user & is_http) == 0) return;
  const std::uint32_t index = conversations_.table().index_of(flow);
  for (Held& held : held_) {
    if (held.flow == index) held = {};
  }
}

// As counts of rates know it; 0: none.
std::uint64_t Inspection::number_of(const flow::Flow* flow) const {
  return flow == nullptr ? 0 : std::uint64_t{flow->began} << 32 | (conversations_.table().index_of(*flow) + 1);
}

// Of the patterns in search_->found, the first so many. `inspected`: bytes of Buffer::payload.
bool Inspection::has_candidates(Scope scope, std::size_t found, std::size_t inspected, bool addresses_told) {
  match::Detector::Found what;
  what.patterns = {search_->found.data(), found};
  what.by_keys = by_keys_;
  what.inspected = inspected;
  what.scope = scope;
  what.addresses_told = addresses_told;
  return rules().detector().collect(Point::packet, subject_.packet, what, search_->detector);
}

void Inspection::reject(match::Told told) {
  subject_.judgement.reject = true;
  subject_.judgement.tell_source |= told != match::Told::destination;
  subject_.judgement.tell_destination |= told != match::Told::source;
}

// What has_candidates() has left to be confirmed.
bool Inspection::inspect(const match::FlowFacts& facts, flow::Flow* flow, flow::Extra* extra, const Buffers& buffers,
                         std::string_view payload) {
  std::vector<std::uint32_t>& matched = search_->matched;
  matched.clear();
  // A flow without a record has no bits; it gets one when a rule sets some.
  match::FlowBits* const bits = extra != nullptr  ? &conversations_.bits_of(*extra)
                                : flow != nullptr ? &own_bits_
                                                  : nullptr;
  const match::Detector& detector = rules().detector();
  const std::uint32_t most = share_.time.allows(search_->detector.candidates()) ? share_.candidates : 0;
  const auto outcome =
      detector.confirm(subject_.packet, facts, bits, buffers, {most, share_.time.left()}, search_->detector, matched);
  if (!matched.empty() && extra == nullptr && flow != nullptr && own_bits_ != match::FlowBits{}) {
    if (extra = conversations_.extra_of(*flow); extra != nullptr) extra->bits = own_bits_;
    own_bits_ = {};
  }
  share_.candidates -= std::min(share_.candidates, outcome.confirmed);
  share_.time.spend(outcome.ticks);
  counters_.confirmed += outcome.confirmed;
  if (outcome.left != 0) {
    counters_.left += outcome.left;
    counters_.given_up += outcome.given_up;
    overload(outcome.decisive);
  }
  act(facts, flow, extra, payload);
  return outcome.left == 0;
}

void Inspection::act(const match::FlowFacts& facts, flow::Flow* flow, flow::Extra* extra, std::string_view payload) {
  for (const std::uint32_t r : search_->matched) {
    const match::Rule& rule = rules().detector().rules().rules[r];
    if (transaction_ != nullptr && held_before(r, *flow)) continue;
    const match::RateVerdict rate_verdict = search_->rates.judge(r, subject_.packet, number_of(flow), now_);
    if (rate_verdict == match::RateVerdict::nothing) continue;
    const bool whole_flow = flow != nullptr && match::acts_on_flow(rule, facts.reassembled) &&
                            !(subject_.packet.fragment() && match::names_ports(rule));
    if (match::blocks(rule.action)) {
      if (!subject_.judgement.by_rule) blocking_rule_ = r;
      subject_.judgement.drop = subject_.judgement.by_rule = true;
      if (rule.action == match::Action::reject) reject(rule.told);
      if (whole_flow) flow->user |= dropped;
    }
    if (rule.action == match::Action::pass) {
      if (whole_flow) flow->user |= passed;
      subject_.passed = true;
      break;
    }
    if (rule.noalert || rate_verdict == match::RateVerdict::action_only) continue;
    if (!search_->alerts.tells(r, subject_.packet, number_of(flow), now_)) continue;
    ++counters_.alerts;
    tell({&rules(), r, now_, subject_.frame, &subject_.packet, subject_.direction, flow, payload,
          subject_.judgement.drop, facts.reassembled, facts.reassembled ? transaction_of(extra) : nullptr});
  }
}

}  // namespace sluice::function
