// Whether a capture file can be read to its end, and by the driver as it is. libpcap hands out the packets before a
// cut, and then nothing more, which looks like the end of the file. Its driver takes whatever comes for an Ethernet
// header, cuts packets that are longer than the header's snapshot length, and stops at a pcapng's interface of another
// kind.
//
// Formats: what libpcap reads: pcap (of either byte order, microseconds or nanoseconds, modified) and pcapng.
// Thread-safety: any thread. Cost: the headers are read, in pieces of 256 KB; what of long packets (64 KB, say) lies
// between pieces is not. Of what has to be copied, all is.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/error.h"
#include "port/capture_copy.h"
#include "port/capture_reader.h"

namespace sluice::port {

struct CaptureFacts {
  std::uint64_t packets = 0;
  std::uint64_t cut = 0;      // of these: it has fewer bytes than the packet had (tcpdump -s)
  std::uint32_t longest = 0;  // bytes, of what is there
  // The driver cannot read it as it is: its frames have to be copied as Ethernet first.
  bool needs_copy = false;
  std::string left_out;  // CaptureContent::left_out() of the copy
};

// An Error, one line that begins with the path, when the file ends inside a packet (pcapng: a block), or what leads one
// (pcapng: or what ends it) cannot be its length. It says how many whole packets are before it, and at which byte it
// begins. When there are packets, and all are of link types (LINKTYPE of tcpdump.org/linktypes.html) that carry no
// network that is read, or libpcap does not read it to its end. When it is not there, cannot be read, is empty or no
// capture. And when it is no regular file: its reader would wait for a pipe. `copy`: gets the copy that is needed, if
// one is; where it is null, nothing is written.
Expected<CaptureFacts> check_capture(const std::string& path, const CaptureProgress& progress = {},
                                     std::shared_ptr<const CaptureCopy>* copy = nullptr);

// Whether nothing but a capture is lost when the file is opened to be written anew: it is not there, empty, no regular
// file, cannot be read, or begins as a capture does.
bool may_be_emptied(const std::string& path);

}  // namespace sluice::port
