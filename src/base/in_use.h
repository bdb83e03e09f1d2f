// What another program has at this moment and gives back when it ends: an address, an interface, a socket. It is no
// mistake of a configuration, so that `sluice run` ends with another exit status, and a service manager tries again.
//
// A refusal of this kind that is in our words has one of these texts in it, which says_in_use() knows it by. What a
// driver of DPDK says of a device that another program has (EBUSY) is in the driver's words, and not known.
#pragma once

#include <string_view>

namespace sluice {

inline constexpr std::string_view in_use_by_another = " is in use by another ";
inline constexpr std::string_view address_in_use = "Address already in use";    // strerror(EADDRINUSE)
inline constexpr std::string_view busy_with_others = " busy with other work ";  // a core

inline bool says_in_use(std::string_view refusal) {
  for (const std::string_view text : {in_use_by_another, address_in_use, busy_with_others}) {
    if (refusal.find(text) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace sluice
