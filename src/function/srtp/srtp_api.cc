// Routes of the API: streams, and what adds, replaces, removes and releases them.
#include <utility>

#include "base/json_text.h"
#include "function/media_streams.h"
#include "function/srtp/srtp_type.h"
#include "function/srtp/stream_table.h"

namespace sluice::function {
namespace {

using engine::ApiAnswer;
using engine::ApiRequest;
using engine::bad_request;
using engine::conflict;
using engine::refused;

StreamRow stream_row(MediaStreamRow&& row) {
  StreamRow one{std::move(row.name),  std::move(row.action), std::move(row.carries),
                std::move(row.suite), std::move(row.origin), std::move(row.ingress)};
  one.rate = row.rate;
  one.measured = std::move(row.measured);
  one.rtp_packets = row.rtp.packets;
  one.rtp_bytes = row.rtp.bytes;
  one.rtcp_packets = row.rtcp.packets;
  one.rtcp_bytes = row.rtcp.bytes;
  one.passed = row.passed;
  for (std::size_t i = 0; i < row.lost.size(); ++i) one.drops.emplace(stream_loss_names[i], row.lost[i]);
  one.ssrcs = row.ssrcs;
  if (row.age) one.age_ms = row.age->count();
  return one;
}

ApiAnswer list_streams(engine::Element& element, const ApiRequest& request) {
  packet::IpAddress of;
  std::uint32_t limit = engine::usual_rows;
  for (const auto& [key, value] : request.parameters) {
    if (key == "address") {
      const auto address = packet::IpAddress::parse(value);
      if (!address) return refused(bad_request, "address=" + value + ": " + address.error().message);
      of = *address;
      continue;
    }
    const Expected<std::uint32_t> read =
        key == "limit" ? engine::read_limit(value) : engine::unknown_parameter(key, {"address", "limit"});
    if (!read) return refused(bad_request, read.error().message);
    limit = *read;
  }
  StreamTable table;
  std::size_t count = 0;
  for (MediaStreamRow& row : element.trait<MediaStreams>()->list(limit, of, count)) {
    table.streams.push_back(stream_row(std::move(row)));
  }
  table.count = count;
  return {.text = to_json_text(table)};
}

using Make = Expected<StreamChange> (MediaStreams::*)(std::string_view, const std::string&);

engine::ApiRoute changes(const char* path, Make make) {
  const auto answer = [make](engine::Element& element, const ApiRequest& request) -> ApiAnswer {
    const auto change = (element.trait<MediaStreams>()->*make)(request.body, "the request");
    if (!change) return refused(conflict, change.error().message);
    return {.text = to_json_text(nlohmann::json{{"done", change->done}, {"warnings", change->warnings}})};
  };
  return {.path = path, .change = true, .what = "SRTP streams", .answer = answer, .often = true};
}

}  // namespace

const std::vector<engine::ApiRoute>& srtp_routes() {
  static const std::vector<engine::ApiRoute> all = {
      {.path = "", .what = "SRTP streams", .answer = list_streams},
      changes("/add", &MediaStreams::add_text),
      changes("/replace", &MediaStreams::replace_text),
      changes("/remove", &MediaStreams::remove_text),
      changes("/release", &MediaStreams::release_text),
  };
  return all;
}

}  // namespace sluice::function
