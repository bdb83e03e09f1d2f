// Rules whose flowbits depend on what else a frame brings: those of HTTP that other parts of their message set or
// clear, and those of the stream that ask for what HTTP sets (match/detect/detector.h, settle()).
#include <algorithm>

#include "function/inspect/inspection_as_if.h"

namespace sluice::function {

using flow::Direction;
using match::Buffer;

// Those of one message at a time.
void Inspection::note_waiting(flow::Flow& flow, Direction direction, const flow::http::Transaction& transaction) {
  const auto rules = search_->detector.waiting();
  if (rules.empty()) return;
  const bool is_same =
      waiting_.flow == &flow && waiting_.direction == direction && waiting_.transaction == transaction.number;
  if (!is_same && !waiting_.rules.empty()) settle(nullptr);
  waiting_.flow = &flow;
  waiting_.direction = direction;
  waiting_.transaction = transaction.number;
  waiting_.rules.insert(waiting_.rules.end(), rules.begin(), rules.end());
}

void Inspection::note_unset(flow::Flow& flow, Direction direction, std::size_t piece) {
  const auto rules = search_->detector.unset();
  if (rules.empty() || &flow != flow_ || direction != subject_.direction) return;
  unset_.rules.assign(rules.begin(), rules.end());
  unset_.flow = &flow;
  unset_.piece = piece;
}

// `transaction`: theirs; null: it is the one that its side is parsing, or not there any more.
void Inspection::settle(const flow::http::Transaction* transaction) {
  flow::Flow& flow = *waiting_.flow;
  const AsIf as_if(*this, flow, waiting_.direction);
  flow::Extra* const extra = conversations_.extra_if_any(flow);
  if (extra != nullptr && (flow.user & FlowMark::dropped) == 0 && !is_passed(flow)) {
    if (transaction == nullptr && extra->http != nullptr) {
      const auto* const current = extra->http->sides[static_cast<unsigned>(waiting_.direction)].current;
      if (current != nullptr && current->number == waiting_.transaction) transaction = current;
    }
    transaction_ = transaction;
    if (transaction != nullptr) std::erase_if(waiting_.rules, [&](std::uint32_t rule) { return has_held(rule, flow); });
    search_->matched.clear();
    rules().detector().settle(waiting_.rules, &conversations_.bits_of(*extra), search_->detector, search_->matched);
    act(stream_facts_of(flow, waiting_.direction), &flow, extra, {});
    transaction_ = nullptr;
  }
  waiting_.rules.clear();
}

// They are tried in the window again that they were found in.
void Inspection::try_unset() {
  flow::Flow& flow = *unset_.flow;
  const std::string_view window = conversations_.window(flow, subject_.direction);
  flow::Extra* const extra = conversations_.extra_if_any(flow);
  if (extra != nullptr && (flow.user & FlowMark::dropped) == 0 && !is_passed(flow) && unset_.piece <= window.size()) {
    const std::string_view piece = window.substr(window.size() - unset_.piece);
    if (rules().detector().collect_unset(unset_.rules, piece, search_->detector)) {
      match::Buffers buffers;
      set_headers(buffers, subject_.packet);
      buffers.set(Buffer::payload, window);
      inspect(stream_facts_of(flow, subject_.direction), &flow, extra, buffers, piece);
      keep_dropping(flow);
      flow::Carried& carried = extra->carried[static_cast<unsigned>(subject_.direction)];
      for (const std::uint32_t rule : search_->matched) {
        if (rules().detector().has_pattern(rule)) carried.hold(rule);
      }
    }
  }
  unset_.rules.clear();
}

void Inspection::settle_all() {
  if (!waiting_.rules.empty()) settle(nullptr);
  if (!unset_.rules.empty()) try_unset();
}

// What it has not settled by now it settles as it is.
void Inspection::forget_waiting(const flow::Flow& flow) {
  if (!waiting_.rules.empty() && waiting_.flow == &flow) settle(nullptr);
  if (unset_.flow == &flow) unset_.rules.clear();
}

}  // namespace sluice::function
