#include "function/ipsec/moved_log.h"

#include "base/units.h"

namespace sluice::function {

void MovedLog::moved(const ipsec::SaId& id, const std::string& name, const packet::IpAddress& source,
                     std::uint16_t port, Time now) {
  tick(now);
  const std::string from = source.str() + (port == 0 ? "" : " port " + std::to_string(port));
  if (now >= until_) {
    until_ = now + together;
    log_("packets of SA " + name + " come from " + from);
    return;
  }
  Last& last = held_[id];
  last.name = name;
  last.from = from;
  ++last.times;
}

void MovedLog::tick(Time now) {
  if (held_.empty() || now < until_) return;
  flush();
  until_ = now + together;
}

void MovedLog::flush() {
  if (held_.empty()) return;
  std::string text;
  std::size_t named = 0;
  for (const auto& [id, last] : held_) {
    if (++named > most_named) break;
    text += (text.empty() ? "" : ", ") + last.name + " from " + last.from;
    if (last.times > 1) text += " (the last of " + std::to_string(last.times) + ")";
  }
  if (held_.size() > most_named) text += ", and " + std::to_string(held_.size() - most_named) + " more";
  log_("packets of " + counted_text(held_.size(), "SA") + " came from other addresses meanwhile: " + text);
  held_.clear();
}

}  // namespace sluice::function
