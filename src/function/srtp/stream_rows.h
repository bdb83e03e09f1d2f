// Streams as who asks about them sees them: no key is ever reported. Thread-safety: any thread, as long as the stream
// is there.
#pragma once

#include <cstdint>

#include "engine/port_table.h"
#include "function/media_streams.h"
#include "function/srtp/media_stream.h"

namespace sluice::function {

// `now`: of the time-stamp counter.
MediaStreamRow row_of(const MediaStream& stream, const engine::PortTable& ports, std::uint64_t now);

// Whether packets of it have this address, as they come or as they leave.
bool has_address(const MediaStreamSettings& stream, const packet::IpAddress& address);

}  // namespace sluice::function
