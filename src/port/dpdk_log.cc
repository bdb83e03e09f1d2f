#include "port/dpdk_log.h"

#include <rte_log.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice::port {
namespace {

spdlog::level::level_enum level_of(int dpdk) {
  if (dpdk <= static_cast<int>(RTE_LOG_ERR)) {
    return spdlog::level::err;
  }
  if (dpdk == static_cast<int>(RTE_LOG_WARNING)) {
    return spdlog::level::warn;
  }
  return dpdk <= static_cast<int>(RTE_LOG_INFO) ? spdlog::level::info : spdlog::level::debug;
}

struct Lines {
  std::mutex lock;  // of `keeps` and `kept`; the stream's orders the callers
  bool keeps = false;
  std::vector<DpdkLine> kept;
  std::string unfinished;

  void say(spdlog::level::level_enum level, std::string_view line) {
    {
      const std::lock_guard guard(lock);
      if (keeps) {
        kept.push_back({level, std::string(line)});
        return;
      }
    }
    spdlog::log(level, "DPDK: {}", line);
  }
};

// Never freed, as the stream: DPDK's threads may log to the end of the process.
Lines& lines() {
  static auto* const all = new Lines;
  return *all;
}

// DPDK flushes the stream behind each message, on the thread that logs and with its level still set.
ssize_t write_lines(void* cookie, const char* data, std::size_t size) {
  Lines& all = *static_cast<Lines*>(cookie);
  std::string& text = all.unfinished;
  text.append(data, size);
  const auto level = level_of(rte_log_cur_msg_loglevel());
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (end != begin) {
      all.say(level, std::string_view(text).substr(begin, end - begin));
    }
  }
  text.erase(0, begin);  // what is left waits for the rest of its line
  return static_cast<ssize_t>(size);
}

}  // namespace

void log_dpdk() {
  static std::FILE* const stream = [] {
    cookie_io_functions_t functions{};
    functions.write = write_lines;
    return fopencookie(&lines(), "w", functions);
  }();
  if (stream != nullptr) {
    rte_openlog_stream(stream);
  }
}

void keep_dpdk_lines(bool keep) {
  log_dpdk();
  const std::lock_guard guard(lines().lock);
  lines().keeps = keep;
}

std::vector<DpdkLine> take_dpdk_lines() {
  const std::lock_guard guard(lines().lock);
  return std::exchange(lines().kept, {});
}

}  // namespace sluice::port
