// For the tests of the alerts' output: rules, and alerts of frames made by hand.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "flow/http/connection.h"
#include "function/inspect/alert_log.h"
#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::function::test {

inline std::string_view view(const packet::Bytes& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline packet::Bytes bytes(std::string_view text) {
  return {text.begin(), text.end()};
}

inline std::shared_ptr<InspectionRules> rules_of(const std::string& text) {
  auto set = match::read_rules_text(text, "test.rules");
  EXPECT_TRUE(set && set->refused.empty());
  auto rules = InspectionRules::make(std::move(*set));
  EXPECT_TRUE(rules) << rules.error().message;
  return *rules;
}

// 2023-11-14 22:13:20.123456 UTC.
inline constexpr std::uint64_t sample_time = 1'700'000'000'123'456;

// A frame, what is known of it, and an alert that says so.
class Sample {
 public:
  Sample(std::shared_ptr<const InspectionRules> rules, packet::Bytes frame)
      : rules_(std::move(rules)), frame_(std::move(frame)), packet_(match::facts_of(view(frame_))) {}
  Sample(const Sample&) = delete;
  Sample& operator=(const Sample&) = delete;

  // The flow whose client sends the frame, or (`to_client`) whose server does; 1.5 s old.
  Sample& flow(flow::Direction direction = flow::Direction::to_server, std::uint16_t marks = 0) {
    const bool to_server = direction == flow::Direction::to_server;
    flow_.client = (to_server ? packet_.source : packet_.destination).bytes;
    flow_.server = (to_server ? packet_.destination : packet_.source).bytes;
    flow_.client_port = to_server ? packet_.source_port : packet_.destination_port;
    flow_.server_port = to_server ? packet_.destination_port : packet_.source_port;
    flow_.family = packet_.family;
    flow_.protocol = packet_.protocol;
    flow_.hash = 0x12345678;
    flow_.began = static_cast<std::uint32_t>(sample_time / 1000 - 1500);
    flow_.packets = {3, 2};
    flow_.bytes = {180, 120};
    flow_.user = marks;
    direction_ = direction;
    has_flow_ = true;
    return *this;
  }

  // What is inspected is no packet that came: the flow's other end's, as the stream reports it.
  Sample& from_other_end() {
    packet_ =
        match::packet_of(packet_.family, packet_.protocol, {packet_.destination.bytes.data(), packet_.destination_port},
                         {packet_.source.bytes.data(), packet_.source_port});
    direction_ = opposite(direction_);
    return *this;
  }
  Sample& in_tunnel(const TunnelEnds* ends) {
    tunnel_ = ends;
    return *this;
  }
  // In this one the alerts are found.
  Sample& transaction(const flow::http::Transaction* transaction) {
    transaction_ = transaction;
    return *this;
  }
  Alert alert(std::uint32_t rule, bool blocked = false, bool stream = false) const {
    return {rules_.get(),    rule,    sample_time, view(frame_), &packet_, direction_, has_flow_ ? &flow_ : nullptr,
            packet_.payload, blocked, stream,      transaction_, tunnel_};
  }
  DroppedFrame dropped(DropReason reason) const {
    return {sample_time, view(frame_), &packet_, direction_, has_flow_ ? &flow_ : nullptr, reason};
  }
  void forget_rules() { rules_.reset(); }

 private:
  std::shared_ptr<const InspectionRules> rules_;
  packet::Bytes frame_;
  match::PacketFacts packet_;
  flow::Flow flow_{};
  flow::Direction direction_ = flow::Direction::to_server;
  bool has_flow_ = false;
  const flow::http::Transaction* transaction_ = nullptr;
  const TunnelEnds* tunnel_ = nullptr;
};

// What a client and a server say to each other, as the parser makes transactions of it. Views hold while it lives.
class Dialogue : flow::http::TransactionSink {
 public:
  Dialogue() : pool_(1 << 20), parser_({}, pool_, 1, 4, *this), connection_(parser_.open()) {}
  ~Dialogue() { parser_.close(connection_); }
  Dialogue(const Dialogue&) = delete;
  Dialogue& operator=(const Dialogue&) = delete;

  // The last transaction as of then.
  const flow::http::Transaction* client(std::string_view bytes) { return say(flow::Direction::to_server, bytes); }
  const flow::http::Transaction* server(std::string_view bytes) { return say(flow::Direction::to_client, bytes); }

 private:
  const flow::http::Transaction* say(flow::Direction direction, std::string_view bytes) {
    parser_.data(*connection_, direction, bytes);
    return last_;
  }
  void transaction(flow::http::Connection&, flow::http::Event, flow::http::Transaction& transaction) override {
    last_ = &transaction;
  }
  void stopped(flow::http::Connection&, flow::http::StopReason) override {}

  flow::BlockPool pool_;
  flow::http::Parser parser_;
  flow::http::Connection* connection_;
  const flow::http::Transaction* last_ = nullptr;
};

// A folder of its own for a test, gone with it.
class Folder {
 public:
  Folder() {
    char name[] = "/tmp/sluice-alerts-XXXXXX";
    path_ = ::mkdtemp(name);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline std::vector<std::string> lines_of(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

}  // namespace sluice::function::test
