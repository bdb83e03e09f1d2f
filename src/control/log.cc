#include "control/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "control/log_file.h"

namespace sluice::control {
namespace {

constexpr const char* text_pattern = "%Y-%m-%d %H:%M:%S.%e %^%-5l%$ %v";

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& out) override {
    const auto since_epoch = message.time.time_since_epoch();
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(since_epoch);
    const auto millis = std::chrono::duration_cast<std::chrono::milliseconds>(since_epoch - seconds);
    std::tm utc{};
    const std::time_t time = seconds.count();
    gmtime_r(&time, &utc);
    char when[32];
    const std::size_t n = std::strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &utc);
    const nlohmann::ordered_json line = {
        {"time", fmt::format("{}.{:03}Z", std::string_view(when, n), millis.count())},
        {"level", std::string_view(spdlog::level::to_string_view(message.level).data())},
        {"message", std::string(message.payload.data(), message.payload.size())},
    };
    const std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
    out.append(text.data(), text.data() + text.size());
  }
  std::unique_ptr<formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

}  // namespace

Expected<void> set_up_log(const LogOptions& options) {
  std::shared_ptr<spdlog::sinks::sink> sink;
  if (options.file.empty()) {
    sink = std::make_shared<spdlog::sinks::stderr_color_sink_mt>();
  } else {
    auto file = LogFile::open(options.file);
    if (!file) return make_error("[log] file = \"" + options.file + "\": " + file.error().message);
    sink = std::move(*file);
  }
  auto logger = std::make_shared<spdlog::logger>("sluice", std::move(sink));
  if (options.format == "json") {
    logger->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    logger->set_pattern(text_pattern);
  }
  logger->set_level(spdlog::level::from_str(options.level));
  logger->flush_on(spdlog::level::trace);
  spdlog::set_default_logger(std::move(logger));
  return {};
}

std::optional<std::uint64_t> LogLimiter::admit(Clock::time_point now) {
  const std::int64_t at = now.time_since_epoch().count();
  std::int64_t next = next_.load(std::memory_order_relaxed);
  while (at >= next) {
    if (next_.compare_exchange_weak(next, at + interval_.count(), std::memory_order_relaxed)) {
      return held_back_.exchange(0, std::memory_order_relaxed);
    }
  }
  held_back_.fetch_add(1, std::memory_order_relaxed);
  return std::nullopt;
}

}  // namespace sluice::control
