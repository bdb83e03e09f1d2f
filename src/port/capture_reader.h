// A capture of any link type as one of Ethernet, read by libpcap, which is given three things otherwise than the file
// has them. That packets are as long as may be: it would cut what is longer than a header's snapshot length, though the
// file has all of it. That all interfaces of a pcapng are of one length and link type: it would stop at another one.
// Which interface a packet came from is seen in the blocks that it asks for.
//
// Thread-safety: any thread, one file each. Cost: the file is read once, packet by packet.
#pragma once

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "base/error.h"
#include "port/link_frame.h"

namespace sluice::port {

// Called now and then with how many of how many bytes are read. False: stop, which is an Error then.
using CaptureProgress = std::function<bool(std::uint64_t done, std::uint64_t total)>;

// How a capture is laid out, as far as libpcap is given something else.
enum class CaptureFormat { pcap, pcap_swapped, pcapng };

struct CaptureContent {
  std::uint64_t packets = 0;                        // in the file
  std::uint64_t frames = 0;                         // of Ethernet that were made of them
  std::uint64_t cut = 0;                            // packets of which the file has less than there was
  std::uint32_t longest = 0;                        // frame, of what is there
  std::array<std::uint64_t, link_fates> fates{};    // packets, by LinkFate
  std::map<std::uint32_t, std::uint64_t> unread{};  // packets of LinkFate::other_link, by link type
  // What was left out, and why: "3 of 10 packets are left out: 2 have no packet of a network, ..."; empty: nothing was.
  std::string left_out() const;
};

// Reads all of the regular file `path`, and writes its Ethernet frames, as a pcap, to `out` where it is not null. An
// Error is one line that begins with the path: libpcap's reason, at which packet, or why writing failed.
Expected<CaptureContent> read_capture(const std::string& path, CaptureFormat format, std::FILE* out,
                                      const CaptureProgress& progress = {});

}  // namespace sluice::port
