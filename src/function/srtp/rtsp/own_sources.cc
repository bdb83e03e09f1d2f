#include "function/srtp/rtsp/own_sources.h"

#include <spdlog/spdlog.h>

#include <fstream>

namespace sluice::function::rtsp {
namespace {

bool write_to(const std::string& file, char value) {
  std::ofstream out(file);
  out << value << std::flush;
  return out.good();
}

}  // namespace

OwnSources::OwnSources(const std::vector<std::string>& twins) {
  for (const std::string& twin : twins) {
    const std::string file = "/proc/sys/net/ipv4/conf/" + twin + "/accept_local";
    char before = '0';
    std::ifstream(file) >> before;
    if (before != '0') continue;
    if (write_to(file, '1')) {
      changed_.push_back(file);
    } else {
      spdlog::warn(
          "rtsp: cannot write to {}: set net.ipv4.conf.{}.accept_local=1, or media for a client whose neighbour entry "
          "is gone are dropped until it is resolved",
          file, twin);
    }
  }
}

OwnSources::~OwnSources() {
  for (const std::string& file : changed_) write_to(file, '0');
}

}  // namespace sluice::function::rtsp
