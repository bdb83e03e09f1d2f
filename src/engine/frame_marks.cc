#include "engine/frame_marks.h"

#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>

#include <cstdio>

namespace sluice::engine {

Expected<void> register_source_verified() {
  rte_mbuf_dynflag flag{};
  std::snprintf(flag.name, sizeof flag.name, "sluice_source_verified");
  const int bit = rte_mbuf_dynflag_register(&flag);
  if (bit < 0) return make_error("no flag of frames is free");
  detail::frame_marks.source_verified = std::uint64_t{1} << bit;
  return {};
}

}  // namespace sluice::engine
