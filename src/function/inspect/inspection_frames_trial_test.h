// Conversations with rules, frame by frame, as a lane would see them: what the tests of it share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "function/inspect/inspection.h"
#include "function/inspect/inspection_trial_test.h"
#include "function/inspect/with_policy_test.h"
#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::function {

class InspectionTest : public testing::Test, public AlertSink {
 protected:
  void use(const std::string& text, InspectionSettings settings = {}) {
    rules_ = test::rules_of(test::with_policy(text, settings.drop_on_overload));
    ASSERT_NE(rules_, nullptr);
    inspection_ =
        std::make_unique<Inspection>(std::make_unique<InspectionSearch>(rules_), test::small_settings(settings), *this);
  }

  void alert(const Alert& alert) override {
    sids_.push_back(rules_->detector().rules().rules[alert.rule].sid);
    blocked_ = alert.blocked;
  }
  void dropped(const DroppedFrame& frame) override { drops_.push_back(frame.reason); }
  void unseen() override { ++unseen_; }

  Judgement feed(const packet::PacketBuilder& builder) {
    const packet::Bytes bytes = builder.build();
    const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return test::inspect(*inspection_, frame, now_ += 1000, by_device_);
  }
  Judgement udp(const std::string& text, std::uint16_t port = 53) {
    return feed(packet::PacketBuilder()
                    .ipv4("10.0.0.1", "10.0.0.2")
                    .udp(4000, port)
                    .payload(packet::Bytes(text.begin(), text.end())));
  }
  // A segment of the conversation between 10.0.0.1:4000 and 10.0.0.2:80.
  Judgement segment(bool to_server, std::uint8_t flags, const std::string& text = "") {
    std::uint32_t& mine = sequence_[to_server ? 0 : 1];
    const packet::PacketBuilder builder = test::segment_of(to_server, flags, mine, sequence_[to_server ? 1 : 0], text);
    mine += static_cast<std::uint32_t>(text.size()) + ((flags & packet::tcp_syn) != 0 ? 1 : 0);
    return feed(builder);
  }
  void handshake() {
    segment(true, packet::tcp_syn);
    segment(false, packet::tcp_syn | packet::tcp_ack);
    segment(true, packet::tcp_ack);
  }
  std::vector<std::uint32_t> alerts() { return std::exchange(sids_, {}); }

  std::shared_ptr<InspectionRules> rules_;
  std::vector<std::uint32_t> sids_;
  std::vector<DropReason> drops_;
  unsigned unseen_ = 0;
  std::uint32_t sequence_[2] = {1000, 5000};
  std::uint64_t now_ = 0;  // microseconds
  bool blocked_ = false;
  bool by_device_ = false;                  // there are prefilter matches, as a device would find
  std::unique_ptr<Inspection> inspection_;  // last: it alerts at its end
};

}  // namespace sluice::function
