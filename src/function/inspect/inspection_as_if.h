// What Inspection inspects besides the packet that came: what a stream or HTTP tells of the other direction, or of
// another flow, which ends or makes room for the frame's.
//
//   const AsIf as_if(*this, flow, direction);  // does nothing where it is of the frame's own flow and direction
//
// While it lives, the packet is one of the flow's ends in the direction, without payload, and no device has found
// anything in it. Another flow is inspected as
// if in a frame of its own: with a judgement of its own, so that neither is dropped, nor passes, for the other; with
// `budget` candidates, all its inspections for this frame together; and with time that was set aside
// (Inspection::begin()). Alerts that are held are told before, for they point to the packet.
#pragma once

#include <utility>

#include "function/inspect/inspection.h"

namespace sluice::function {

class Inspection::AsIf {
 public:
  AsIf(Inspection& of, const flow::Flow& flow, flow::Direction direction)
      : of_(of), needed_(of.flow_ != &flow || of.subject_.direction != direction) {
    if (needed_) [[unlikely]]
      begin(flow, direction);
  }
  ~AsIf() {
    if (needed_) [[unlikely]]
      end();
  }
  AsIf(const AsIf&) = delete;
  AsIf& operator=(const AsIf&) = delete;

 private:
  static match::PacketEnd end_of(const flow::Flow& flow, flow::Direction direction) {
    const bool client = direction == flow::Direction::to_server;
    return {client ? flow.client.data() : flow.server.data(), client ? flow.client_port : flow.server_port};
  }

  [[gnu::noinline]] void begin(const flow::Flow& flow, flow::Direction direction) {
    of_.tell_held();
    Subject& subject = of_.subject_;
    packet_ = std::exchange(subject.packet, match::packet_of(flow.family, flow.protocol, end_of(flow, direction),
                                                             end_of(flow, opposite(direction))));
    direction_ = std::exchange(subject.direction, direction);
    // What the device has found is in the frame's own bytes.
    hits_ = std::exchange(subject.hits, {});
    is_other_ = of_.flow_ != &flow;
    if (!is_other_) return;
    if (std::exchange(of_.other_flow_, &flow) != &flow) {
      of_.other_share_.begin(of_.settings_.budget);
      of_.other_share_.time.next(of_.to_come_);
    }
    frame_ = std::exchange(subject.frame, {});
    judgement_ = std::exchange(subject.judgement, {});
    passed_ = std::exchange(subject.passed, false);
    std::swap(of_.share_, of_.other_share_);
  }
  [[gnu::noinline]] void end() {
    Subject& subject = of_.subject_;
    subject.packet = packet_;
    subject.direction = direction_;
    subject.hits = hits_;
    if (!is_other_) return;
    subject.frame = frame_;
    subject.judgement = judgement_;
    subject.passed = passed_;
    std::swap(of_.share_, of_.other_share_);
  }

  Inspection& of_;
  const bool needed_;
  bool is_other_ = false, passed_ = false;
  DeviceHits hits_;
  match::PacketFacts packet_;
  flow::Direction direction_ = flow::Direction::to_server;
  std::string_view frame_;
  Judgement judgement_;
};

}  // namespace sluice::function
