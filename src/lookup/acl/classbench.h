// Filter sets and traces as ClassBench writes them (D. E. Taylor, J. S. Turner, ClassBench: A Packet Classification
// Benchmark, IEEE/ACM Transactions on Networking 15(3), 2007).
//
// A filter is a line `@source/length destination/length first : last first : last protocol/mask flags/mask`, the last
// two in hexadecimal; the flags may be missing. Their 16 bits are two bytes: the TCP flags or the ICMP type, which is
// what an AclRule's `flags` are, and one that is never asked for; a mask of it is a mistake. Addresses are IPv4 or
// IPv6; host bits are cleared. All filters permit; the first one that matches counts. Those that name ports of a
// protocol without (names_ports_in_vain()) are rules like others, for a trace counts them: the generator makes such
// from some of its own seeds.
//
// A header of a trace is a line of decimal numbers `source destination source_port destination_port protocol [flags]
// filter`, IPv4 only. Flags are one number: the value that the filter asks for << 16 | its mask; the header's flags are
// the value's. `filter` is the number of the filter that the header was drawn from, which need not be the first that
// matches.
//
// Blank lines and lines that begin with # are skipped. Only a regular file is read, of 1 GiB at most. Errors name
// file:line and what is wrong, as those of route files (route_file.h). Thread-safety: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "lookup/acl/acl_rule.h"

namespace sluice::lookup::acl {

Expected<std::vector<AclRule>> read_classbench(const std::string& path);

struct TraceHeader {
  Key4 key;
  std::uint32_t filter;
};
Expected<std::vector<TraceHeader>> read_classbench_trace(const std::string& path);

}  // namespace sluice::lookup::acl
