#include "function/inspect/alert_http.h"

#include <algorithm>
#include <cstring>

namespace sluice::function {
namespace {

using flow::http::FieldName;

// "text/html" of "text/html; charset=utf-8".
std::string_view media_type(std::string_view value) {
  return value.substr(0, value.find(';'));
}

}  // namespace

void AlertHttp::take(const flow::http::Transaction* transaction, char* text) {
  there = transaction != nullptr;
  if (!there) return;
  const flow::http::Transaction& of = *transaction;
  cut = 0;
  status = static_cast<std::uint16_t>(std::clamp(of.status_number, 0, 999));
  number = of.number;
  length = of.response.body_wire;
  const bool redirects = status > 300 && status < 400;
  const std::array<std::string_view, texts.size()> values = {of.host(),
                                                             of.method(),
                                                             of.version(),
                                                             of.uri_raw(),
                                                             media_type(of.response.field(FieldName::content_type)),
                                                             of.request.field(FieldName::user_agent),
                                                             redirects ? of.response.field(FieldName::location) : "",
                                                             of.request.field(FieldName::referer)};
  std::size_t used = 0;
  for (std::size_t t = 0; t < texts.size(); ++t) {
    const std::size_t bytes = std::min({values[t].size(), std::size_t{texts[t].most}, most_bytes - used});
    if (bytes < values[t].size()) cut |= static_cast<std::uint8_t>(1U << t);
    if (bytes != 0) std::memcpy(text + used, values[t].data(), bytes);
    size[t] = static_cast<std::uint16_t>(bytes);
    used += bytes;
  }
}

}  // namespace sluice::function
