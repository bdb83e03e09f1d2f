#include "function/ipsec/ipsec_watch.h"

#include <pthread.h>
#include <spdlog/spdlog.h>

#include <chrono>

#include "function/ipsec/own_addresses.h"

namespace sluice::function {
namespace {

constexpr std::chrono::milliseconds between_looks(100);
constexpr std::int64_t remembered = 60;  // seconds: a policy asks again after 30
constexpr std::size_t most_looked_at = 4096, most_troubles = 3;

std::int64_t seconds_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string name_of(const ipsec::SaSettings& sa) {
  return sa.name.empty() ? sa.id.str() : "\"" + sa.name + "\" (" + sa.id.str() + ")";
}

}  // namespace

IpsecWatch::IpsecWatch(ipsec::Databases& databases, std::string ike_socket)
    : databases_(databases),
      ike_socket_(std::move(ike_socket)),
      moved_log_([](const std::string& line) { spdlog::info("ipsec: {}", line); }) {}

IpsecWatch::~IpsecWatch() {
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
  moved_log_.flush();
  databases_.set_events(nullptr);  // before the server ends
}

Expected<void> IpsecWatch::start() {
  if (!ike_socket_.empty()) {
    auto server = ipsec::xfrm::Server::start(
        databases_, ike_socket_,
        {.is_local = [](const packet::IpAddress& address) { return own_addresses().contains(address); },
         .log = [](const std::string& line) { spdlog::warn("ipsec: {}", line); },
         .now = {}});
    if (!server) return make_error("[ipsec] ike_socket = \"" + ike_socket_ + "\": " + server.error().message);
    server_ = std::move(*server);
    spdlog::info("ipsec: an IKE daemon finds the databases at {}", ike_socket_);
  }
  databases_.set_events(this);
  thread_ = std::thread([this] { run(); });
  return {};
}

void IpsecWatch::run() {
  pthread_setname_np(pthread_self(), "sluice-ipsec");
  while (!stopping_.load(std::memory_order_relaxed)) {
    const auto now = std::chrono::steady_clock::now();
    databases_.tick(now);
    moved_log_.tick(now);
    std::this_thread::sleep_for(between_looks);
  }
}

void IpsecWatch::acquire(const ipsec::Acquire& acquire) {
  if (server_) server_->acquire(acquire);
  if (has_daemon()) return;
  if (server_) alone_at_.store(seconds_now(), std::memory_order_relaxed);
  spdlog::warn("ipsec: a packet that a policy protects ({}) has no SA{}", acquire.policy.selector.str(),
               server_ ? ", and no IKE daemon is connected to " + ike_socket_ : "");
}

void IpsecWatch::expired(const ipsec::SaStatus& sa, bool hard) {
  if (server_) server_->expired(sa, hard);
  if (sa.state == ipsec::SaState::larval || (server_ && !hard)) return;  // the daemon takes care of it
  spdlog::warn("ipsec: SA {} has reached its {} limit{}", name_of(sa.settings), hard ? "hard" : "soft",
               hard ? ", and carries nothing any more" : "");
}

void IpsecWatch::moved(const ipsec::SaStatus& sa, const packet::IpAddress& source, std::uint16_t port) {
  if (server_) server_->moved(sa, source, port);
  moved_log_.moved(sa.settings.id, name_of(sa.settings), source, port, std::chrono::steady_clock::now());
}

std::vector<engine::Trouble> IpsecWatch::troubles() const {
  std::vector<engine::Trouble> all;
  const std::int64_t alone_at = alone_at_.load(std::memory_order_relaxed);
  if (alone_at != 0 && seconds_now() - alone_at < remembered && !has_daemon()) {
    all.push_back({"ipsec: packets that policies protect have no SA, and no IKE daemon is connected to " + ike_socket_,
                   "start the daemon with sluice-xfrm.so (docs/ipsec-ike.md)"});
  }
  for (const ipsec::SaStatus& sa : databases_.sas(most_looked_at)) {
    if (sa.state != ipsec::SaState::dead || all.size() == most_troubles) continue;
    all.push_back({"ipsec: SA " + name_of(sa.settings) + " has reached its hard limit, and carries nothing any more",
                   "install another one in its place, or restart the gateway"});
  }
  return all;
}

}  // namespace sluice::function
