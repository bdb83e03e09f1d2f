// Conversations with rules, and what is reported of each alert and of each dropped frame: what the tests of it share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "function/inspect/inspection.h"
#include "function/inspect/inspection_trial_test.h"
#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::function {

class InspectionScopeTest : public testing::Test, public AlertSink {
 protected:
  std::unique_ptr<InspectionSearch> search(const std::string& text) {
    rules_ = test::rules_of(text, rules_.get());
    return std::make_unique<InspectionSearch>(rules_);
  }
  void use(const std::string& text, std::uint32_t flows = 1024) {
    InspectionSettings settings = test::small_settings();
    settings.conversations.flows.capacity = flows;
    settings.conversations.streams = streams_;
    settings.conversations.flows.midstream = midstream_;
    settings.conversations.flows.remembered = remembered_;
    settings.conversations.drop_silent = drop_silent_;
    inspection_.reset();
    rules_.reset();
    inspection_ = std::make_unique<Inspection>(search(text), settings, *this);
    sequence_[0] = 1000;
    sequence_[1] = 5000;
  }

  void alert(const Alert& alert) override {
    sids_.push_back(alert.rules->detector().rules().rules[alert.rule].sid);
    ends_ = alert.packet->source.str() + ":" + std::to_string(alert.packet->source_port) + " " +
            alert.packet->destination.str() + ":" + std::to_string(alert.packet->destination_port);
    with_frame_ = !alert.frame.empty();
    blocked_ = alert.blocked;
  }
  void dropped(const DroppedFrame& frame) override {
    EXPECT_EQ(frame.frame.data(), frame_);
    EXPECT_NE(frame.flow, nullptr);
    drops_.emplace_back(frame.reason, frame.direction);
    dropped_by_ = frame.rules == nullptr ? 0 : frame.rules->detector().rules().rules[frame.rule].sid;
  }

  Judgement feed(const packet::PacketBuilder& builder, std::uint64_t later = 1000) {
    const packet::Bytes bytes = builder.build();
    frame_ = reinterpret_cast<const char*>(bytes.data());
    return inspection_->frame({frame_, bytes.size()}, now_ += later);
  }
  Judgement udp(const std::string& text, const char* from = "10.0.0.1") {
    return feed(
        packet::PacketBuilder().ipv4(from, "10.0.0.2").udp(4000, 53).payload(packet::Bytes(text.begin(), text.end())));
  }
  // A segment between 10.0.0.1:4000 and 10.0.0.2:80.
  packet::PacketBuilder built(bool to_server, std::uint8_t flags, const std::string& text = "") {
    return test::segment_of(to_server, flags, sequence_[to_server ? 0 : 1], sequence_[to_server ? 1 : 0], text);
  }
  Judgement segment(bool to_server, std::uint8_t flags, const std::string& text = "") {
    const packet::PacketBuilder builder = built(to_server, flags, text);
    sequence_[to_server ? 0 : 1] += static_cast<std::uint32_t>(text.size()) + ((flags & packet::tcp_syn) != 0 ? 1 : 0);
    return feed(builder);
  }
  void handshake() {
    segment(true, packet::tcp_syn);
    segment(false, packet::tcp_syn | packet::tcp_ack);
    segment(true, packet::tcp_ack);
  }
  std::vector<std::uint32_t> alerts() { return std::exchange(sids_, {}); }
  using Dropped = std::pair<DropReason, flow::Direction>;
  std::vector<Dropped> drops() { return std::exchange(drops_, {}); }

  flow::StreamSettings streams_;
  bool midstream_ = false, drop_silent_ = false;
  flow::Milliseconds remembered_ = 0;
  std::shared_ptr<InspectionRules> rules_;
  std::vector<std::uint32_t> sids_;
  std::vector<Dropped> drops_;
  std::uint32_t dropped_by_ = 0;  // the last frame; 0: by no rule that is named
  const char* frame_ = nullptr;   // that is looked at
  std::string ends_;              // of the last alert
  bool with_frame_ = false, blocked_ = false;
  std::uint32_t sequence_[2] = {1000, 5000};
  std::uint64_t now_ = 0;                   // microseconds
  std::unique_ptr<Inspection> inspection_;  // last: it alerts at its end
};

}  // namespace sluice::function
