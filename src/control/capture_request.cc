#include "control/capture_request.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/quote.h"
#include "base/spelling.h"

namespace sluice::control {
namespace {

constexpr std::uint32_t most_buffer = 1 << 16, most_snapshot = 262144, least_snapshot = 14, least_buffer = 16;

// Takes a key into `value`, a number of the range.
template <typename T>
Expected<void> take_number(const std::string& key, const nlohmann::json& json, std::uint64_t least, std::uint64_t most,
                           T& value) {
  if (!json.is_number_unsigned() || json.get<std::uint64_t>() < least || json.get<std::uint64_t>() > most) {
    return make_error(key + ": allowed is a number from " + std::to_string(least) + " to " + std::to_string(most));
  }
  value = static_cast<T>(json.get<std::uint64_t>());
  return {};
}

Expected<void> take(const std::string& key, const nlohmann::json& json, CaptureRequest& request) {
  constexpr std::uint64_t any = std::numeric_limits<std::uint32_t>::max();
  if (key == "snapshot") return take_number(key, json, least_snapshot, most_snapshot, request.snapshot);
  if (key == "buffer") return take_number(key, json, least_buffer, most_buffer, request.buffer);
  if (key == "count") return take_number(key, json, 0, any, request.count);
  if (key == "seconds") return take_number(key, json, 0, any, request.seconds);
  std::string* const text = key == "target"      ? &request.target
                            : key == "filter"    ? &request.filter
                            : key == "reason"    ? &request.reason
                            : key == "direction" ? &request.direction
                                                 : nullptr;
  if (text == nullptr) {
    const std::vector<std::string> known = {"target",   "filter", "reason", "direction",
                                            "snapshot", "buffer", "count",  "seconds"};
    return make_error("unknown key " + in_quotes(key) + spelling_hint(key, known));
  }
  if (!json.is_string()) return make_error(key + ": a text is allowed");
  *text = json.get<std::string>();
  return {};
}

}  // namespace

Expected<void> check_filter_length(const std::string& filter) {
  if (filter.size() <= longest_filter) return {};
  return make_error("filter: has " + std::to_string(filter.size()) + " bytes, and " + std::to_string(longest_filter) +
                    " are the most: nets and port ranges in place of lists, or a capture of more that tcpdump -r "
                    "filters");
}

Expected<CaptureRequest> parse_capture_request(std::string_view json) {
  const auto object = nlohmann::json::parse(json, nullptr, false);
  if (!object.is_object()) return make_error("the request is no object of JSON");
  CaptureRequest request;
  for (const auto& [key, value] : object.items()) {
    if (auto taken = take(key, value, request); !taken) return tl::unexpected(taken.error());
  }
  if (request.target.empty()) return make_error("target: name a port, \"any\", \"lane:N\" or \"drops\"");
  if (auto fits = check_filter_length(request.filter); !fits) return tl::unexpected(fits.error());
  if (!request.direction.empty() && request.direction != "in" && request.direction != "out") {
    return make_error("direction: allowed is \"in\" or \"out\"");
  }
  return request;
}

std::string to_json(const CaptureRequest& request) {
  nlohmann::json json = {{"target", request.target},       {"snapshot", request.snapshot}, {"buffer", request.buffer},
                         {"count", request.count},         {"seconds", request.seconds},   {"filter", request.filter},
                         {"direction", request.direction}, {"reason", request.reason}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace sluice::control
