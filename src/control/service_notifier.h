// What a service manager is sent of the gateway: systemd's notification protocol (sd_notify(3)), datagrams of lines
// "NAME=value" to the unix socket that $NOTIFY_SOCKET names. Without that variable nothing is sent.
//
//   READY=1       it forwards: twins are there and up, with the addresses of the configuration, and the API answers
//   RELOADING=1   a reload is at work; READY=1 again when it is over, whatever came of it
//   STOPPING=1    it ends
//   WATCHDOG=1    its control thread lives, twice in each $WATCHDOG_USEC
//   EXTEND_TIMEOUT_USEC=...   a big table is still being loaded
//   STATUS=...    a line for `systemctl status`
//
// Thread-safety: any thread. Cost: one system call for what is sent.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>

namespace sluice::control {

class ServiceNotifier {
 public:
  using Clock = std::chrono::steady_clock;
  // Of this process's environment.
  ServiceNotifier();
  // `socket`: empty: nobody listens. `watchdog`: 0: nobody waits for signs of life.
  ServiceNotifier(std::string socket, std::chrono::microseconds watchdog);

  // Whether anybody listens.
  explicit operator bool() const { return !socket_.empty(); }

  void ready(const std::string& status) const;
  void reloading() const;
  void stopping() const;
  // What the gateway does now, as it changes.
  void status(const std::string& text) const;
  // While it starts: asks for more time, when the last call is some seconds ago.
  void loading(Clock::time_point now, const std::string& what);
  // Of the control thread, some times a second: sends WATCHDOG=1 when that is due.
  void alive(Clock::time_point now);

 private:
  void send(const std::string& lines) const;

  std::string socket_;
  std::chrono::microseconds watchdog_{0};
  std::atomic<std::int64_t> next_extension_{0}, next_sign_{0};  // of the clock
};

}  // namespace sluice::control
