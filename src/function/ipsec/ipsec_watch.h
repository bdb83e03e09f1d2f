// The thread that watches the databases of IPsec: lifetimes, SAs that are asked for, SAs that have moved. What happens
// it writes to the log, and to the IKE daemon if there is one.
//
// Thread-safety: start() and the end on the control thread; troubles() any thread.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/self_check.h"
#include "function/ipsec/moved_log.h"
#include "ipsec/databases.h"
#include "ipsec/xfrm/server.h"

namespace sluice::function {

class IpsecWatch final : public ipsec::Events {
 public:
  // `ike_socket`: where an IKE daemon finds the databases; empty: there is none.
  IpsecWatch(ipsec::Databases& databases, std::string ike_socket);
  ~IpsecWatch() override;
  IpsecWatch(const IpsecWatch&) = delete;
  IpsecWatch& operator=(const IpsecWatch&) = delete;

  Expected<void> start();
  // Of the daemon's side; null: there is none.
  const ipsec::xfrm::Server* server() const { return server_.get(); }
  // SAs that have ended with nobody to replace them, and packets that wait for a daemon that is not there.
  std::vector<engine::Trouble> troubles() const;

  void acquire(const ipsec::Acquire& acquire) override;
  void expired(const ipsec::SaStatus& sa, bool hard) override;
  void moved(const ipsec::SaStatus& sa, const packet::IpAddress& source, std::uint16_t port) override;

 private:
  void run();
  bool has_daemon() const { return server_ != nullptr && server_->counts().connections != 0; }

  ipsec::Databases& databases_;
  const std::string ike_socket_;
  std::unique_ptr<ipsec::xfrm::Server> server_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> alone_at_{
      0};               // seconds of the steady clock: when a packet wanted an SA of nobody; 0: never
  MovedLog moved_log_;  // of the thread
  std::thread thread_;
};

}  // namespace sluice::function
