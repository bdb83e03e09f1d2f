// The element "bridge": frames leave unchanged by the peer of the port that they came in by, all of them, whatever
// they hold. Alone it is a wire; behind others (chain = ["acl", "bridge"]) it is a gateway without addresses.
//
// No work for a device. Settings: none.
#pragma once

#include "function/peers.h"

namespace sluice::function {

class Bridge final : public PeerElement {
 public:
  using PeerElement::PeerElement;
  // Elements before it may have something to change.
  Expected<Change> reload(Element& /*fresh*/) override { return Change{}; }
};

}  // namespace sluice::function
