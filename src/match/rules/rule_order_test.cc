#include "match/rules/rule_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <sstream>
#include <string>

#include "match/rules/rule_trial_test.h"

namespace sluice::match {
namespace {

using testing::ElementsAre;

std::vector<Rule> rules_of(const std::string& text) {
  std::vector<Rule> rules;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) rules.push_back(read(line));
  return rules;
}

std::string udp(const std::string& options) {
  return "alert udp any any -> any any (content:\"A\"; " + options + ";)\n";
}

// Sids in the order of treatment.
std::vector<std::uint32_t> order_of(const std::string& text) {
  const std::vector<Rule> rules = rules_of(text);
  std::vector<std::uint32_t> sids;
  for (const std::uint32_t r : order_of_treatment(rules)) sids.push_back(rules[r].sid);
  return sids;
}

TEST(RuleOrder, IsByActionThenFlowbitsThenPriorityThenSid) {
  const std::string any = " udp any any -> any any (content:\"A\"; ";
  EXPECT_THAT(order_of("alert" + any + "sid:2;)\nalert" + any + "sid:1;)\nalert" + any + "priority:1; sid:9;)\npass" +
                       any + "sid:8;)\nreject" + any + "sid:7;)\ndrop" + any + "sid:6;)\nalert" + any +
                       "flowbits:isset,a; sid:5;)\nalert" + any + "flowbits:set,a; sid:4;)\n"),
              ElementsAre(8, 6, 7, 4, 5, 9, 1, 2));
}

TEST(RuleOrder, FollowsAChainOfFlowbitsOfAnyLengthWhereverItsRulesStand) {
  constexpr std::uint32_t length = 3000;  // deeper than a recursion should go
  std::vector<std::uint32_t> links(length);
  std::iota(links.begin(), links.end(), 0U);
  std::mt19937 random(5);
  std::shuffle(links.begin(), links.end(), random);
  std::string text;
  for (const std::uint32_t i : links) {
    const std::string n = std::to_string(i), next = std::to_string(i + 1);
    text += udp("flowbits:isset,b" + n + "; flowbits:set,b" + next + "; priority:" + std::to_string(1 + random() % 4) +
                "; sid:" + std::to_string(1 + random() % 1000 * 10'000 + i));
  }
  const std::vector<std::uint32_t> sids = order_of(text + udp("flowbits:set,b0; sid:99999999"));
  ASSERT_EQ(sids.size(), length + 1);
  EXPECT_EQ(sids[0], 99999999U);
  for (std::uint32_t i = 0; i < length; ++i) ASSERT_EQ((sids[i + 1] - 1) % 10'000, i);
}

// Such rules ask for each other's flowbits: none is first by what it sets.
TEST(RuleOrder, IsBySidInACircleWhichStandsAsAWholeBehindWhatLeadsToIt) {
  EXPECT_THAT(order_of(udp("flowbits:isset,y; flowbits:set,x; sid:4") + udp("flowbits:isset,x; flowbits:set,y; sid:3") +
                       udp("flowbits:isset,s; flowbits:set,x; sid:9") + udp("flowbits:isset,y; flowbits:set,z; sid:1") +
                       udp("flowbits:isset,z; sid:2") + udp("flowbits:set,s; sid:10")),
              ElementsAre(10, 9, 3, 4, 1, 2));
  EXPECT_THAT(order_of(udp("flowbits:isnotset,x; flowbits:set,x; flowbits:isset,p; sid:1") +
                       udp("flowbits:isnotset,p; flowbits:set,p; sid:2")),
              ElementsAre(2, 1));
}

std::string points_of_text(const std::string& text) {
  constexpr const char* names[] = {"packet", "line", "headers", "body", "answer", "answer's body"};
  std::string all;
  for (const RulePoints& points : points_of(rules_of(text))) {
    all += std::string(all.empty() ? "" : ", ") + names[static_cast<std::size_t>(points.of.first)];
    if (points.of.last > points.of.first) all += std::string(" to ") + names[static_cast<std::size_t>(points.of.last)];
    if (points.waits) all += " waits";
  }
  return all;
}

TEST(RuleOrder, WhatAsksForAFlowbitIsInspectedAgainWhereItsMessageMaySetIt) {
  const std::string request = "alert http any any -> any any (flow:to_server; ";
  const std::string sets = request + "http.user_agent; content:\"a\"; flowbits:set,x; sid:1;)\n";
  const std::string body = request + "http.request_body; content:\"a\"; flowbits:set,x; sid:1;)\n";
  const auto asks = [&](const std::string& bits) {
    return request + "http.uri; content:\"b\"; flowbits:" + bits + "; sid:2;)\n";
  };
  EXPECT_EQ(points_of_text(sets + asks("isset,x")), "headers, line to headers");
  EXPECT_EQ(points_of_text(body + asks("isset,x")), "body, line to body");
  EXPECT_EQ(points_of_text(sets + asks("isset,other")), "headers, line");
  EXPECT_EQ(points_of_text(sets + asks("isnotset,x")), "headers, line to headers waits");
  EXPECT_EQ(points_of_text(body + asks("isnotset,x")), "body, line to body waits");
  EXPECT_EQ(points_of_text(sets + asks("toggle,y")), "headers, line");
  EXPECT_EQ(points_of_text(request + "http.user_agent; content:\"a\"; flowbits:toggle,x; sid:1;)\n" + asks("isset,x")),
            "headers, line to headers waits");
  // By way of a third.
  EXPECT_EQ(points_of_text(asks("isset,y") + request +
                           "http.method; content:\"c\"; flowbits:isset,x; flowbits:set,y; sid:3;)\n" + body),
            "line to body, line to body, body");
  // What an answer sets comes behind its request.
  EXPECT_EQ(
      points_of_text(asks("isset,x") + "alert http any any -> any any (flow:to_client; http.server; content:\"a\"; "
                                       "flowbits:set,x; sid:1;)\n"),
      "line, answer");
  EXPECT_EQ(points_of_text("alert tcp any any -> any any (content:\"a\"; flowbits:isset,x; sid:4;)\n" + sets),
            "packet, headers");
}

TEST(RuleOrder, WhatALaterPartMayClearOrSetWaitsAsDoesWhatAsksForWhatThatSets) {
  const auto rule = [](const std::string& action, const std::string& buffer, const std::string& bits, int sid) {
    return action + " http any any -> any any (flow:to_server; " + buffer + "; content:\"a\"; flowbits:" + bits +
           "; sid:" + std::to_string(sid) + ";)\n";
  };
  const auto alert = [&](const std::string& buffer, const std::string& bits, int sid) {
    return rule("alert", buffer, bits, sid);
  };
  // Of two that change it the later one by its part may be the earlier one by its sid.
  EXPECT_EQ(points_of_text(alert("http.uri", "set,x", 2) + alert("http.request_body", "unset,x", 1)),
            "line waits, body waits");
  EXPECT_EQ(points_of_text(alert("http.uri", "set,x", 2) + alert("http.request_body", "set,x", 1)), "line, body");
  EXPECT_EQ(points_of_text(alert("http.request_body", "set,x", 1) + alert("http.uri", "isnotset,x; flowbits:set,y", 2) +
                           alert("http.method", "isset,y", 3) + alert("http.method", "isset,z", 4)),
            "body, line to body waits, line to body waits, line");
  // What one that waits changes waits for it, whatever else does.
  EXPECT_EQ(points_of_text(alert("http.uri", "set,x; flowbits:set,y", 2) + alert("http.request_body", "unset,x", 1) +
                           alert("http.uri", "toggle,y", 3) + alert("http.uri", "set,x", 4)),
            "line waits, body waits, line waits, line waits");
  // Its own change is none of a later part, nor is one of the same.
  EXPECT_EQ(points_of_text(alert("http.uri", "isnotset,x; flowbits:set,x", 1)), "line");
  EXPECT_EQ(points_of_text(alert("http.uri", "isnotset,x", 1) + alert("http.method", "set,x", 2)), "line, line");
  // What is treated behind it changes nothing for it.
  EXPECT_EQ(points_of_text(rule("drop", "http.uri", "isnotset,x", 1) + alert("http.request_body", "set,x", 2)),
            "line to body, body");
  EXPECT_EQ(points_of_text(alert("http.uri", "isnotset,x", 1) + rule("drop", "http.request_body", "set,x", 2)),
            "line to body waits, body");
  EXPECT_EQ(points_of_text(rule("pass", "http.uri", "isnotset,x", 1) + rule("pass", "http.request_body", "set,x", 2)),
            "line to body, body");
}

}  // namespace
}  // namespace sluice::match
