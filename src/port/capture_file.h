// Whether a capture file ends where a packet does. libpcap hands out the packets before a cut and then nothing more,
// which looks like the end of the file.
//
// Formats: pcap (of either byte order, microseconds or nanoseconds) and pcapng. Thread-safety: any thread. Cost: the
// file is read once, through a buffer.
#pragma once

#include <string>

#include "base/error.h"

namespace sluice::port {

// An Error, one line that begins with the path, when the file ends inside a packet or what leads a packet cannot be a
// length: how many whole packets are before it, and at which byte it begins. Nothing about a file that cannot be read,
// is no regular one or has another format: that its reader says.
Expected<void> check_capture(const std::string& path);

}  // namespace sluice::port
