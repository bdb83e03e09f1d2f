// What the tests of Inspection share: rules from their text, settings for a few conversations, and segments of one.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "function/inspect/inspection.h"
#include "match/automaton/reference_test.h"
#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::function::test {

// A rule that does not load is a failure; nullptr: no rules can be made. `before`: as InspectionRules::make() wants it.
inline std::shared_ptr<InspectionRules> rules_of(const std::string& text, const InspectionRules* before = nullptr) {
  auto set = match::read_rules_text(text, "test.rules");
  if (!set) {
    ADD_FAILURE() << set.error().message;
    return nullptr;
  }
  for (const match::Refusal& refusal : set->refused) ADD_FAILURE() << refusal.message;
  auto rules = InspectionRules::make(std::move(*set), before);
  if (!rules) {
    ADD_FAILURE() << rules.error().message;
    return nullptr;
  }
  return std::move(*rules);
}

// With capacity for a thousand flows and a few of all else.
inline InspectionSettings small_settings(InspectionSettings settings = {}) {
  flow::ConversationSettings& tables = settings.conversations;
  tables.flows.capacity = 1024;
  tables.extras = 64;
  tables.http_connections = 16;
  tables.http_transactions = 32;
  tables.stream_bytes = tables.http_bytes = 4 << 20;
  return settings;
}

// A segment between 10.0.0.1:4000 and 10.0.0.2:80.
inline packet::PacketBuilder segment_of(bool to_server, std::uint8_t flags, std::uint32_t sequence,
                                        std::uint32_t acknowledged, const std::string& text = "",
                                        std::uint16_t client_port = 4000) {
  packet::PacketBuilder builder;
  to_server ? builder.ipv4("10.0.0.1", "10.0.0.2").tcp(client_port, 80)
            : builder.ipv4("10.0.0.2", "10.0.0.1").tcp(80, client_port);
  builder.tcp_flags(flags).tcp_sequence(sequence, (flags & packet::tcp_ack) != 0 ? acknowledged : 0);
  return builder.payload(packet::Bytes(text.begin(), text.end()));
}

// The frame, with the keys that a device finds in it when there is one.
inline Judgement inspect(Inspection& inspection, std::string_view frame, std::uint64_t microseconds, bool by_device) {
  if (!by_device) return inspection.frame(frame, microseconds);
  const InspectionRules& rules = inspection.rules();
  const match::PacketFacts facts = match::facts_of(frame);
  const auto found =
      match::test::keys_in(rules.keys(), std::string(facts.payload), rules.detector().classes().class_of(facts));
  const std::vector<std::uint32_t> keys(found.begin(), found.end());
  return inspection.frame(frame, microseconds,
                          {rules.generation(), keys.data(), static_cast<std::uint32_t>(keys.size()),
                           inspection.brief_of(frame).updates_flow_only});
}

}  // namespace sluice::function::test
