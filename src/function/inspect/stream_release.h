// How much of what waits in streams may be released: handing it over takes time, a fixed one for a segment and for a
// byte. One frame of a batch, and one other flow, may release all they can while the batch is not late.
//
// Thread-safety: none, of one lane.
#pragma once

#include <cstddef>

#include "flow/tcp_stream.h"
#include "function/inspect/flow_context.h"

namespace sluice::function {

class StreamRelease {
 public:
  explicit StreamRelease(InspectionEnvironment& env) : env_(env) {}

  // Before the packet's stream takes it. False: it releases more than there is time for. Sent again, it is asked for
  // anew.
  bool may_release(PacketContext& context, flow::Flow& flow, flow::Waiting waiting);
  // So many bytes come next. False: there is no time for them, and they are thrown away.
  bool takes_waiting(FlowContext& context, flow::Flow& flow, std::size_t bytes);

 private:
  bool is_first(const flow::Flow& flow, bool is_other);

  InspectionEnvironment& env_;
};

}  // namespace sluice::function
