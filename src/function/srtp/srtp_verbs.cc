// `sluice ctl srtp`: lists streams and changes those of the API.
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/text_table.h"
#include "function/srtp/srtp_type.h"
#include "function/srtp/stream_table.h"
#include "function/verb_text.h"
#include "packet/ip_address.h"

namespace sluice::function {
namespace {

using engine::refuse_verb;
using engine::VerbReader;
using engine::VerbRefusal;
using engine::VerbRequest;
using engine::VerbWords;
using Request = tl::expected<VerbRequest, VerbRefusal>;

// More than the API takes of a stream, which says itself how much that is.
constexpr std::size_t largest_stream_file = 64 << 10;

// A file, which may be a pipe, or "-": the standard input. Keys are in it, so none of it is ever shown.
Expected<std::string> read_stream_file(const std::string& path) {
  if (path == "-") return read_descriptor(STDIN_FILENO, "standard input", largest_stream_file);
  const int fd = open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return make_error(path + ": " + std::strerror(errno));
  auto text = read_descriptor(fd, path, largest_stream_file);
  close(fd);
  return text;
}

Request request_list(const VerbWords& words, const VerbReader& /*read*/) {
  const std::string address = words.one("ADDRESS");
  if (const auto parsed = packet::IpAddress::parse(address); !address.empty() && !parsed) {
    return refuse_verb(VerbRefusal::Kind::input, address + ": " + parsed.error().message);
  }
  // The characters of an address need no escape in a query.
  const std::string query = address.empty() ? "" : "&address=" + address;
  return VerbRequest{.path = "/api/v1/srtp?limit=" + words.one("--limit") + query, .print = printer(streams_report)};
}

Request request_change(const std::string& verb, const VerbWords& words) {
  auto body = read_stream_file(words.one("FILE"));
  if (!body) return refuse_verb(VerbRefusal::Kind::input, body.error().message);
  return VerbRequest{.path = "/api/v1/srtp/" + verb, .change = true, .body = std::move(*body), .print = print_change};
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
  std::string out = table.str();
  if (streams.count > streams.streams.size()) {
    out += fmt::format("{} of {} streams; --limit for more\n", streams.streams.size(), streams.count);
  }
  return out;
}

}  // namespace sluice::function
