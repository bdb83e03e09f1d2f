// `sluice ctl srtp`: lists streams and changes those of the API.
#include <utility>

#include "base/text_table.h"
#include "function/srtp/srtp_type.h"
#include "function/srtp/stream_table.h"
#include "function/verb_text.h"

namespace sluice::function {
namespace {

using engine::refuse_verb;
using engine::VerbReader;
using engine::VerbRefusal;
using engine::VerbRequest;
using engine::VerbWords;
using Request = tl::expected<VerbRequest, VerbRefusal>;

Request request_list(const VerbWords& words, const VerbReader& /*read*/) {
  const auto query = address_query(words.one("ADDRESS"));
  if (!query) return tl::unexpected(query.error());
  return VerbRequest{.path = "/api/v1/srtp?limit=" + words.one("--limit") + *query, .print = printer(streams_report)};
}

Request request_change(const std::string& verb, const VerbWords& words) {
  auto body = read_section_file(words.one("FILE"));
  if (!body) return refuse_verb(VerbRefusal::Kind::input, body.error().message);
  return change_request("/api/v1/srtp/" + verb, std::move(*body));
}

engine::Verb change(const char* name, const char* text) {
  return {.name = name,
          .text = text,
          .arguments = {{.name = "FILE",
                         .text = "the keys of a [[srtp.stream]] section; -: the standard input",
                         .required = true,
                         .is_file = true}},
          .request = [verb = std::string(name)](const VerbWords& words, const VerbReader& /*read*/) {
            return request_change(verb, words);
          }};
}

}  // namespace

std::vector<engine::Verb> srtp_verbs() {
  return {{.name = "srtp",
           .text = "Streams of the element srtp: list them, add, replace, remove or release one",
           .verbs = {{.name = "list",
                      .text = "Streams, without their keys",
                      .arguments = {{.name = "ADDRESS", .text = "only streams from or to this address"},
                                    engine::limit_argument()},
                      .request = request_list},
                     change("add", "Protect or unprotect one more stream"),
                     change("replace",
                            "The same in place of one that was added so, as with a new key: with no packet in clear "
                            "between them"),
                     change("remove",
                            "Take away one that was added so: its addresses and ports say which. What still comes in "
                            "clear is dropped"),
                     change("release",
                            "Take away one that was added so, or the guard of one that was taken away: what comes "
                            "passes as it comes")}}};
}

std::string streams_report(const StreamTable& streams) {
  if (streams.count == 0) return "no such stream: none was added, or none has this address at one of its ends\n";
  Table table({"STREAM", "ACTION", "CARRIES", "SUITE", "FROM", "PORT", ">BIT/S", "MEASURED", ">RTP", ">RTCP", ">BYTES",
               ">PASSED", ">AUTH FAILED", ">REPLAYED", ">POLICED", ">OTHER DROPS", ">SSRCS", ">AGE MS"});
  for (const StreamRow& row : streams.streams) {
    std::uint64_t others = 0;
    const auto drops = [&](const char* name) {
      const auto at = row.drops.find(name);
      const std::uint64_t count = at == row.drops.end() ? 0 : at->second;
      others -= count;
      return std::to_string(count);
    };
    for (const auto& [name, count] : row.drops) others += count;
    const std::string auth_failed = drops("auth_failed"), replayed = drops("replayed"), policed = drops("policed");
    table.add(
        {row.stream, row.action, row.carries, row.suite.empty() ? "-" : row.suite, row.origin,
         row.ingress.empty() ? "-" : row.ingress, row.rate == 0 ? "-" : short_number(static_cast<double>(row.rate)),
         row.measured, std::to_string(row.rtp_packets), std::to_string(row.rtcp_packets),
         std::to_string(row.rtp_bytes + row.rtcp_bytes), std::to_string(row.passed), auth_failed, replayed, policed,
         std::to_string(others), std::to_string(row.ssrcs), row.age_ms < 0 ? "-" : std::to_string(row.age_ms)});
  }
  return table.str() + more_text(streams.streams.size(), streams.count, "streams");
}

}  // namespace sluice::function
