#include "function/inspect/http_limit_notes.h"

namespace sluice::function {
namespace {

constexpr std::array<const char*, flow::http::limits> names = {"",
                                                               "header_limit",
                                                               "headers_limit",
                                                               "header_fields",
                                                               "content_codings",
                                                               "chunks of a request that cannot be read",
                                                               "requests whose end servers read in more than one way",
                                                               "http_memory or http used up"};

}  // namespace

std::string HttpLimitNotes::line(const Counts& counts, std::uint64_t now, bool drops) {
  if (counts == said_ || now < next_) return {};
  std::uint64_t all = 0;
  std::string which;
  for (std::size_t l = 1; l < counts.size(); ++l) {
    const std::uint64_t more = counts[l] - said_[l];
    if (more == 0) continue;
    all += more;
    which += (which.empty() ? "" : ", ") + std::string(names[l]) + " (" + std::to_string(more) + ")";
  }
  said_ = counts;
  next_ = now + interval;
  return "inspect: " + std::to_string(all) + " HTTP conversation" + (all == 1 ? "" : "s") +
         " beyond a limit since this was last said, " +
         (drops ? "dropped from there on" : "inspected no further, or not whole, and let by") +
         " (on_http_limit): " + which;
}

}  // namespace sluice::function
