// The keys (key_set.h) in a few bytes, on a CPU core: where two pieces of a stream meet, which the GPU does not see in
// one piece. For whole payloads there is CpuMatcher.
//
// Thread-safety: any thread. Cost: about 2 ns a byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "match/automaton/gram_table.h"

namespace sluice::match {

// Appends the keys of class `klass` that end behind the first `from` bytes, one for each place.
void scan_keys(const GramView& table, std::string_view bytes, std::size_t from, unsigned klass,
               std::vector<std::uint32_t>& keys);

}  // namespace sluice::match
