// Lists of routes: from files, from real BGP updates, or made up with a realistic mix of prefix lengths.
//
// A route file has one route per line, `prefix [next_hop]`, blank lines and `#` comments; plain, or xz-compressed,
// whatever its name. A host address is a prefix of 32 or 128 bits. An update file is the text of `bgpdump -m`; lines
// that neither announce nor withdraw (STATE) are skipped.
//
// Only a regular file is read, of 1 GiB at most as it is and unpacked.
//
// Errors name file:line and what is wrong, a line for each mistake; after ten they say how many more there are. Cost:
// about 0.3 us per line, and the file's text in memory while it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "lookup/next_hop.h"
#include "packet/ip_address.h"

namespace sluice::lookup {

struct RouteLine {
  packet::IpPrefix prefix;
  NextHopId next_hop = no_route;  // index into RouteList::next_hops; no_route: the line names none, or withdraws
  double seconds = 0;             // of an update: when it came, since 1970
  std::uint32_t line = 0;         // of the file
};

struct RouteList {
  std::vector<RouteLine> routes;
  // The next hops as they are written, each once, in order of appearance; [0] is empty.
  std::vector<std::string> next_hops{""};
};

// What is wrong with a line's next hop as it is written (empty: the line has none) for a prefix of this family, 4 or 6;
// an empty answer: nothing. Called once for each next hop and family.
using NextHopCheck = std::function<std::string(std::string_view next_hop, int family)>;

// Asked now and then while a file is read, with the lines so far. False: stop, which is an Error then.
using ReadProgress = std::function<bool(std::size_t lines)>;

// Without a check any word is a next hop, and a line may have none.
Expected<RouteList> read_routes(const std::string& path, const NextHopCheck& check = {},
                                const ReadProgress& progress = {});

// The updates in order: a line with a next hop announces (adds or replaces), one without withdraws.
Expected<RouteList> read_updates(const std::string& path);

// Distinct prefixes whose lengths are spread as in the Internet's tables of 2015 (IPv6: of today's), with nested
// prefixes and 128 next hops for each family. The same arguments give the same list.
RouteList make_routes(std::size_t count4, std::size_t count6, std::uint64_t seed);

}  // namespace sluice::lookup
