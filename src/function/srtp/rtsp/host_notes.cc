#include "function/srtp/rtsp/host_notes.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "media/text.h"

namespace sluice::function::rtsp {
namespace {

constexpr std::uint64_t other_files = 256;

using Range = std::pair<unsigned, unsigned>;

// "80,20000-29999"
std::vector<Range> ranges_of(std::string_view text) {
  std::vector<Range> ranges;
  while (!text.empty()) {
    std::string_view last = media::take_until(text, ',');
    const std::string_view first = media::take_until(last, '-');
    const auto from = media::number<std::uint16_t>(first);
    const auto to = last.empty() ? from : media::number<std::uint16_t>(last);
    if (from && to) ranges.emplace_back(*from, *to);
  }
  return ranges;
}

// Whether each port of the range is in one of these.
bool covers(std::vector<Range> ranges, Range wanted) {
  std::ranges::sort(ranges);
  for (const auto& [first, last] : ranges) {
    if (first <= wanted.first && last >= wanted.first) wanted.first = last + 1;
  }
  return wanted.first > wanted.second;
}

}  // namespace

std::uint64_t files_for(std::uint32_t connections) {
  return std::uint64_t{2} * connections + other_files;
}

std::string files_note(const function::RtspOptions& options, std::uint64_t files) {
  const std::uint64_t wanted = files_for(options.max_connections);
  if (files == 0 || files >= wanted) return "";
  return "rtsp: max_connections = " + std::to_string(options.max_connections) + " takes " + std::to_string(wanted) +
         " open files, and here " + std::to_string(files) +
         " may be open (ulimit -Hn, LimitNOFILE= of a unit): enough " + "for some " +
         std::to_string((files - std::min(files, other_files)) / 2) +
         " connections; further clients wait until others have gone";
}

std::string media_ports_note(const function::RtspOptions& options, const HostLimits& limits) {
  if (options.listen.empty() || limits.last_local_port == 0) return "";
  const Range both{std::max(options.first_media_port, limits.first_local_port),
                   std::min(options.last_media_port, limits.last_local_port)};
  if (both.first > both.second || covers(ranges_of(limits.reserved_ports), both)) return "";
  const auto text = [](unsigned first, unsigned last) { return std::to_string(first) + "-" + std::to_string(last); };
  return "rtsp: of media_ports the host's own programs may be given " + text(both.first, both.second) +
         " (net.ipv4.ip_local_port_range is " + text(limits.first_local_port, limits.last_local_port) +
         "), where they and media get in each other's way: sysctl -w net.ipv4.ip_local_reserved_ports=" +
         (limits.reserved_ports.empty() ? "" : limits.reserved_ports + ",") +
         text(options.first_media_port, options.last_media_port) + ", or set media_ports outside of it";
}

}  // namespace sluice::function::rtsp
