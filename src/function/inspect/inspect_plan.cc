#include "function/inspect/inspect_plan.h"

#include <rte_cycles.h>

#include <algorithm>
#include <utility>

namespace sluice::function {
namespace {

// Of conversations that are forwarded: longer than two hours, after which hosts send keep-alives (RFC 5382, REQ-5).
constexpr flow::Milliseconds tcp_silence = 7'440'000;
constexpr flow::Milliseconds remembered = 24ULL * 3600 * 1000;

// A part of a number of things that the section gives for all threads, one at least.
template <typename Number>
Number share(Number all, std::uint32_t threads) {
  return std::max<Number>(1, (all + threads - 1) / threads);
}

}  // namespace

InspectionSettings settings_of_thread(InspectionSettings settings, const engine::Plan& plan) {
  flow::ConversationSettings& tables = settings.conversations;
  tables.flows.capacity = share(tables.flows.capacity, plan.threads);
  tables.extras = share(tables.extras, plan.threads);
  tables.http_connections = share(tables.http_connections, plan.threads);
  tables.http_transactions = share(tables.http_transactions, plan.threads);
  tables.stream_bytes = share(tables.stream_bytes, plan.threads);
  tables.http_bytes = share(tables.http_bytes, plan.threads);
  // Nothing can be kept from a receiver that gets it by another way.
  tables.streams.drop_conflicts &= plan.sends;
  tables.streams.drop_without_capacity &= plan.sends;
  tables.drop_silent &= plan.sends;
  settings.drop_on_http_limit &= plan.sends;
  settings.drop_on_overload &= plan.sends;
  if (plan.sends) {
    tables.flows.timeouts.tcp_established = tcp_silence;
    tables.flows.remembered = remembered;
  }
  settings.fragments.memory = share(settings.fragments.memory, plan.threads);
  return settings;
}

BatchBudget budget_of(std::chrono::nanoseconds budget, const engine::Plan& plan) {
  const auto ticks = [](std::chrono::nanoseconds time) {
    return static_cast<std::uint64_t>(static_cast<double>(time.count()) * static_cast<double>(rte_get_tsc_hz()) / 1e9);
  };
  if (budget.count() != 0) return BatchBudget(ticks(budget));
  if (plan.captures) return BatchBudget(match::Detector::unlimited);
  return BatchBudget(ticks(plan.cycle.count() != 0 ? plan.cycle : plan.deadline / 4), ticks(plan.deadline));
}

}  // namespace sluice::function
