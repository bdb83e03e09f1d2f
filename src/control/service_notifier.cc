#include "control/service_notifier.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <utility>

namespace sluice::control {
namespace {

constexpr std::chrono::seconds between_extensions{5}, extension{60};

std::uint64_t number_of(const char* variable) {
  const char* const text = std::getenv(variable);
  if (text == nullptr) return 0;
  const std::string_view digits(text);
  std::uint64_t value = 0;
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return problem == std::errc{} && end == digits.data() + digits.size() ? value : 0;
}

// A path, or an abstract name behind "@"; other kinds (vsock) are of virtual machines.
std::string socket_of_environment() {
  const char* const name = std::getenv("NOTIFY_SOCKET");
  const std::string_view text = name == nullptr ? "" : name;
  const bool usable = (text.starts_with('/') || text.starts_with('@')) && text.size() < sizeof(sockaddr_un::sun_path);
  return std::string(usable ? text : "");
}

// For this process, where a process is named.
std::chrono::microseconds watchdog_of_environment() {
  const std::uint64_t process = number_of("WATCHDOG_PID");
  if (process != 0 && process != static_cast<std::uint64_t>(getpid())) return {};
  return std::chrono::microseconds(number_of("WATCHDOG_USEC"));
}

bool is_due(std::atomic<std::int64_t>& next, ServiceNotifier::Clock::time_point now,
            std::chrono::nanoseconds interval) {
  const std::int64_t at = now.time_since_epoch().count();
  std::int64_t due = next.load(std::memory_order_relaxed);
  return at >= due && next.compare_exchange_strong(due, at + interval.count(), std::memory_order_relaxed);
}

// One line of the protocol.
std::string line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

}  // namespace

ServiceNotifier::ServiceNotifier() : ServiceNotifier(socket_of_environment(), watchdog_of_environment()) {}

ServiceNotifier::ServiceNotifier(std::string socket, std::chrono::microseconds watchdog)
    : socket_(std::move(socket)), watchdog_(watchdog) {}

void ServiceNotifier::ready(const std::string& status) const {
  send("READY=1\nSTATUS=" + line(status));
}

void ServiceNotifier::reloading() const {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t microseconds = now.tv_sec * 1'000'000 + now.tv_nsec / 1000;
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(microseconds) + "\nSTATUS=reads its configuration again");
}

void ServiceNotifier::stopping() const {
  send("STOPPING=1\nSTATUS=ends");
}

void ServiceNotifier::status(const std::string& text) const {
  send("STATUS=" + line(text));
}

void ServiceNotifier::loading(Clock::time_point now, const std::string& what) {
  if (socket_.empty() || !is_due(next_extension_, now, between_extensions)) return;
  send("EXTEND_TIMEOUT_USEC=" + std::to_string(std::chrono::microseconds(extension).count()) +
       "\nSTATUS=starts: " + line(what));
}

void ServiceNotifier::alive(Clock::time_point now) {
  if (watchdog_.count() != 0 && is_due(next_sign_, now, watchdog_ / 2)) send("WATCHDOG=1");
}

// Nobody who does not listen any more keeps the gateway from its work.
void ServiceNotifier::send(const std::string& lines) const {
  if (socket_.empty()) return;
  const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socket_.copy(address.sun_path, sizeof address.sun_path - 1);
  if (socket_[0] == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket_.size());
  sendto(fd, lines.data(), lines.size(), MSG_NOSIGNAL | MSG_DONTWAIT, reinterpret_cast<const sockaddr*>(&address),
         length);
  close(fd);
}

}  // namespace sluice::control
