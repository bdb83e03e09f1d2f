// What the API asks of a gateway besides its snapshot, and what it changes in the chain.
#include <pthread.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <system_error>
#include <utility>

#include "base/units.h"
#include "control/gateway.h"
#include "control/gateway_snapshot.h"
#include "device/name.h"
#include "engine/view.h"

namespace sluice::control {
namespace {

constexpr std::chrono::minutes longest_answer(1);  // to who asks for a reset

}  // namespace

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

Expected<std::string> Gateway::reset_device(std::string_view device) {
  const auto gpus = engine_->gpus();
  std::size_t found = gpus.size();
  for (std::size_t g = 0; g < gpus.size() && found == gpus.size(); ++g) {
    const engine::Loss loss = engine_->gpu_loss(g).how();
    const bool may_return = loss != engine::Loss::none && loss != engine::Loss::hung;
    if (device.empty() ? may_return : device == device::gpu_name(gpus[g]->info().index)) found = g;
  }
  if (found == gpus.size()) {
    std::string names;
    for (const auto& gpu : gpus) names += (names.empty() ? "" : ", ") + device::gpu_name(gpu->info().index);
    if (names.empty()) return make_error("this gateway computes on cores alone");
    return make_error(device.empty() ? "no GPU is lost that could come back"
                                     : "there is no device '" + std::string(device) + "': " + names);
  }
  const auto answer = begin_reset(found);
  if (!answer) return tl::unexpected(answer.error());
  if (answer->wait_for(longest_answer) == std::future_status::ready) return answer->get();
  return make_error("the reset takes longer than a minute: the log says how it ends");
}

Expected<Gateway::ResetAnswer> Gateway::begin_reset(std::size_t gpu) {
  if (is_resetting_.exchange(true)) return make_error("another reset is at work: wait for its end");
  if (resetter_.joinable()) resetter_.join();
  auto promise = std::make_shared<std::promise<Expected<std::string>>>();
  ResetAnswer answer = promise->get_future().share();
  try {
    resetter_ = std::thread([this, gpu, promise] {
      pthread_setname_np(pthread_self(), "sluice-reset");
      auto said = reset_gpu(gpu);
      is_resetting_.store(false);  // first: who has the answer may ask for another one
      promise->set_value(std::move(said));
    });
  } catch (const std::system_error& error) {
    is_resetting_.store(false);
    return make_error(std::string("no thread for it: ") + error.what());
  }
  return answer;
}

Expected<std::string> Gateway::reset_gpu(std::size_t gpu) {
  const std::unique_lock lock(reload_mutex_, std::try_to_lock);
  if (!lock) return make_error("a reload is at work: wait for its end");
  const std::string name = device::gpu_name(engine_->gpus()[gpu]->info().index);
  const auto began = std::chrono::steady_clock::now();
  Expected<void> done;
  try {
    done = engine_->reset_device(gpu);
  } catch (const std::exception& error) {
    done = make_error(error.what());
  }
  if (!done) {
    spdlog::error("{} cannot be reset: {}", name, done.error().message);
    return make_error(name + ": " + done.error().message);
  }
  const auto took = std::chrono::steady_clock::now() - began;
  const std::string text = name + " takes part again, after a reset of " +
                           duration_text(std::chrono::duration_cast<std::chrono::milliseconds>(took));
  spdlog::info("{}", text);
  return text;
}

}  // namespace sluice::control
