// Whether a capture file can be read to its end, and holds Ethernet frames. libpcap hands out the packets before a cut,
// or before an interface of another kind, and then nothing more, which looks like the end of the file; and its driver
// takes whatever comes for an Ethernet header.
//
// Formats: pcap (of either byte order, microseconds or nanoseconds) and pcapng. Thread-safety: any thread. Cost: the
// headers are read, in pieces of 256 KB; what of long packets (64 KB, say) lies between pieces is not.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "base/error.h"

namespace sluice::port {

// Told before each piece how many of how many bytes are checked. False: stop, which is an Error then.
using CaptureProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// An Error, one line that begins with the path, when the file ends inside a packet (pcapng: a block), or what leads one
// (pcapng: or what ends it) cannot be its length: how many whole packets are before it, and at which byte it begins.
// When its frames are no Ethernet (LINKTYPE of tcpdump.org/linktypes.html), or, of pcapng, its interfaces differ in
// what libpcap takes from the first alone. When it is not there, cannot be read, is empty or is neither format. And
// when it is no regular file: its reader would wait for a pipe.
struct CaptureFacts {
  std::uint64_t packets = 0;
  std::uint64_t cut = 0;      // of these: it has fewer bytes than the packet had (tcpdump -s)
  std::uint32_t longest = 0;  // bytes, of what is there
};
Expected<CaptureFacts> check_capture(const std::string& path, const CaptureProgress& progress = {});

// Whether nothing but a capture is lost when the file is opened to be written anew: it is not there, empty, no regular
// file, cannot be read, or begins as a capture does.
bool may_be_emptied(const std::string& path);

}  // namespace sluice::port
