// Routes of the kernel's other tables, beside those of its table main.
//
// Thread-safety: no state. Cost: a dump of the table; of main, too, where the table has routes.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice::port {

// Whether a rule that looks `table` up first changes nowhere packets go, so that who knows main alone sends them the
// same way: the table is not there or has no routes, or each of them leads by the same gateways and interfaces as main
// does for all that it is for. False where that is not known: the table has more routes than compared_routes, or cannot
// be read. Of the calling thread's network namespace. `family`: 4 or 6.
inline constexpr std::size_t compared_routes = 64;
bool leads_as_main(int family, std::uint32_t table);

}  // namespace sluice::port
