// open_capture() of capture_request.h: from records of the lanes to a pcapng.
#include <rte_cycles.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <deque>
#include <sstream>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/quote.h"
#include "base/spelling.h"
#include "control/capture_request.h"
#include "control/pcapng_blocks.h"

namespace sluice::control {
namespace {

using engine::TapEvent;
using engine::TapRecord;
using engine::TapVerdict;

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds longest_hold(200), heartbeat(250), between_looks(5);
constexpr unsigned looks = 10;  // without a frame, before next() returns
constexpr std::size_t most_bytes = 1 << 18, most_held = 1 << 16;

std::uint64_t wall_clock() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

class Stream final : public CaptureStream {
 public:
  Stream(engine::Engine& engine, const CaptureRequest& request, std::unique_ptr<engine::TapSession> session,
         std::function<bool()> ended)
      : engine_(engine), request_(request), session_(std::move(session)), ended_(std::move(ended)) {
    set_clock();
  }

  bool next(std::string& bytes) override {
    bytes.clear();
    if (std::exchange(first_, false)) {
      begin(bytes);
      return true;
    }
    bool over = false;
    for (unsigned look = 0; look < looks && bytes.empty() && !over; ++look) {
      over = is_over();
      take();
      write_settled(bytes, over);
      if (bytes.empty() && !over) std::this_thread::sleep_for(between_looks);
    }
    over = over || (request_.count != 0 && written_ >= request_.count);
    if (const auto now = Clock::now(); over || now >= next_heartbeat_) {
      next_heartbeat_ = now + heartbeat;
      set_clock();
      bytes += statistics();
    }
    return !over;
  }

 private:
  struct Held {
    TapRecord record;
    Clock::time_point since;
    bool settled;
  };

  bool is_over() const {
    return ended_() || (request_.seconds != 0 && Clock::now() - began_ >= std::chrono::seconds(request_.seconds));
  }

  void set_clock() {
    base_tsc_ = rte_rdtsc();
    base_time_ = wall_clock();
  }
  std::uint64_t time_of(std::uint64_t tsc) const {
    const auto since = static_cast<double>(static_cast<std::int64_t>(tsc - base_tsc_)) / engine_.tsc_per_ns();
    return base_time_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(since));
  }

  void begin(std::string& bytes) const {
    constexpr std::uint32_t byte_order = 0x1a2b3c4d, unknown = 0xffffffff;
    constexpr std::uint16_t ethernet = 1;
    bytes += PcapngBlock(pcapng::section)
                 .word(byte_order)
                 .half(1)
                 .half(0)
                 .word(unknown)
                 .word(unknown)
                 .option(pcapng::user_application, "sluice " SLUICE_VERSION)
                 .text();
    for (std::size_t port = 0; port < engine_.options().ports.size(); ++port) {
      const auto& options = engine_.options().ports[port];
      PcapngBlock block(pcapng::interface);
      block.half(ethernet).half(0).word(request_.snapshot);
      block.option(pcapng::if_name, options.name).option(pcapng::if_description, options.device);
      block.option(pcapng::if_resolution, "\x09");  // nanoseconds
      if (!request_.filter.empty()) block.option(pcapng::if_filter, std::string(1, '\0') + request_.filter);
      bytes += block.text();
    }
  }

  void take() {
    TapRecord record;
    while (held_.size() < most_held && session_->take(record)) {
      if (record.event != TapEvent::settled) {
        const bool waits = record.event == TapEvent::received;
        held_.push_back(
            {record, Clock::now(), !waits});  // a copy has no more capacity than it needs, `record` keeps its own
        if (waits) by_id_[held_.back().record.id] = &held_.back();
        continue;
      }
      const auto found = by_id_.find(record.id);
      if (found == by_id_.end()) continue;  // it did not wait for so long
      found->second->record.verdict = record.verdict;
      found->second->record.verdict_port = record.verdict_port;
      found->second->record.reason = record.reason;
      found->second->settled = true;
      by_id_.erase(found);
    }
  }

  void write_settled(std::string& bytes, bool all) {
    const auto now = Clock::now();
    while (!held_.empty() && bytes.size() < most_bytes && (request_.count == 0 || written_ < request_.count)) {
      const Held& held = held_.front();
      if (!held.settled && !all && now - held.since < longest_hold && held_.size() < most_held) break;
      by_id_.erase(held.record.id);
      bytes += packet(held.record);
      ++written_;
      held_.pop_front();
    }
  }

  std::string verdict(const TapRecord& record) const {
    switch (record.verdict) {
      case TapVerdict::forwarded:
        return "forwarded by " + engine_.options().ports[record.verdict_port].name;
      case TapVerdict::to_host:
        return "to the host";
      case TapVerdict::dropped:
        return "dropped: " + std::string(packet::reason_name(record.reason)) + " (" +
               std::string(packet::reason_text(record.reason)) + ")";
      case TapVerdict::answered:
        return "not forwarded, but answered: " + std::string(packet::reason_name(record.reason)) + " (" +
               std::string(packet::reason_text(record.reason)) + ")";
      case TapVerdict::none:
        break;
    }
    return record.event == TapEvent::received ? "not known what became of it" : "";
  }

  std::string packet(const TapRecord& record) {
    constexpr std::uint32_t inbound = 1, outbound = 2;
    PcapngBlock block(pcapng::packet);
    block.word(record.port).time(time_of(record.tsc));
    block.word(static_cast<std::uint32_t>(record.bytes.size())).word(record.length).bytes(record.bytes);
    const std::string what = verdict(record);
    if (!what.empty()) block.option(pcapng::comment, what);
    block.option_word(pcapng::flags, record.event == TapEvent::sent ? outbound : inbound);
    if (const std::uint64_t lost = session_->lost(); lost != reported_lost_) {
      block.option_long(pcapng::drop_count, lost - std::exchange(reported_lost_, lost));
    }
    return block.text();
  }

  // Of all ports together, as interface 0's: a frame that was lost is of none.
  std::string statistics() const {
    return PcapngBlock(pcapng::statistics)
        .word(0)
        .time(wall_clock())
        .option_long(pcapng::received, written_ + session_->lost())
        .option_long(pcapng::dropped, session_->lost())
        .text();
  }

  engine::Engine& engine_;
  const CaptureRequest request_;
  const std::unique_ptr<engine::TapSession> session_;
  const std::function<bool()> ended_;
  const Clock::time_point began_ = Clock::now();
  Clock::time_point next_heartbeat_ = began_ + heartbeat;
  std::uint64_t base_tsc_ = 0, base_time_ = 0;
  std::uint64_t written_ = 0, reported_lost_ = 0;
  std::deque<Held> held_;                           // in the order of their coming
  std::unordered_map<std::uint64_t, Held*> by_id_;  // those that are not settled
  bool first_ = true;
};

// libpcap would ask a packet socket for a frame's direction, and find none: no frame would pass.
Expected<void> check_filter(const std::string& filter) {
  std::istringstream words(filter);
  for (std::string word; words >> word;) {
    const std::string bare = word.substr(std::min(word.find_first_not_of("(!"), word.size()));
    for (const auto& [name, direction] : {std::pair("inbound", "in"), std::pair("outbound", "out")}) {
      if (bare.substr(0, bare.find(')')) != name) continue;
      return make_error("filter: a filter cannot distinguish directions: in place of " + std::string(name) +
                        " give --direction " + direction);
    }
  }
  return {};
}

Expected<void> choose(const engine::Engine& engine, const CaptureRequest& asked, engine::TapRequest& request) {
  const auto& ports = engine.options().ports;
  std::vector<std::string> known = {"any", "drops"};
  for (std::size_t i = 0; i < ports.size(); ++i) {
    known.push_back(ports[i].name);
    if (ports[i].name == asked.target) {
      request.ports.set(i);
      return {};
    }
  }
  request.ports.set();
  constexpr std::string_view lane = "lane:";
  if (asked.target.starts_with(lane)) {
    std::uint32_t number = 0;
    const char* const end = asked.target.data() + asked.target.size();
    const auto read = std::from_chars(asked.target.data() + lane.size(), end, number);
    if (read.ec != std::errc{} || read.ptr != end || number >= engine.lanes().size()) {
      return make_error("target: there is no " + in_quotes(asked.target) +
                        ": lanes are lane:0 to lane:" + std::to_string(engine.lanes().size() - 1));
    }
    request.lane = number;
    return {};
  }
  request.drops = asked.target == "drops";
  if (request.drops || asked.target == "any") return {};
  return make_error("target: there is no port " + in_quotes(asked.target) + spelling_hint(asked.target, known) +
                    "; besides ports there are \"any\", \"lane:N\" and \"drops\"");
}

Expected<packet::Reason> find_reason(const CaptureRequest& asked, bool drops) {
  if (asked.reason.empty()) return packet::no_reason;
  if (!drops) return make_error("reason: it is of the target \"drops\" alone");
  std::vector<std::string> known;
  for (unsigned reason = 1; reason < packet::reason_count(); ++reason) {
    known.emplace_back(packet::reason_name(static_cast<packet::Reason>(reason)));
    if (known.back() == asked.reason) return static_cast<packet::Reason>(reason);
  }
  return make_error("reason: there is no " + in_quotes(asked.reason) + spelling_hint(asked.reason, known));
}

}  // namespace

Expected<std::unique_ptr<CaptureStream>> open_capture(engine::Engine& engine, const CaptureRequest& request,
                                                      std::function<bool()> ended) {
  engine::TapRequest tap;
  if (auto chosen = choose(engine, request, tap); !chosen) return tl::unexpected(chosen.error());
  if (auto filter = check_filter(request.filter); !filter) return tl::unexpected(filter.error());
  const auto reason = find_reason(request, tap.drops);
  if (!reason) return tl::unexpected(reason.error());
  if (tap.drops && !request.direction.empty()) return make_error("direction: a frame that is dropped has none");
  tap.reason = *reason;
  tap.in = request.direction != "out";
  tap.out = request.direction != "in";
  tap.filter = request.filter;
  tap.snapshot = request.snapshot;
  tap.records = request.buffer;
  auto session = engine.tap().open(tap);
  if (!session) return tl::unexpected(session.error());
  return std::make_unique<Stream>(engine, request, std::move(*session), std::move(ended));
}

}  // namespace sluice::control
