// Routes of the kernel's other tables, beside those of its table main.
//
// Thread-safety: no state. Cost: a dump of the table; of main, too, where the table has routes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::port {

// Whether packets go the same way by `table` as by main alone, where a rule has it looked up first. So it is where the
// table is not there or has no routes, and where each of its routes has the gateways and interfaces that main has for
// all of its addresses. False where that is not known: it has more routes than compared_routes, or cannot be read. Of
// the calling thread's network namespace. `family`: 4 or 6.
inline constexpr std::size_t compared_routes = 64;
bool leads_as_main(int family, std::uint32_t table);

}  // namespace sluice::port
