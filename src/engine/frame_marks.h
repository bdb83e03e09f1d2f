// Marks that an element puts on a frame for those behind it: flags of the mbuf, which stay with the frame through all
// passes. A buffer that is used again has none.
//
// source_verified: who sent the packet is known by cryptography, and may have this source. Where it came in by says
// nothing more: an element that looks for forged sources lets it be, as Linux does with what came out of IPsec
// (fib_validate_source() of net/ipv4/fib_frontend.c).
//
// Thread-safety: registered before lanes run, by any element that sets a mark; then constant.
#pragma once

#include <cstdint>

#include "base/error.h"

namespace sluice::engine {

struct FrameMarks {
  std::uint64_t source_verified = 0;  // bits of rte_mbuf::ol_flags; 0: nobody sets it
};

namespace detail {
inline FrameMarks frame_marks;
}

inline const FrameMarks& frame_marks() {
  return detail::frame_marks;
}
// An Error: DPDK has no flag left. Registering again does no harm.
Expected<void> register_source_verified();

}  // namespace sluice::engine
