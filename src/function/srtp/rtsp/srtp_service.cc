#include "function/srtp/rtsp/srtp_service.h"

#include <spdlog/spdlog.h>

#include <mutex>
#include <utility>

#include "function/srtp/rtsp/profile_admission.h"
#include "function/srtp/rtsp/rtsp_proxy.h"
#include "function/srtp/srtp_notes.h"

namespace sluice::function::rtsp {
namespace {

constexpr std::chrono::seconds between_refused_raises{10};

void log_start(const RtspOptions& options, bool admits) {
  for (const std::string& note : media_notes(options, admits)) spdlog::warn("{}", note);
  if (!options.servers.empty()) {
    spdlog::info("rtsp: the proxy listens on the twins, for {} of servers",
                 options.servers.size() == 1 ? "one prefix" : std::to_string(options.servers.size()) + " prefixes");
  }
  for (const packet::IpAddress& own : options.listen) {
    spdlog::info("rtsp: clients open {}; its media use UDP ports {} to {}", own.str(), options.first_media_port,
                 options.last_media_port);
  }
}

class SrtpService final : public engine::Service {
 public:
  explicit SrtpService(MediaStreams& streams) : streams_(streams) {}

  Expected<void> open(const engine::ServicePlan& plan) override {
    log_warnings();
    if (plan.admission != nullptr) streams_.admit_by(*plan.admission, plan.deadline);
    return streams_.rtsp() == nullptr ? Expected<void>() : open_proxy(plan, *streams_.rtsp());
  }

  // What it has counted stays.
  void close() override {
    std::unique_ptr<RtspProxy> proxy;
    const std::lock_guard lock(mutex_);
    if (!proxy_) return;
    metrics_ = proxy_->metrics();
    proxy = std::move(proxy_);
  }

  // What was taken out, by whomever, and could not go at once because lanes were at it: keys are not kept for longer.
  // And what measured streams have brought; raises that are refused are counted, whether the log has them or not.
  void tick(std::chrono::steady_clock::time_point now) override {
    streams_.tidy(now);
    log_warnings();
    const std::string refused = streams_.measure();
    if (refused.empty() || now < next_refused_raise_) return;
    next_refused_raise_ = now + between_refused_raises;
    spdlog::warn("streams: {}", refused);
  }

  std::vector<engine::ServiceMetric> metrics() const override {
    const std::lock_guard lock(mutex_);
    return proxy_ ? proxy_->metrics() : metrics_;
  }
  std::vector<engine::Trouble> troubles() const override {
    const std::lock_guard lock(mutex_);
    std::string what = proxy_ ? proxy_->ailment() : "";
    return what.empty() ? std::vector<engine::Trouble>() : std::vector<engine::Trouble>{{std::move(what), ""}};
  }
  std::vector<std::uint32_t> kernel_tables() const override {
    if (streams_.rtsp() == nullptr) return {};
    return {streams_.rtsp()->table};
  }

 private:
  Expected<void> open_proxy(const engine::ServicePlan& plan, const RtspOptions& options) {
    std::unique_ptr<Admission> admission;
    if (plan.admission != nullptr) {
      MediumDeadlines deadlines = options.deadlines;
      deadlines.engine = plan.deadline;
      const auto tag = static_cast<std::uint32_t>(srtp::facts(options.suite).rtp_tag_length);
      admission = std::make_unique<ProfileAdmission>(*plan.admission, options, std::move(deadlines),
                                                     streams_.largest_frame() - tag);
    }
    auto proxy = RtspProxy::start(streams_, plan.twins, std::move(admission));
    if (!proxy) return tl::unexpected(proxy.error());
    log_start(options, plan.admission != nullptr && plan.admission->enforced());
    const std::lock_guard lock(mutex_);
    proxy_ = std::move(*proxy);
    return {};
  }

  void log_warnings() {
    for (const std::string& warning : streams_.take_warnings()) spdlog::warn("{}", warning);
  }

  MediaStreams& streams_;
  mutable std::mutex mutex_;                    // of both
  std::unique_ptr<RtspProxy> proxy_;            // null: there is to be none, or it has ended
  std::vector<engine::ServiceMetric> metrics_;  // as it ended
  std::chrono::steady_clock::time_point next_refused_raise_;
};

}  // namespace

std::unique_ptr<engine::Service> make_srtp_service(MediaStreams& streams) {
  return std::make_unique<SrtpService>(streams);
}

}  // namespace sluice::function::rtsp
