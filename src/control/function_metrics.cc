#include "control/function_metrics.h"

#include <spdlog/spdlog.h>

#include <mutex>
#include <set>
#include <string_view>
#include <utility>

#include "base/name.h"
#include "base/quote.h"
#include "base/thrown.h"
#include "engine/element.h"
#include "engine/service.h"
#include "engine/traits.h"

namespace sluice::control {
namespace {

std::string described(const std::string& function) {
  const engine::ElementType* const type = engine::find_element(function);
  return "function '" + function + "'" +
         (type == nullptr || type->origin.empty() ? "" : " of " + printable(type->origin));
}

bool is_plugin(const std::string& function) {
  const engine::ElementType* const type = engine::find_element(function);
  return type != nullptr && !type->origin.empty();
}

// Empty: nothing is wrong with it. A built-in function may have metrics of its parts, such as srtp's "rtsp_media".
std::string mistake_of(const std::string& function, std::string_view name) {
  const std::string prefix = function + "_";
  const bool has_own = !is_plugin(function) || (name.starts_with(prefix) && name.size() > prefix.size());
  if (is_name(name) && has_own) return {};
  return described(function) + ": its metric " + in_quotes(name) + ": " +
         (is_name(name) ? "the name has to begin with the function's, as '" + prefix + "...'" : std::string(name_rule));
}

// Calls f(function, metric) for all of one kind.
template <class Trait, class F>
void each_metric(const engine::Pipeline& pipeline, std::span<const std::string> chain, const F& f) {
  for (std::size_t e = 0; e < chain.size() && e < pipeline.elements().size(); ++e) {
    const auto* const trait = pipeline.elements()[e]->trait<Trait>();
    if (trait == nullptr) continue;
    try {
      for (auto& metric : trait->metrics()) f(chain[e], metric);
    } catch (...) {
      if (!is_plugin(chain[e])) throw;
      const std::string left_out = described(chain[e]) + ": its metrics are left out, because metrics() fails: ";
      warn_once(left_out + what_was_thrown(), left_out);
    }
  }
}

template <class Trait>
std::vector<MetricSnapshot> good_ones(const engine::Pipeline& pipeline, std::span<const std::string> chain) {
  std::vector<MetricSnapshot> all;
  each_metric<Trait>(pipeline, chain, [&](const std::string& function, const auto& metric) {
    if (const std::string mistake = mistake_of(function, metric.name); !mistake.empty()) {
      warn_once(mistake + "; it is left out", mistake);
      return;
    }
    all.push_back({std::string(metric.name), std::string(metric.text), metric.value, metric.counts});
  });
  return all;
}

}  // namespace

Expected<void> check_metrics(const engine::Pipeline& pipeline, std::span<const std::string> chain) {
  std::string first;
  std::set<std::string> names;
  each_metric<engine::Metrics>(pipeline, chain, [&](const std::string& function, const engine::Metric& metric) {
    std::string mistake = mistake_of(function, metric.name);
    if (mistake.empty() && !names.emplace(metric.name).second) {
      mistake = described(function) + ": its metric " + in_quotes(metric.name) + " is there twice";
    }
    if (first.empty()) first = std::move(mistake);
  });
  if (!first.empty()) return make_error("[engine] chain: " + first);
  return {};
}

std::vector<MetricSnapshot> element_metrics(const engine::Pipeline& pipeline, std::span<const std::string> chain) {
  return good_ones<engine::Metrics>(pipeline, chain);
}

std::vector<MetricSnapshot> service_metrics(const engine::Pipeline& pipeline, std::span<const std::string> chain) {
  return good_ones<engine::Service>(pipeline, chain);
}

void warn_once(const std::string& line, const std::string& about) {
  constexpr std::size_t most_remembered = 1000;  // of names that a function makes up as it goes on
  static std::mutex mutex;
  static std::set<std::string> said;
  {
    const std::lock_guard lock(mutex);
    if (said.size() == most_remembered || !said.insert(about).second) return;
  }
  spdlog::warn("{}", line);
}

}  // namespace sluice::control
