// A rule as text for people, in the words of [[acl.rule]] (acl_settings.h); its priority, which its place shows, and
// its line are left out.
//
//     match_text   source=192.0.2.0/24 destination_port=1024-65535 protocol=tcp tcp_flags=syn,!ack; "any": whatever
//     comes action_text  permit   deny   mark 46   police 8000000 bit/s, burst 32768 bytes
//
// What only ClassBench can say has a form of its own: protocol=0x04/0xfc and flags=0x10/0x30, value and mask.
// Thread-safety: any thread.
#pragma once

#include <string>

#include "lookup/acl/acl_rule.h"

namespace sluice::lookup::acl {

std::string match_text(const AclRule& rule);
std::string action_text(const Action& action);

}  // namespace sluice::lookup::acl
