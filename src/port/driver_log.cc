#include "port/driver_log.h"

#include <rte_log.h>

#include <cstdlib>
#include <sstream>

namespace sluice::port {

DriverLog::DriverLog() : stream_(open_memstream(&text_, &length_)) {
  if (stream_ != nullptr) {
    rte_openlog_stream(stream_);
  }
}

DriverLog::~DriverLog() {
  if (stream_ == nullptr) {
    return;
  }
  rte_openlog_stream(nullptr);
  std::fclose(stream_);
  if (length_ != 0) {
    std::fwrite(text_, 1, length_, rte_log_get_stream());
  }
  std::free(text_);
}

std::string DriverLog::take() {
  if (stream_ == nullptr) {
    return "";
  }
  std::fflush(stream_);
  std::istringstream lines(std::string(text_, length_));
  std::rewind(stream_);
  std::string words;
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && !line.starts_with("EAL:") && !line.starts_with("vdev_probe()")) {
      words += (words.empty() ? "" : "; ") + line;
    }
  }
  return words;
}

}  // namespace sluice::port
