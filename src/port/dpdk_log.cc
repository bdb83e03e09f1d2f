#include "port/dpdk_log.h"

#include <rte_log.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <string>
#include <string_view>

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

// DPDK flushes the stream behind each message, on the thread that logs and with its level still set. The stream's lock
// orders the callers.
ssize_t write_lines(void* cookie, const char* data, std::size_t size) {
  std::string& text = *static_cast<std::string*>(cookie);
  text.append(data, size);
  const auto level = level_of(rte_log_cur_msg_loglevel());
  std::size_t begin = 0;
  for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (end != begin) {
      spdlog::log(level, "DPDK: {}", std::string_view(text).substr(begin, end - begin));
    }
  }
  text.erase(0, begin);  // what is left waits for the rest of its line
  return static_cast<ssize_t>(size);
}

}  // namespace

void log_dpdk() {
  // Never closed: DPDK may log to the end of the process.
  static auto* const unfinished = new std::string;
  static std::FILE* const stream = [] {
    cookie_io_functions_t functions{};
    functions.write = write_lines;
    return fopencookie(unfinished, "w", functions);
  }();
  if (stream != nullptr) {
    rte_openlog_stream(stream);
  }
}

}  // namespace sluice::port
