// A conversation of HTTP with rules: what the tests of it share.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "function/inspect/inspection.h"
#include "function/inspect/inspection_trial_test.h"
#include "function/inspect/with_policy_test.h"
#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::function {

class InspectionHttpTest : public testing::Test, public AlertSink {
 protected:
  void use(const std::string& text, const InspectionSettings& given = {}) {
    auto rules = test::rules_of(test::with_policy(text, given.drop_on_overload));
    ASSERT_NE(rules, nullptr);
    inspection_ = std::make_unique<Inspection>(std::make_unique<InspectionSearch>(std::move(rules)),
                                               test::small_settings(given), *this);
    sequence_[0] = 1000;
    sequence_[1] = 5000;
    segment(true, packet::tcp_syn);
    segment(false, packet::tcp_syn | packet::tcp_ack);
    segment(true, packet::tcp_ack);
  }
  void alert(const Alert& alert) override {
    sids_.push_back(alert.rules->detector().rules().rules[alert.rule].sid);
    blocked_ += alert.blocked ? 1 : 0;
    const flow::http::Transaction* const in = alert.transaction;
    hosts_.push_back(in == nullptr ? "" : std::string(in->host()));
    urls_.push_back(in == nullptr ? "" : std::string(in->uri_raw()) + " " + std::string(in->status()));
  }
  Judgement segment(bool to_server, std::uint8_t flags, const std::string& text = "") {
    std::uint32_t& mine = sequence_[to_server ? 0 : 1];
    const packet::PacketBuilder builder = test::segment_of(to_server, flags, mine, sequence_[to_server ? 1 : 0], text);
    mine += static_cast<std::uint32_t>(text.size()) + ((flags & (packet::tcp_syn | packet::tcp_fin)) != 0 ? 1 : 0);
    const packet::Bytes bytes = builder.build();
    return test::inspect(*inspection_, {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, now_ += 1000,
                         by_device_);
  }
  void request() { segment(true, packet::tcp_ack, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); }
  void response(const std::string& text) { segment(false, packet::tcp_ack, text); }
  void post(const std::string& text) { segment(true, packet::tcp_ack, text); }
  std::vector<std::uint32_t> alerts() { return std::exchange(sids_, {}); }

  std::vector<std::uint32_t> sids_;
  std::vector<std::string> hosts_;
  unsigned blocked_ = 0;
  std::vector<std::string> urls_;  // with the status, of each alert's transaction; "": none
  bool by_device_ = false;
  std::uint32_t sequence_[2] = {1000, 5000};
  std::uint64_t now_ = 0;                   // microseconds
  std::unique_ptr<Inspection> inspection_;  // last: it alerts at its end
};

}  // namespace sluice::function
