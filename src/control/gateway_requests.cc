// What the API asks of a gateway besides its snapshot, and what it changes in the chain.
#include <spdlog/spdlog.h>

#include <utility>

#include "control/gateway.h"
#include "control/gateway_snapshot.h"
#include "engine/counted_rules.h"
#include "engine/named_sets.h"
#include "engine/view.h"

namespace sluice::control {

Expected<RouteTable> Gateway::routes(const RouteQuery& query) {
  if (routing_ == nullptr) {
    return make_error("the chain of this gateway has no routes: it is not a router");
  }
  return list_routes(routing_->table(), engine_->port_table(), query);
}

Expected<std::vector<NeighbourRow>> Gateway::neighbours() {
  if (routing_ == nullptr) {
    return make_error("the chain of this gateway has no neighbours: it is not a router");
  }
  std::vector<NeighbourRow> rows;
  for (const function::NeighbourRow& row : routing_->table().neighbours()) {
    rows.push_back({engine_->port_table()[row.port].name, row.address.str(), row.mac.str()});
  }
  return rows;
}

Expected<AclTable> Gateway::acl(std::uint32_t limit) {
  const engine::CountedRules* const rules = engine_->pipeline().first<engine::CountedRules>();
  if (rules == nullptr) return make_error("the chain of this gateway has no ACL rules: \"acl\" is not in it");
  return list_rules(*rules, limit);
}

Expected<engine::NamedSets*> Gateway::named_sets() {
  engine::NamedSets* const sets = engine_->pipeline().first<engine::NamedSets>();
  if (sets == nullptr) return make_error("the chain of this gateway has no sets of ACL rules: \"acl\" is not in it");
  return sets;
}

Expected<std::vector<AclSetRow>> Gateway::acl_sets(const std::string& name, std::uint32_t limit) {
  return named_sets().and_then([&](auto* sets) -> Expected<std::vector<AclSetRow>> {
    auto found = sets->list_sets(name, limit);
    if (!found) return tl::unexpected(found.error());
    std::vector<AclSetRow> rows;
    for (auto& one : *found) {
      rows.push_back({std::move(one.name), std::move(one.type), one.count, one.uses, one.changed, std::move(one.file),
                      std::move(one.entries)});
    }
    return rows;
  });
}

// A reload makes sets anew.
Expected<std::string> Gateway::add_to_set(const std::string& name, const std::vector<std::string>& entries) {
  const std::lock_guard lock(reload_mutex_);
  return named_sets().and_then([&](auto* sets) { return sets->add_to_set(name, entries); });
}

Expected<std::string> Gateway::remove_from_set(const std::string& name, const std::vector<std::string>& entries) {
  const std::lock_guard lock(reload_mutex_);
  return named_sets().and_then([&](auto* sets) { return sets->remove_from_set(name, entries); });
}

Expected<function::MediaStreams*> Gateway::media_streams() {
  function::MediaStreams* const streams = engine_->pipeline().first<function::MediaStreams>();
  if (streams == nullptr) return make_error("the chain of this gateway has no SRTP streams: \"srtp\" is not in it");
  return streams;
}

Expected<StreamTable> Gateway::streams(const StreamQuery& query) {
  const auto streams = media_streams();
  if (!streams) return tl::unexpected(streams.error());
  return list_streams(**streams, query);
}

Expected<function::StreamChange> Gateway::add_stream(const std::string& text) {
  return media_streams().and_then([&](auto* streams) { return streams->add_text(text, "the request"); });
}

Expected<function::StreamChange> Gateway::remove_stream(const std::string& text) {
  return media_streams().and_then([&](auto* streams) { return streams->remove_text(text, "the request"); });
}

Expected<function::StreamChange> Gateway::replace_stream(const std::string& text) {
  return media_streams().and_then([&](auto* streams) { return streams->replace_text(text, "the request"); });
}

Expected<function::StreamChange> Gateway::release_stream(const std::string& text) {
  return media_streams().and_then([&](auto* streams) { return streams->release_text(text, "the request"); });
}

Expected<std::unique_ptr<CaptureStream>> Gateway::capture(const CaptureRequest& request) {
  auto stream = open_capture(*engine_, request, [this] { return loading_.stopped(); });
  if (stream) spdlog::info("capture: of {}{}{}", request.target, request.filter.empty() ? "" : ": ", request.filter);
  return stream;
}

std::string Gateway::config() {
  const std::lock_guard lock(in_force_mutex_);
  return in_force_;
}

std::vector<FunctionRow> Gateway::functions() {
  std::vector<FunctionRow> rows;
  for (std::size_t e = 0; e < config_.engine.chain.size(); ++e) {
    const engine::ElementType& type = *engine::find_element(config_.engine.chain[e]);
    const auto* const view = engine_->pipeline().elements()[e]->trait<engine::View>();
    rows.push_back({std::string(type.name), std::string(type.text), type.origin.empty() ? "built in" : type.origin,
                    view == nullptr ? std::string() : view->view()});
  }
  return rows;
}

}  // namespace sluice::control
