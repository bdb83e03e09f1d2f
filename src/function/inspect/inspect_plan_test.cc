#include "function/inspect/inspect_plan.h"

#include <gtest/gtest.h>

namespace sluice::function {
namespace {

TEST(InspectThread, DropsNothingThatNobodyForwards) {
  InspectionSettings section;
  flow::ConversationSettings& tables = section.conversations;
  tables.streams.drop_conflicts = tables.streams.drop_without_capacity = tables.drop_silent = true;
  section.drop_on_overload = section.drop_on_http_limit = true;
  for (const bool forwards : {true, false}) {
    const InspectionSettings settings = settings_of_thread(section, {.sends = forwards});
    EXPECT_EQ(settings.conversations.streams.drop_conflicts, forwards);
    EXPECT_EQ(settings.conversations.streams.drop_without_capacity, forwards);
    EXPECT_EQ(settings.conversations.drop_silent, forwards);
    EXPECT_EQ(settings.drop_on_overload, forwards);
    EXPECT_EQ(settings.drop_on_http_limit, forwards);
  }
  const InspectionSettings none = settings_of_thread({}, {.sends = true});
  EXPECT_FALSE(none.conversations.drop_silent || none.drop_on_overload) << "what is not asked for";
}

// Hosts send keep-alives after two hours.
TEST(InspectThread, FollowsWhatIsForwardedForLonger) {
  const auto silence = [](bool forwards) {
    return settings_of_thread({}, {.sends = forwards}).conversations.flows.timeouts.tcp_established;
  };
  EXPECT_GT(silence(true), 2U * 3600 * 1000);
  EXPECT_EQ(silence(false), flow::FlowSettings().timeouts.tcp_established);
}

TEST(InspectThread, HasItsShareOfTables) {
  InspectionSettings section;
  flow::ConversationSettings& tables = section.conversations;
  tables.flows.capacity = tables.extras = tables.http_connections = tables.http_transactions = 100;
  tables.stream_bytes = tables.http_bytes = section.fragments.memory = 1000;
  const InspectionSettings third = settings_of_thread(section, {.threads = 3});
  EXPECT_EQ(third.conversations.flows.capacity, 34U);
  EXPECT_EQ(third.conversations.extras, 34U);
  EXPECT_EQ(third.conversations.http_connections, 34U);
  EXPECT_EQ(third.conversations.http_transactions, 34U);
  EXPECT_EQ(third.conversations.stream_bytes, 334U);
  EXPECT_EQ(third.conversations.http_bytes, 334U);
  EXPECT_EQ(third.fragments.memory, 334U);
}

}  // namespace
}  // namespace sluice::function
