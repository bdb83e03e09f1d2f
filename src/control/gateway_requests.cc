// What the API asks of a gateway besides its snapshot, and what it changes in the chain.
#include <spdlog/spdlog.h>

#include <algorithm>
#include <utility>

#include "control/gateway.h"
#include "control/gateway_snapshot.h"
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

engine::ApiAnswer Gateway::ask(const engine::ElementType& type, const engine::ApiRoute& route,
                               const engine::ApiRequest& request) {
  const auto place = std::ranges::find(config_.engine.chain, type.name);
  if (place == config_.engine.chain.end()) {
    return engine::refused(engine::conflict, "the chain of this gateway has no " + route.what + ": \"" +
                                                 std::string(type.name) + "\" is not in it");
  }
  std::unique_lock lock(reload_mutex_, std::defer_lock);
  if (route.waits_for_reload) lock.lock();
  return route.answer(*engine_->pipeline().elements()[place - config_.engine.chain.begin()], request);
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
