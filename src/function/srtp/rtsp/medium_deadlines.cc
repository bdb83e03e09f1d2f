#include "function/srtp/rtsp/medium_deadlines.h"

#include "engine/stream_admission.h"

namespace sluice::function::rtsp {
namespace {

constexpr auto none = std::chrono::nanoseconds(0);

DeadlineKeys read_keys(Settings& settings) {
  DeadlineKeys read;
  for (std::size_t i = 0; i < DeadlineKeys::keys.size(); ++i) {
    read.values[i] = settings.duration(DeadlineKeys::keys[i].name, none);
  }
  return read;
}

bool check_keys(Settings& settings, std::chrono::nanoseconds bound) {
  const DeadlineKeys read = read_keys(settings);
  bool good = true;
  for (std::size_t i = 0; i < DeadlineKeys::keys.size(); ++i) {
    if (read.values[i] == none || read.values[i] > bound) continue;
    const engine::StreamAnswer answer{
        engine::StreamVerdict::too_soon, {.deadline = read.values[i]}, {.bound = bound}, 0};
    settings.error(DeadlineKeys::keys[i].name, answer.text());
    good = false;
  }
  return good;
}

}  // namespace

std::chrono::nanoseconds DeadlineKeys::of(std::string_view kind) const {
  for (std::size_t i = keys.size(); i-- > 0;) {
    if (values[i] != none && (keys[i].kind.empty() || keys[i].kind == kind)) return values[i];
  }
  return none;
}

std::chrono::nanoseconds MediumDeadlines::of(std::string_view kind, std::optional<std::size_t> server) const {
  if (server && *server < servers.size()) {
    if (const auto own = servers[*server].of(kind); own != none) return own;
  }
  const auto usual = all.of(kind);
  return usual != none ? usual : engine;
}

MediumDeadlines read_medium_deadlines(Settings& rtsp) {
  MediumDeadlines read;
  read.all = read_keys(rtsp);
  for (Settings& server : rtsp.sections("server")) read.servers.push_back(read_keys(server));
  return read;
}

bool check_medium_deadlines(Settings& rtsp, std::chrono::nanoseconds bound) {
  bool good = check_keys(rtsp, bound);
  for (Settings& server : rtsp.sections("server")) good = check_keys(server, bound) && good;
  return good;
}

}  // namespace sluice::function::rtsp
