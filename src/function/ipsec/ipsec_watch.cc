#include "function/ipsec/ipsec_watch.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <chrono>

namespace sluice::function {
namespace {

constexpr std::chrono::milliseconds between_looks(100);
constexpr std::size_t most_looked_at = 4096, most_troubles = 3;

std::string name_of(const ipsec::SaSettings& sa) {
  return sa.name.empty() ? sa.id.str() : "\"" + sa.name + "\" (" + sa.id.str() + ")";
}

}  // namespace

IpsecWatch::~IpsecWatch() {
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
  databases_.set_events(nullptr);
}

Expected<void> IpsecWatch::start() {
  databases_.set_events(this);
  thread_ = std::thread([this] { run(); });
  return {};
}

void IpsecWatch::run() {
  pthread_setname_np(pthread_self(), "sluice-ipsec");
  while (!stopping_.load(std::memory_order_relaxed)) {
    databases_.tick(std::chrono::steady_clock::now());
    std::this_thread::sleep_for(between_looks);
  }
}

void IpsecWatch::acquire(const ipsec::Acquire& acquire) {
  spdlog::warn("ipsec: a packet that a policy protects ({}) has no SA", acquire.policy.selector.str());
}

void IpsecWatch::expired(const ipsec::SaStatus& sa, bool hard) {
  if (sa.state == ipsec::SaState::larval) return;
  spdlog::warn("ipsec: SA {} has reached its {} limit{}", name_of(sa.settings), hard ? "hard" : "soft",
               hard ? ", and carries nothing any more" : "");
}

void IpsecWatch::moved(const ipsec::SaStatus& sa, const packet::IpAddress& source, std::uint16_t port) {
  spdlog::info("ipsec: packets of SA {} come from {}{}", name_of(sa.settings), source.str(),
               port == 0 ? "" : " port " + std::to_string(port));
}

std::vector<engine::Trouble> IpsecWatch::troubles() const {
  std::vector<engine::Trouble> all;
  for (const ipsec::SaStatus& sa : databases_.sas(most_looked_at)) {
    if (sa.state != ipsec::SaState::dead || all.size() == most_troubles) continue;
    all.push_back({"ipsec: SA " + name_of(sa.settings) + " has reached its hard limit, and carries nothing any more",
                   "install another one in its place, or restart the gateway"});
  }
  return all;
}

}  // namespace sluice::function
