// Streams of the element "srtp" as the API has them (docs/api.md): the gateway writes these, `sluice ctl srtp` reads
// them. In JSON fields have the members' names; one that is absent keeps its default.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sluice::function {

// No key is ever reported.
struct StreamRow {
  std::string stream, action, carries, suite, origin, ingress;
  std::uint64_t rate = 0;     // bits a second that it may bring now; 0: anything
  std::string measured = {};  // "no", "not yet", "yes"
  // What left protected or unprotected, in bytes of frames, and what left as it came.
  std::uint64_t rtp_packets = 0, rtp_bytes = 0, rtcp_packets = 0, rtcp_bytes = 0, passed = 0;
  std::map<std::string, std::uint64_t> drops{};  // by name, all names there are (docs/api.md)
  std::uint32_t ssrcs = 0;                       // that are known
  std::int64_t age_ms = -1;                      // since its last packet came; -1: none has come
};

struct StreamTable {
  std::vector<StreamRow> streams;  // as many as were asked for, in no order
  std::uint64_t count = 0;         // how many there are
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StreamRow, stream, action, carries, suite, origin, ingress, rate,
                                                measured, rtp_packets, rtp_bytes, rtcp_packets, rtcp_bytes, passed,
                                                drops, ssrcs, age_ms)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(StreamTable, streams, count)

// For people.
std::string streams_report(const StreamTable& table);

}  // namespace sluice::function
