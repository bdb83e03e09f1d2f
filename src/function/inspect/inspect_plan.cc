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
  tables.streams.drop_without_room &= plan.sends;
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

std::string fixed_settings(const InspectOptions& now, const InspectOptions& wanted) {
  const flow::ConversationSettings& had = now.inspection.conversations;
  const flow::ConversationSettings& has = wanted.inspection.conversations;
  std::string lines;
  for (const auto& [key, differs] :
       {std::pair{"flows", had.flows.capacity != has.flows.capacity},
        std::pair{"streams", had.extras != has.extras},
        std::pair{"http", had.http_connections != has.http_connections},
        std::pair{"stream_memory", had.stream_bytes != has.stream_bytes},
        std::pair{"http_memory", had.http_bytes != has.http_bytes},
        std::pair{"fragment_memory", now.inspection.fragments.memory != wanted.inspection.fragments.memory},
        std::pair{"stream_depth", had.streams.depth != has.streams.depth},
        std::pair{"stream_history", had.streams.window != has.streams.window},
        std::pair{"request_body_limit", had.http.request_body_limit != has.http.request_body_limit},
        std::pair{"response_body_limit", had.http.response_body_limit != has.http.response_body_limit},
        std::pair{"header_limit", had.http.header_limit != has.http.header_limit},
        std::pair{"headers_limit", had.http.headers_limit != has.http.headers_limit},
        std::pair{"header_fields", had.http.max_headers != has.http.max_headers},
        std::pair{"content_codings", had.http.request_layers != has.http.request_layers},
        std::pair{"midstream", had.flows.midstream != has.flows.midstream},
        std::pair{"tunnels", now.inspection.tunnels != wanted.inspection.tunnels},
        std::pair{"on_conflict", had.streams.drop_conflicts != has.streams.drop_conflicts},
        std::pair{"on_silence", had.drop_silent != has.drop_silent},
        std::pair{"on_overload", now.inspection.drop_on_overload != wanted.inspection.drop_on_overload},
        std::pair{"on_http_limit", now.inspection.drop_on_http_limit != wanted.inspection.drop_on_http_limit},
        std::pair{"candidates", now.inspection.budget != wanted.inspection.budget},
        std::pair{"budget", now.budget != wanted.budget},
        std::pair{"eve", now.log.eve != wanted.log.eve},
        std::pair{"fast", now.log.fast != wanted.log.fast},
        std::pair{"payload", now.log.fields.payload != wanted.log.fields.payload},
        std::pair{"alerts_per_second", now.log.alerts_per_second != wanted.log.alerts_per_second},
        std::pair{"stats_interval", now.log.stats_seconds != wanted.log.stats_seconds}}) {
    if (!differs) continue;
    lines += (lines.empty() ? "" : "\n") + ("[inspect] " + std::string(key)) +
             " cannot change while it runs: restart the gateway";
  }
  return lines;
}

}  // namespace sluice::function
