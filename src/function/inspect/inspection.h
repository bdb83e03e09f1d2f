// One lane's inspection: frames in, the rules that hold out. Puts together the conversations (flow/), what the matcher
// finds (match/automaton/) and what is confirmed of it (match/detect/).
//
//   Inspection inspection(rules, settings, sink);
//   const Judgement judgement = inspection.frame(bytes, microseconds);  // alerts come to the sink from within
//   if (judgement.drop) ...
//
// What is inspected, as Suricata does it: each packet by the rules that look at no payload, but by those about
// addresses alone one of each direction of a flow, and after exchange() another. The payload of TCP is inspected as a
// stream, of each new piece with what went before it (the window), in a flow whose handshake was seen, else as packets;
// all other payloads as packets. HTTP messages are inspected where a buffer is whole (match/detect/detector.h, Point).
// Each packet comes before the stream's piece that it brings. A rule of `drop`, `reject` or `pass` that holds acts on
// the packet, or on the rest of the flow (match/rules/rule_scope.h): all further packets of it are dropped, or nothing
// of it is inspected any more. What a flow that is dropped so held of streams, HTTP and bits is given back with that
// packet, or, where it was another flow's that made it tell, with its next one. A stream does not get what was dropped
// before it: it is inspected when it comes again. Of a packet that its stream does not take whole (flow/tcp_stream.h,
// feed()) the payload is inspected by itself besides; one that its stream refuses is dropped, unless a rule of `pass`
// has held.
//
// What a stream tells without a packet of its own and its direction (at the end of its flow, or what waited behind a
// gap that the other side acknowledged) is inspected as from a packet of its ends without payload. What other flows
// tell because a frame ends them, or takes their room, is not the frame's: neither it nor they are dropped for the
// other.
//
// A rule whose parts come in several pieces is tried with each of them, as long as its best pattern is in the window
// (flow/carried.h); once it holds, only when that pattern comes again. What is open is forgotten at exchange(). A piece
// whose header or flowbits do not let a rule hold that its pattern leads to makes it wait for that pattern as well.
//
// What a device has found in a payload (KeyHits) takes the place of the search on this core, for the packet and for the
// stream's piece that it brings. What lies across pieces is looked for here. A rule whose key is in one piece and whose
// pattern ends in another is tried with that one, whatever kept it from holding before. Without hits, and for what came
// out of order, HTTP's buffers and bodies, the core searches. The rules that hold are the same either way.
//
// What has to wait in its stream is looked at when it comes, as far as it says that nothing is in it; the rest, and
// what lies across, is searched when a frame releases it. As much of that as the frame brings itself costs it nothing,
// the rest is part of the batch's time (confirm_time.h): one frame may release 256 KiB, and one of another flow's end,
// too. So is to hand it over, a fixed time for a segment and for a byte, but for one frame of a batch, and one other
// flow, that release all they can while the batch is not late: ordinary losses are. What there is no time for is thrown
// away as it waits, a gap. With `drop_on_overload` a frame that would release more than there is time for is dropped
// before its stream takes it, unless it is a RST, which nobody sends again.
//
// A fragment is inspected as the packet that it is, and the one that completes its datagram (flow/fragments.h) brings
// that besides: it is inspected as a packet that came whole, searched by this core, and the verdict is the fragment's.
// What the datagram holds beyond that fragment is searched as what has waited in a stream is.
// Of fragments that cannot be put together the policy is `drop_on_overload`, too.
//
// Bounded: `budget` candidates for a frame (all its inspections together), as many for each other flow that it makes
// tell something, and so much time for a batch (begin()). Of that each frame has a share that those before it cannot
// take (confirm_time.h), and other flows an eighth, shared likewise. HTTP is searched within it, too, but for 8 KiB and
// as much as the frame brings of its stream, so that ordinary bodies are not concerned. What is left over is counted,
// and the policy is `drop_on_overload`: the frame, and where a stream or HTTP was left, the rest of its flow. That is
// for what might have been dropped: frames of which rules are left that only alert go on, and where no rule drops, all
// do, as without the policy. HTTP that goes beyond a limit (flow/http/settings.h, Limit) is dropped from that frame on
// with `drop_on_http_limit`, where a rule drops at all and none of `pass` has held. Memory: settings.conversations,
// taken here.
//
// Lifetime: the end of an Inspection ends its flows, and inspects what they hold: the sink outlives it, with all that
// its calls touch.
//
// Thread-safety: none, one lane; the Rules are shared by all. The sink may not call back.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "flow/conversations.h"
#include "flow/fragments.h"
#include "function/inspect/inspection_rules.h"
#include "function/inspect/inspection_subject.h"
#include "function/inspect/judgement.h"
#include "match/confirm/packet_facts.h"
#include "match/detect/detector.h"
#include "match/detect/rate_filter.h"

namespace sluice::function {

// What is known of a frame before a device has looked at it.
struct FrameBrief {
  std::uint32_t hash = 0;    // of its flow, for its table; 0 where it has none
  std::string_view payload;  // within the frame
  std::uint8_t klass = 0;    // match/detect/traffic_classes.h
  bool quiet = false;        // flow/plain_packet.h, and no rule looks at the packet unless a key is in its payload
};

struct InspectionSettings {
  flow::ConversationSettings conversations;
  flow::FragmentSettings fragments;
  std::uint32_t budget = 1000;
  bool drop_on_overload = false;
  bool drop_on_http_limit = false;
};

// Bits of Flow::user, all of which are Inspection's.
struct FlowMark {
  static constexpr std::uint16_t http = 1;     // speaks HTTP
  static constexpr std::uint16_t dropped = 2;  // a rule that drops has held in it
  static constexpr std::uint16_t passed = 4;   // one of `pass` has
  // Rules about addresses alone have been tried with a packet to the server, and to the client; those whose generation
  // ends in the bits above.
  static constexpr std::uint16_t told_to_server = 8, told_to_client = 16;
  static constexpr unsigned generation_at = 5;
};

struct InspectionCounters {
  std::uint64_t frames = 0;
  std::uint64_t not_ip = 0;     // looked at by nobody
  std::uint64_t confirmed = 0;  // candidates
  std::uint64_t alerts = 0;
  std::uint64_t left = 0;           // candidates that the budget did not reach, or that were given up
  std::uint64_t given_up = 0;       // of these, those whose payload checks took too long (payload_matcher.h)
  std::uint64_t releases_left = 0;  // frames, and ends of other flows, that release more than there was time for
  std::uint64_t http_left = 0;      // frames of HTTP that were not parsed because their batch was late
  std::uint64_t overloaded = 0;     // such frames, and those with candidates that were left
  std::uint64_t no_flow = 0;        // frames whose flow the table refused: inspected as packets
  std::uint64_t searched = 0;       // bytes that this core searched
  std::uint64_t refused = 0;        // searches of this core's that Hyperscan refused: their frames are overloaded
  std::uint64_t by_device = 0;      // frames whose payload a device has searched, for the keys of these rules
  std::uint64_t many_keys = 0;      // of these, frames with more keys than it tells
};

class Inspection final : private flow::ConversationSink {
 public:
  Inspection(std::unique_ptr<InspectionSearch> search, const InspectionSettings& settings, AlertSink& sink);
  ~Inspection();  // inspects

  // Other rules from now on, in all flows; gives back the old ones. Flowbits stay, by name, when the new Detector was
  // made after the old one.
  std::unique_ptr<InspectionSearch> exchange(std::unique_ptr<InspectionSearch> search);
  const InspectionRules& rules() const { return *search_->rules; }

  // From now on candidates are confirmed for so many ticks of the time-stamp counter: what a batch of so many frames
  // brings. Each has what is left, or its share where next() says how many frames are still to come, itself counted. An
  // eighth is set aside for other flows than the frames'. `releases`: one frame, and one other flow, may release all
  // that waits, though there is no time for it.
  void begin(std::uint64_t ticks, std::uint32_t frames = 1, bool releases = true) {
    const std::uint64_t aside = ticks == ConfirmTime::unlimited ? 0 : ticks / 8;
    share_.time.begin(ticks - aside, frames);
    other_share_.time.begin(aside == 0 ? ticks : aside, frames);
    to_come_ = 0;
    late_from_ = Lateness::never;
    lateness_.never_late();
    releases_.begin(releases);
  }
  // So much of it decoding a frame's bodies may take, beyond what comes with their packet (flow::http::Parser): what is
  // behind that in a body is not looked at.
  void set_most_decoding(std::uint64_t ticks) { most_decoding_ = ticks; }
  // Until the next begin(): with a policy that lets frames pass, from this tick on searches of HTTP's buffers are part
  // of those ticks, too.
  void set_late_from(std::uint64_t tsc) { late_from_ = drops_left_ ? Lateness::never : tsc; }
  // Until the next begin(): from this tick on what the device has found in a frame is left, and HTTP is not parsed.
  // Where frames pass, that is a gap to the parser; else the frame is dropped before its stream takes it, and inspected
  // when it is sent again. `now`, `away`: as Lateness has them.
  void set_looks_until(std::uint64_t tsc, std::uint64_t now = 0, std::uint64_t away = 0) {
    lateness_.set(tsc, now, away, counters_.frames, spent());
  }
  // Of the ticks that begin() was given.
  std::uint64_t spent() const { return share_.time.spent() + other_share_.time.spent(); }
  // The same, with what they were exceeded by; and, besides, what whole releases are reckoned to have taken.
  std::uint64_t taken() const { return share_.time.taken() + other_share_.time.taken(); }
  std::uint64_t released_beyond() const { return releases_.beyond; }
  // ConfirmTime::long_steps(), since the start.
  void set_long_from(std::uint64_t ticks) {
    share_.time.set_long_from(ticks);
    other_share_.time.set_long_from(ticks);
  }
  ConfirmTime::LongSteps long_steps() const {
    const ConfirmTime::LongSteps &own = share_.time.long_steps(), &others = other_share_.time.long_steps();
    return {own.times + others.times, own.ticks + others.ticks};
  }
  void next(std::uint32_t frames_to_come) {
    share_.time.next(frames_to_come);
    to_come_ = frames_to_come;
  }

  // `frame`: from its Ethernet header on; `microseconds` since the epoch: of a time that is before an earlier frame's,
  // that one's is taken.
  const Judgement& frame(std::string_view frame, std::uint64_t microseconds, const KeyHits& hits = {}) {
    return this->frame(frame, microseconds, hits, brief_of(frame).hash);
  }
  // With what brief_of() said of it.
  const Judgement& frame(std::string_view frame, std::uint64_t microseconds, const KeyHits& hits, std::uint32_t hash) {
    now_ = std::max(now_, microseconds);
    return is_quiet(hits) ? quiet_frame(frame, hash, hits) : loud_frame(frame, hash, hits);
  }
  const Judgement& last() const { return subject_.judgement; }
  // Some 10 ns.
  FrameBrief brief_of(std::string_view frame) const;
  // At the end of a capture: what conversations still hold is inspected.
  void finish();
  // Takes the pages of all memory that is only touched as it is used.
  void touch_memory() {
    conversations_.touch_memory();
    fragments_.touch_memory();
  }

  // Time has gone on to there without a frame.
  void pass_time(std::uint64_t microseconds) { now_ = std::max(now_, microseconds); }
  // Microseconds: of the last frame, or of an earlier one that had a later time, or as pass_time() says.
  std::uint64_t now() const { return now_; }
  const InspectionCounters& counters() const { return counters_; }
  flow::Conversations& conversations() { return conversations_; }
  flow::Fragments& fragments() { return fragments_; }
  const match::RateCounters& rate_counters() const { return search_->rates.counters(); }
  // Alerts that lines of suppress and event_filter have kept back, and what these have counted.
  std::uint64_t alerts_filtered() const { return search_->alerts.kept_back(); }
  const match::RateCounters& event_filter_counters() const { return search_->alerts.rates(); }

 private:
  class AsIf;
  bool wants_stream(const flow::Flow& flow) override { return (flow.user & FlowMark::dropped) == 0; }
  bool tracked(flow::Flow& flow, flow::Direction direction, bool streamed) override;
  void stream_data(flow::Flow& flow, flow::Extra& extra, flow::Direction direction,
                   const flow::StreamData& data) override;
  std::uint8_t waits(flow::Flow& flow, flow::Direction direction) override;
  bool may_release(flow::Flow& flow, flow::Direction direction, flow::Waiting waiting) override;
  bool takes_waiting(flow::Flow& flow, flow::Direction direction, std::size_t bytes) override;
  void not_taken(flow::Flow& flow, flow::Extra& extra, flow::Direction direction) override;
  void refused(flow::Flow& flow, flow::Direction direction, flow::Taken why) override;
  void stream_gap(flow::Flow& flow, flow::Extra& extra, flow::Direction direction, std::uint64_t bytes) override;
  bool http_goes_by(flow::Flow& flow, bool released) override;
  void http(flow::Flow& flow, flow::Extra& extra, flow::http::Event event,
            flow::http::Transaction& transaction) override;
  bool decodes(flow::Flow& flow, std::uint64_t bytes) override;
  void decoded(flow::Flow& flow, std::uint64_t bytes) override;
  void http_limited(flow::Flow& flow, flow::http::Limit limit) override;
  void http_stopped(flow::Flow&, flow::Extra&, flow::http::StopReason) override { tell_held(); }
  void flow_ended(flow::Flow& flow, flow::Extra* extra, flow::FlowEndReason reason) override;

  bool is_quiet(const KeyHits& hits) const {
    return hits.quiet && hits.count == 0 && hits.generation == rules().generation();
  }
  const Judgement& quiet_frame(std::string_view frame, std::uint32_t hash, const KeyHits& hits);
  void begin_frame(std::string_view frame, const KeyHits& hits);
  const Judgement& loud_frame(std::string_view frame, std::uint32_t hash, const KeyHits& hits);
  bool may_be_quiet(std::string_view frame, const KeyHits& hits);
  const Judgement& plain_frame(std::string_view frame, std::uint32_t hash, const KeyHits& hits);
  bool is_quiet_in(const flow::Flow* flow, bool streamed) const;
  bool tracked_by_rules(flow::Flow& flow, flow::Direction direction, bool streamed);
  const Judgement& end_frame(const flow::Flow* flow, bool by_flow);
  bool drop_by_flow(flow::Flow& flow);
  static bool asks_anew(const flow::Flow& flow, const flow::Packet& packet);
  void read_facts();
  flow::Flow* inspect_datagram(flow::Flow* flow, bool& by_flow);
  void between_frames();
  match::FlowFacts facts_of(const flow::Flow& flow, flow::Direction direction) const;
  match::FlowFacts stream_facts_of(const flow::Flow& flow, flow::Direction direction) const;
  void inspect_packet(flow::Flow* flow, bool in_stream);
  bool has_candidates(match::Detector::Scope scope, std::size_t found, std::size_t inspected,
                      bool addresses_told = false);
  // Whether rules about addresses alone have been tried with the direction: they say the same of each of its packets.
  bool addresses_told(const flow::Flow* flow) const {
    return flow != nullptr && flow->user >> FlowMark::generation_at == mark_of_generation() &&
           (flow->user & told_mark()) != 0;
  }
  void tell_addresses(flow::Flow& flow) const;
  std::uint16_t mark_of_generation() const {
    return static_cast<std::uint16_t>(rules().generation()) & (0xffffU >> FlowMark::generation_at);
  }
  std::uint16_t told_mark() const {
    return subject_.direction == flow::Direction::to_server ? FlowMark::told_to_server : FlowMark::told_to_client;
  }
  void inspect_piece(flow::Flow& flow, flow::Extra& extra, flow::Direction direction, const flow::StreamData& data);
  void keep_dropping(flow::Flow& flow) const;
  bool has_stream_candidates(flow::Carried& carried, std::size_t found, const flow::StreamData& data, bool& all);
  std::size_t find_in(const flow::StreamData& data, flow::Carried& carried);
  // False: candidates are left.
  bool inspect(const match::FlowFacts& facts, flow::Flow* flow, flow::Extra* extra, const match::Buffers& buffers,
               std::string_view payload);
  void reject(match::Told told);
  static void set_headers(match::Buffers& buffers, const match::PacketFacts& packet);
  // What of search_->matched the packet and its flow meet with, and alerts.
  void act(const match::FlowFacts& facts, flow::Flow* flow, flow::Extra* extra, std::string_view payload);
  void inspect_http(flow::Flow& flow, flow::Extra& extra, flow::http::Event event,
                    flow::http::Transaction& transaction);
  void note_waiting(flow::Flow& flow, flow::Direction direction, const flow::http::Transaction& transaction);
  void note_unset(flow::Flow& flow, flow::Direction direction, std::size_t piece);
  void settle(const flow::http::Transaction* transaction);
  void try_unset();
  void settle_all();
  void forget_waiting(const flow::Flow& flow);
  bool has_held(std::uint32_t rule, const flow::Flow& flow) const;
  bool held_before(std::uint32_t rule, const flow::Flow& flow);
  std::uint64_t number_of(const flow::Flow* flow) const;
  const flow::http::Transaction* transaction_of(const flow::Extra* extra) const;
  std::size_t search_http(match::Point point, bool grows, flow::http::Transaction& transaction,
                          match::Buffers& buffers);
  bool is_late() { return lateness_.is_late(counters_.frames, spent()); }
  bool leaves_hits();
  bool drops_unseen(const flow::Flow& flow);
  bool search_buffer(match::Buffer buffer, std::string_view bytes, flow::http::Marks& marks);
  void search_body(match::BufferSet bodies, bool grows, flow::http::Message& message);
  void list(std::uint32_t number);
  void mark_found(flow::http::Marks& marks, std::uint32_t number);
  void add_found(const flow::http::Marks& marks);
  flow::http::Marks& marks_of(flow::http::Message& message);
  void search_again(flow::http::Message& message);
  void set_policy();
  std::size_t search(match::Buffer buffer, std::string_view bytes, std::size_t from = 0, std::size_t found = 0);
  std::size_t search_payload(std::string_view bytes, std::size_t from);
  struct Searched {
    std::size_t found = 0;
    bool all = true;  // false: there was no time for the rest
  };
  Searched search_slices(std::string_view bytes, std::size_t from, bool has_waited);
  bool is_first_release(const flow::Flow& flow);
  // Nothing of it is inspected any more.
  bool is_passed(const flow::Flow& flow) const { return (flow.user & FlowMark::passed) != 0 || subject_.passed; }
  std::optional<std::size_t> search_in_time(match::Buffer buffer, std::string_view bytes);
  bool may_search();
  void tell(const Alert& alert);
  void tell_held() {
    if (!held_alerts_.empty()) [[unlikely]]
      tell_all_held();
  }
  void tell_all_held();
  void overload(bool decisive = true);
  DropReason drop_reason() const;
  void tell_dropped(const flow::Flow* flow, bool by_flow);
  std::size_t take_hits(const KeyHits& hits, std::string_view bytes, std::size_t history, bool before_by_core = false);

  std::unique_ptr<InspectionSearch> search_;
  const InspectionSettings settings_;
  bool drops_left_ = false;     // drop_on_overload, where a rule drops at all
  bool drops_limited_ = false;  // drop_on_http_limit, likewise
  AlertSink& sink_;
  Lateness lateness_;
  std::uint64_t late_from_ = Lateness::never;
  InspectionCounters counters_;
  std::uint64_t now_ = 0;  // microseconds
  // The frame, or what is inspected besides (AsIf); between frames there is none (between_frames()).
  Subject subject_;
  InspectionShare share_;
  bool is_datagram_ = false;  // put together from fragments
  bool by_keys_ = false;      // what is in search_->found
  bool quiet_ = false;        // no rule looks at the packet, and it is not read yet
  bool depends_ = false;      // that may be so, as its flow says: of plain_
  flow::Packet plain_;
  match::FlowBits own_bits_{};        // of a flow without an Extra
  const flow::Flow* flow_ = nullptr;  // of the frame, once it is known
  std::uint64_t most_decoding_ = Lateness::never;
  // The other flow that was last inspected during the frame (AsIf), null: none; and what it may still use, of the time
  // that all of them have.
  const flow::Flow* other_flow_ = nullptr;
  InspectionShare other_share_;
  std::uint32_t to_come_ = 0;  // frames of the batch, as next() says
  WholeReleases releases_;
  std::string text_;  // buffers that are put together
  // The last rules that held for HTTP transactions: a response may be whole a second time, with bytes that came behind
  // its end.
  struct Held {
    std::uint32_t flow, rule;
    std::uint64_t transaction;
    bool operator==(const Held&) const = default;
  };
  Held held_of(std::uint32_t rule, const flow::Flow& flow) const;
  std::array<Held, 64> held_{};
  std::size_t next_held_ = 0;
  const flow::http::Transaction* transaction_ = nullptr;  // that is being inspected
  // Of a message: rules that hold but for their flowbits, until the frame, or the message, has told all.
  struct Waiting {
    flow::Flow* flow = nullptr;
    flow::Direction direction = flow::Direction::to_server;
    std::uint64_t transaction = 0;
    std::vector<std::uint32_t> rules;
  };
  Waiting waiting_;
  // Of the last piece of the frame's stream, so many bytes: rules that ask for a flowbit that its HTTP may set.
  struct Unset {
    flow::Flow* flow = nullptr;
    std::size_t piece = 0;
    std::vector<std::uint32_t> rules;
  };
  Unset unset_;
  flow::Fragments fragments_;
  // Alerts of a request line wait for its headers, if those come in the same frame, so that they can be told with them.
  bool holds_alerts_ = false;
  std::uint32_t blocking_rule_ = 0;  // where subject_.judgement.by_rule
  std::vector<Alert> held_alerts_;
  flow::Conversations conversations_;  // last: its end may still inspect
};

inline void Inspection::begin_frame(std::string_view frame, const KeyHits& hits) {
  subject_.frame = frame;
  subject_.hits.take(hits, rules().generation());
  subject_.direction = flow::Direction::to_server;
  subject_.judgement = {};
  share_.begin(settings_.budget);
  counters_.by_device += subject_.hits.known || subject_.hits.too_many ? 1 : 0;
  counters_.many_keys += subject_.hits.too_many ? 1 : 0;
  ++counters_.frames;
}

inline const Judgement& Inspection::end_frame(const flow::Flow* flow, bool by_flow) {
  if (!waiting_.rules.empty() || !unset_.rules.empty()) [[unlikely]] {
    settle_all();
  }
  tell_held();
  if (subject_.judgement.overload) [[unlikely]] {
    ++counters_.overloaded;
    if (!subject_.judgement.drop) sink_.unseen();
  }
  if (subject_.judgement.drop) [[unlikely]] {
    tell_dropped(flow, by_flow);
  }
  between_frames();
  return subject_.judgement;
}

// What a flow tells at its end, when the table is swept, is about no frame: the last one's memory is no more.
// subject_.packet still points there, and is replaced before it is read (AsIf).
inline void Inspection::between_frames() {
  subject_.frame = {};
  subject_.hits.known = subject_.hits.too_many = subject_.passed = false;
  is_datagram_ = false;
  flow_ = nullptr;
  other_flow_ = nullptr;
}

}  // namespace sluice::function
