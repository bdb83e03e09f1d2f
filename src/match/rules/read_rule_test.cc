// A rule's header and the whole of it: what they are read as, and why a rule does not load.
#include "match/rules/rule_trial_test.h"

namespace sluice::match {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(ReadRule, TakesTheHeaderApart) {
  const Rule rule = read(
      "drop http [10.0.0.0/8, !10.1.0.0/16] 1024: <> [192.0.2.1,2001:db8::/32] "
      "[80,443,!8080] "
      "(msg:\"a \\\"b\\\"\\; c\\\\\"; gid:3; sid:12; rev:4; classtype:attempted-recon; reference:cve,2001-1; "
      "reference:url,a.org/x\\;y; metadata:k v, k2 v2; noalert;)");
  EXPECT_EQ(rule.action, Action::drop);
  EXPECT_EQ(rule.protocol, Protocol::http);
  EXPECT_TRUE(rule.both_ways);
  ASSERT_EQ(rule.source.addresses.ranges().size(), 2U);
  EXPECT_EQ(rule.source.addresses.ranges()[0].last.str(), "10.0.255.255");
  EXPECT_EQ(rule.source.addresses.ranges()[1].first.str(), "10.2.0.0");
  EXPECT_THAT(rule.source.ports.ranges(), ElementsAre(PortRange{1024, 65535}));
  EXPECT_EQ(rule.destination.addresses.ranges()[1].last.str(), "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff");
  EXPECT_THAT(rule.destination.ports.ranges(), ElementsAre(PortRange{80, 80}, PortRange{443, 443}));
  EXPECT_EQ(rule.msg, "a \"b\"; c\\");
  EXPECT_EQ(rule.gid, 3U);
  EXPECT_EQ(rule.sid, 12U);
  EXPECT_EQ(rule.rev, 4U);
  EXPECT_EQ(rule.priority, 2);
  ASSERT_EQ(rule.references.size(), 2U);
  EXPECT_EQ(rule.references[1].id, "a.org/x;y");
  EXPECT_THAT(rule.metadata, ElementsAre("k v", "k2 v2"));
  EXPECT_TRUE(rule.noalert);
}

TEST(ReadRule, PriorityOfARuleGoesBeforeThatOfItsClass) {
  EXPECT_EQ(options("priority:7; classtype:attempted-admin;").priority, 7);
  EXPECT_EQ(options("classtype:attempted-admin; priority:7;").priority, 7);
  EXPECT_EQ(options("classtype:nobody-knows-it;").priority, 3);
}

struct ActionOrProtocol {
  const char* action;
  const char* protocol;
  Action read_action;
  Protocol read_protocol;
};

TEST(ReadRule, KnowsActionsAndProtocols) {
  for (const auto& [action, protocol, read_action, read_protocol] : {
           ActionOrProtocol{"alert", "tcp-pkt", Action::alert, Protocol::tcp_pkt},
           ActionOrProtocol{"pass", "tcp-stream", Action::pass, Protocol::tcp_stream},
           ActionOrProtocol{"reject", "http", Action::reject, Protocol::http},
           ActionOrProtocol{"drop", "IP", Action::drop, Protocol::ip},
           ActionOrProtocol{"alert", "icmp", Action::alert, Protocol::icmp},
           ActionOrProtocol{"alert", "http1", Action::alert, Protocol::http},
       }) {
    const Rule rule = read(std::string(action) + " " + protocol + " any any -> any any (content:\"a\"; sid:1;)");
    EXPECT_EQ(rule.action, read_action) << action;
    EXPECT_EQ(rule.protocol, read_protocol) << protocol;
  }
  EXPECT_STREQ(name_of(Protocol::tcp_pkt), "tcp-pkt");
  EXPECT_STREQ(name_of(Action::reject), "reject");
}

TEST(ReadRule, KnowsWhomARejectNotifiesAndWhatASilentDropIs) {
  const struct {
    const char* word;
    Action action;
    Notified notified;
    bool noalert;
  } cases[] = {{"reject", Action::reject, Notified::source, false},
               {"rejectsrc", Action::reject, Notified::source, false},
               {"rejectdst", Action::reject, Notified::destination, false},
               {"RejectBoth", Action::reject, Notified::both, false},
               {"drop", Action::drop, Notified::source, false},
               {"sdrop", Action::drop, Notified::source, true}};
  for (const auto& one : cases) {
    const Rule rule = read(std::string(one.word) + " tcp any any -> any any (sid:1;)");
    EXPECT_EQ(rule.action, one.action) << one.word;
    EXPECT_EQ(rule.notified, one.notified) << one.word;
    EXPECT_EQ(rule.noalert, one.noalert) << one.word;
    EXPECT_STREQ(name_of(rule.action), one.action == Action::drop ? "drop" : "reject");
  }
}

class RefusedHeader : public testing::TestWithParam<Refused> {};

TEST_P(RefusedHeader, SaysWhat) {
  const auto rule = read_rule(GetParam().options);
  ASSERT_FALSE(rule) << GetParam().options;
  EXPECT_THAT(rule.error().message, HasSubstr(GetParam().message)) << GetParam().options;
}

INSTANTIATE_TEST_SUITE_P(
    Table, RefusedHeader,
    testing::Values(Refused{"alert tcp any any -> any any", "no options in parentheses"},
                    Refused{"alert tcp any any -> any any (sid:1;", "does not end with a closing parenthesis"},
                    Refused{"alert tcp any any -> any (sid:1;)", "its header is not ACTION"},
                    Refused{"alert tcp any any -> any any more (sid:1;)", "its header is not ACTION"},
                    Refused{"log tcp any any -> any any (sid:1;)", "action: log: packets are not logged without"},
                    Refused{"activate tcp any any -> any any (sid:1;)", "action: activate: a rule does not turn on"},
                    Refused{"dynamic tcp any any -> any any (sid:1;)", "action: dynamic: a rule is not turned on"},
                    Refused{"config tcp any any -> any any (sid:1;)", "action: config: rules do not configure"},
                    Refused{"block tcp any any -> any any (sid:1;)", "action: 'block' is none of alert, drop, sdrop"},
                    Refused{"alert xyz any any -> any any (sid:1;)", "protocol: 'xyz' is not recognised"},
                    Refused{"drop tls any any -> any 443 (content:\"a\"; sid:1;)", "protocol: 'tls' is not recognised"},
                    Refused{"alert tcp any any <- any any (sid:1;)", "direction: '<-' is neither"},
                    Refused{"alert tcp $NONE any -> any any (sid:1;)",
                            "source address: the variable 'NONE' is not set"},
                    Refused{"alert tcp any any -> any 65536 (sid:1;)", "destination port: '65536' is no port"},
                    Refused{"alert tcp any 9:8 -> any any (sid:1;)", "ends before it begins"},
                    Refused{"alert tcp !any any -> any any (sid:1;)", "leaves nothing"},
                    Refused{"alert icmp any 80 -> any any (sid:1;)", "ICMP has none"},
                    Refused{"alert tcp any any -> any any (msg:\"a\";)", "it has no sid"},
                    Refused{"alert tcp any any -> any any (sid:0;)", "sid: '0' is no number from 1"},
                    Refused{"alert tcp any any -> any any (sid:1)", "sid' does not end with a semicolon"}));

TEST(ReadRule, TheSameMistakeWithOtherValuesHasTheSameReason) {
  std::string one;
  std::string other;
  EXPECT_FALSE(read_rule(with_options("content:\"abc\"; depth:2;"), {}, &one));
  EXPECT_FALSE(read_rule(with_options("content:\"abcdefghijk\"; depth:10;"), {}, &other));
  EXPECT_EQ(one, other);
  EXPECT_FALSE(one.empty());
}

}  // namespace
}  // namespace sluice::match
