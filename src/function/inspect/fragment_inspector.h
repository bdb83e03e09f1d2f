// Inspects datagrams that come in fragments: each fragment as the packet that it is, and the one that completes its
// datagram (flow/fragments.h) with the datagram, as a packet that came whole. The verdict is the fragment's.
//
// No device has seen the datagram whole, so this core searches it. What it holds beyond that fragment is searched as
// what has waited in a stream is.
//
// Thread-safety: none, of one lane.
#pragma once

#include <optional>

#include "flow/fragments.h"
#include "function/inspect/conversation_inspector.h"

namespace sluice::function {

class FragmentInspector {
 public:
  FragmentInspector(InspectionEnvironment& env, const flow::FragmentSettings& settings, ConversationInspector& events)
      : env_(env), events_(events), fragments_(settings) {}

  // `fragment` has been inspected by itself. `datagram`: made if the fragment completes one, with the fragment's
  // verdict and budget; valid until the next call.
  void inspect(PacketContext& fragment, std::optional<PacketContext>& datagram);

  flow::Fragments& fragments() { return fragments_; }

 private:
  void inspect_datagram(PacketContext& datagram);

  InspectionEnvironment& env_;
  ConversationInspector& events_;
  flow::Fragments fragments_;
};

}  // namespace sluice::function
