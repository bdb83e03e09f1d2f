// What the core searches in HTTP's buffers.
#include <algorithm>

#include "function/inspect/inspection.h"

namespace sluice::function {

using match::Buffer;
using match::Buffers;
using match::Point;

// The patterns of a point, in the buffers that they may be in, into search_->found.
std::size_t Inspection::search_buffers(Point point, const Buffers& buffers) {
  std::vector<std::uint32_t>& all = search_->candidates;
  all.clear();
  const match::BufferSet searched = rules().detector().searched(point);
  for (std::size_t b = 0; b < match::buffer_count; ++b) {
    if (!searched.has(static_cast<Buffer>(b))) continue;
    if (const auto bytes = buffers[static_cast<Buffer>(b)]) search_also(point, *bytes);
  }
  return take_candidates();
}

// Those that were found before, and those in what is new of a body, with what may belong to them before that.
std::size_t Inspection::search_growth(Point point, const flow::http::Message& message, bool grows) {
  const auto& marks = message.marks;
  search_->candidates.assign(marks.found.begin(), marks.found.begin() + marks.found_count);
  if (grows) {
    const std::string_view body = message.body_view();
    const std::size_t searched = message.body_fresh().size() + rules().detector().longest_pattern(point);
    search_also(point, body.substr(body.size() - std::min(body.size(), searched)));
  }
  return take_candidates();
}

void Inspection::search_also(Point point, std::string_view bytes) {
  const std::size_t count = search(point, bytes);
  const auto found = search_->found.begin();
  search_->candidates.insert(search_->candidates.end(), found, found + static_cast<std::ptrdiff_t>(count));
}

// To search_->found, each once.
std::size_t Inspection::take_candidates() {
  std::vector<std::uint32_t>& all = search_->candidates;
  by_keys_ = false;
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  std::copy(all.begin(), all.end(), search_->found.begin());
  return all.size();
}

// The one that is inspected; of a piece of the stream, which the parser does not have yet, the one that it goes on
// with: the request that is not whole, or the only one that has no whole answer.
const flow::http::Transaction* Inspection::transaction_of(const flow::Extra* extra) const {
  if (transaction_ != nullptr || extra == nullptr || extra->http == nullptr) return transaction_;
  const flow::http::Connection& connection = *extra->http;
  if (direction_ == flow::Direction::to_server) return connection.sides[0].current;
  return connection.waiting == 1 ? connection.first : nullptr;
}

// Those that are held came first.
void Inspection::tell(const Alert& alert) {
  if (holds_alerts_ && held_alerts_.size() < held_alerts_.capacity()) {
    held_alerts_.push_back(alert);
  } else {
    tell_held();
    sink_.alert(alert);
  }
}

void Inspection::tell_all_held() {
  for (const Alert& alert : held_alerts_) sink_.alert(alert);
  held_alerts_.clear();
}

void Inspection::mark_found(flow::http::Marks& marks, std::size_t count) const {
  marks.rules = rules().generation();
  marks.found_count = static_cast<std::uint8_t>(std::min(count, marks.room + 1));
  std::copy_n(search_->found.begin(), std::min(count, marks.room), marks.found.begin());
}

}  // namespace sluice::function
