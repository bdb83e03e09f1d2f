// Whether what another implementation has sealed is right: opened by a channel (media/srtp/channel.h) and
// intel-ipsec-mb, which know nothing of it.
#pragma once

#include <cstdint>
#include <span>

#include "base/error.h"
#include "media/srtp/suite.h"

namespace sluice::cli::bench {

// `sealed`: from RTP's first byte to the end of the tag, of rollover counter 0. `key`: master key and salt behind it,
// as SDES has them. An Error where it is not authentic, or not `clear` once it is opened. Cost: makes tables of keys
// and a channel, so it is for a sample.
Expected<void> check_sealed(srtp::Suite suite, std::span<const std::uint8_t> key, std::span<const std::uint8_t> sealed,
                            std::span<const std::uint8_t> clear);

}  // namespace sluice::cli::bench
