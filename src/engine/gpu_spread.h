// Which lane is dealt to which GPU: as many to each, give or take one, and as many as can be to one of their own NUMA
// node. So no GPU is without work, and frames cross nodes only where one node's GPUs have their share.
//
// Thread-safety: none. Cost: start-up only.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::engine {

// The index of each lane's GPU. `lanes`, `gpus`: the NUMA nodes of the lanes' cores and of the GPUs; -1: unknown, which
// is near to nothing.
std::vector<std::uint32_t> deal_lanes(const std::vector<int>& lanes, const std::vector<int>& gpus);

}  // namespace sluice::engine
