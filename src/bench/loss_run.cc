#include "bench/loss_run.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "bench/frame_order.h"
#include "bench/progress.h"
#include "bench/saturated.h"

namespace sluice::cli::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds sampled_each(5);
constexpr double longest_notice_seconds = 30;
constexpr unsigned most_refresh = 100;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

bool changes_frames(const engine::Pipeline& pipeline) {
  return std::ranges::any_of(pipeline.elements(), [](const auto& element) {
    return element->template trait<engine::Recovery>() != nullptr ||
           element->shape().payloads == engine::Payloads::changed;
  });
}

class LossRun {
 public:
  explicit LossRun(const LossPlan& plan) : plan_(plan) {}

  Expected<LossFigures> run(const ChoiceChain& chain) {
    auto running = chain.run(plan_.device, [this](RigOptions& options) { put_in_front(options); });
    if (!running) return tl::unexpected(running.error());
    rig_ = &(*running)->rig();
    if (rig_->engine().gpu() == nullptr) return make_error("there is no GPU to lose");
    figures_.changes_frames = changes_frames(rig_->engine().pipeline());
    figures_.saturated = saturate(*rig_, plan_.seconds, plan_.settling);
    figures_.offered = plan_.offered > 0
                           ? plan_.offered
                           : plan_.load * static_cast<double>(figures_.saturated.frames) / figures_.saturated.seconds;
    if (auto ok = rig_->pause(); !ok) return tl::unexpected(ok.error());
    begin_ = stats();
    rig_->set_rate(figures_.offered);
    rig_->measure(plan_.settling, 0);
    figures_.before = rig_->measure(0, plan_.seconds);
    if (stats().total.frames_gpu == 0) return make_error("the GPU has computed nothing before it failed");
    if (auto ok = lose(); !ok) return tl::unexpected(ok.error());
    if (plan_.failure != Failure::endless) come_back();
    if (auto ok = rig_->pause(); !ok) return tl::unexpected(ok.error());
    rig_->engine().stop();
    count();
    if (order_->left() == 0) return make_error("no frame left that the order could be seen of");
    return figures_;
  }

 private:
  engine::EngineStats stats() const { return rig_->engine().stats(); }
  double ms(std::uint64_t ticks) const { return static_cast<double>(ticks) / rig_->engine().tsc_per_ns() / 1e6; }

  void put_in_front(RigOptions& options) {
    options.engine.admission = plan_.admission;
    // Frames that are refused come back out of turn, so some pass more often than others.
    options.refresh = std::min(options.refresh, most_refresh);
    options.in_front.emplace_back([this, lanes = options.lanes, frames = options.frames] {
      auto order = std::make_unique<FrameOrder>(lanes, frames);
      order_ = order.get();
      return order;
    });
    options.in_front.emplace_back([this] {
      auto device = std::make_unique<FailingDevice>();
      device_ = device.get();
      return device;
    });
  }

  void sample(double at, const engine::EngineStats& now) {
    SentSample one{at, {}};
    for (const auto& lane : now.lanes) one.sent.push_back(lane.tx_frames);
    samples_.push_back(std::move(one));
  }

  // The GPU fails now.
  Expected<void> lose() {
    const Progress progress("losing the GPU", plan_.seconds);
    engine::Engine& engine = rig_->engine();
    engine::EngineStats given_up;
    sample(0, stats());
    const auto failed = Clock::now();
    device_->fail(plan_.failure);
    double up = 0, at = 0;  // since the failure
    for (bool is_up = true; is_up || at - up < plan_.seconds;) {
      std::this_thread::sleep_for(sampled_each);
      engine::EngineStats now = stats();
      at = seconds_since(failed);
      sample(at, now);
      if (is_up && at > longest_notice_seconds) return make_error("the GPU has failed, and nobody gives it up");
      if (is_up && !now.gpu_up) {
        is_up = false;
        up = at;
        given_up = std::move(now);
        engine.look_at_devices();
      }
    }
    figures_.noticed_ms = 1e3 * up;
    figures_.after = outcome_between(given_up, stats(), at - up, 1e3 * engine.tsc_per_ns(), engine.options().mode);
    figures_.why = engine.gpu_loss(0).why();
    figures_.aside = stats().total.frames_aside;
    figures_.regained = regained(samples_, up);
    return {};
  }

  void come_back() {
    const auto began = Clock::now();
    if (auto ok = rig_->engine().reset_device(0); !ok) {
      figures_.why_not_back = ok.error().message;
      return;
    }
    figures_.is_back = true;
    figures_.reset_ms = 1e3 * seconds_since(began);
    figures_.back = rig_->measure(plan_.settling, plan_.seconds);
  }

  void count() {
    engine::EngineStats end = stats();
    figures_.unaccounted = end.imbalance() + static_cast<std::int64_t>(end.total.in_flight);
    figures_.longest_wait_ms = ms(rig_->engine().gpu_clock(0).longest_rescue.load());
    figures_.received = end.total.rx_frames - begin_.total.rx_frames;
    figures_.forwarded = end.total.tx_frames - begin_.total.tx_frames;
    figures_.missed = end.ports[0].device.missed - begin_.ports[0].device.missed;
    figures_.rescued = end.total.frames_rescued;
    figures_.out_of_order = order_->out_of_order();
    for (std::size_t reason = 0; reason < end.drops.size(); ++reason) end.drops[reason] -= begin_.drops[reason];
    figures_.refused = std::exchange(end.drops[engine::overdue], 0);
    figures_.device_lost = std::exchange(end.drops[engine::device_lost], 0);
    for (const std::uint64_t count : end.drops) figures_.others += count;
    figures_.others_text = drops_text(end);
  }

  const LossPlan& plan_;
  LossFigures figures_;
  Rig* rig_ = nullptr;
  FrameOrder* order_ = nullptr;
  FailingDevice* device_ = nullptr;
  engine::EngineStats begin_;
  std::vector<SentSample> samples_;
};

}  // namespace

Expected<LossFigures> measure_loss(const ChoiceChain& chain, const LossPlan& plan) {
  return LossRun(plan).run(chain);
}

Expected<Outcome> measure_saturated(const ChoiceChain& chain, const std::string& device, double seconds,
                                    double settling) {
  auto running = chain.run(device, {});
  if (!running) return tl::unexpected(running.error());
  const Outcome outcome = saturate((*running)->rig(), seconds, settling);
  if (auto ok = (*running)->finish(); !ok) return tl::unexpected(ok.error());
  return outcome;
}

void judge_loss(Goals& goals, const std::string& name, const LossFigures& figures) {
  const auto none = [&](const std::string& what, std::uint64_t count, const char* unit) {
    goals.at_most(name + ": " + what, static_cast<double>(count), 0, unit);
  };
  none("dropped, but for overdue and device_lost", figures.others, "frames");
  if (!figures.changes_frames) none("lost that can be computed again", figures.device_lost, "frames");
  none("out of order", figures.out_of_order, "frames");
  none("unaccounted for", static_cast<std::uint64_t>(std::abs(figures.unaccounted)), "frames");
  none("standing still afterwards", figures.regained.standing_still, "lanes");
  if (!figures.why_not_back.empty()) goals.without(name + ": taken again", figures.why_not_back);
  if (!figures.is_back) return;
  const auto share = [](double part, double of) { return of == 0 ? 0 : 100 * part / of; };
  const Outcome& back = figures.back;
  goals.at_least(name + ": of the frames behind the reset, computed by the GPU",
                 share(static_cast<double>(back.gpu_frames), static_cast<double>(back.gpu_frames + back.cpu_frames)),
                 90, "%");
  goals.at_least(name + ": carried behind the reset, of before", share(back.mpps(), figures.before.mpps()), 97, "%");
}

}  // namespace sluice::cli::bench
