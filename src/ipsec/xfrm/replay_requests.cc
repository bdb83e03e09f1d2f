// What concerns an SA's numbers and counts, and its moves.
#include <algorithm>
#include <cerrno>

#include "ipsec/xfrm/requests.h"

namespace sluice::ipsec::xfrm {

// A number cannot be set in an SA that is there, so that a new one takes its place.
Result<void> Requests::replace(const SaId& old, SaSettings settings, const ReplayState& replay,
                               const xfrm_lifetime_cur& before) {
  settings.sequence = settings.direction == Direction::out ? replay.sent : replay.received;
  const SaSettings left = continued(settings, before);
  if (settings.id == old) database_.remove(old);
  const auto done = database_.add(left);
  if (!done) {
    forget(old);
    database_.remove(old);
    return refuse(EINVAL, done.error().message);
  }
  if (settings.id != old) database_.remove(old);
  forget(old);
  keep(settings, before);
  return {};
}

Result<void> Requests::new_replay(const Request& request) {
  xfrm_aevent_id event;
  if (!load_front(request.body, event)) return refuse(EINVAL, "the message is too short");
  const auto attributes = Attributes::read(behind(request.body, sizeof event));
  if (!attributes) return tl::unexpected(attributes.error());
  if ((request.header.nlmsg_flags & NLM_F_REPLACE) == 0) return refuse(EINVAL, "NEWAE needs NLM_F_REPLACE");
  const auto found = read_sa_id(event.sa_id).and_then([&](const SaId& id) { return changeable(id); });
  if (!found) return tl::unexpected(found.error());
  const bool has_replay = attributes->has(XFRMA_REPLAY_VAL) || attributes->has(XFRMA_REPLAY_ESN_VAL);
  const auto used = attributes->value<xfrm_lifetime_cur>(XFRMA_LTIME_VAL);
  if (!has_replay && !used) {
    const bool thresholds = attributes->has(XFRMA_REPLAY_THRESH) || attributes->has(XFRMA_ETIMER_THRESH);
    return thresholds ? Result<void>{} : refuse(EINVAL, "NEWAE says nothing");
  }
  if (found->kept == nullptr) return refuse(EPERM, "the SA " + found->settings().id.str() + " is not of this daemon");
  ReplayState replay{found->status.counters.sequence, found->status.counters.sequence};
  if (has_replay) {
    const auto read = read_replay(*attributes);
    if (!read) return tl::unexpected(read.error());
    replay = *read;
  }
  const SaSettings settings = found->settings();
  return replace(settings.id, settings, replay, used ? *used : plus(found->status.counters, found->before()));
}

Result<void> Requests::get_replay(const Request& request) {
  xfrm_aevent_id event;
  if (!load_front(request.body, event)) return refuse(EINVAL, "the message is too short");
  const auto found = read_sa_id(event.sa_id).and_then([&](const SaId& id) { return known(id); });
  if (!found) return tl::unexpected(found.error());
  const SaSettings& settings = found->settings();
  event.sa_id = sa_id(settings.id);
  event.saddr = bytes_of(settings.source);
  event.reqid = settings.reqid;
  Message message = request.reply(XFRM_MSG_NEWAE);
  message.body(event);
  write_replay(message, settings, found->status.counters);
  message.attribute(XFRMA_LTIME_VAL, plus(found->status.counters, found->before()));
  request.answer.messages.push_back(std::move(message));
  return {};
}

// Numbers and counts go with them.
Result<void> Requests::move_sas(const Move& move, const std::optional<UdpPorts>& udp) {
  std::vector<SaId> ids;
  for (const auto& [id, kept] : kept_) {
    const SaSettings& settings = kept.settings;
    if (id.protocol == move.protocol && settings.mode == move.mode && id.destination == move.old_destination &&
        settings.source == move.old_source && (move.reqid == 0 || settings.reqid == move.reqid)) {
      ids.push_back(id);
    }
  }
  for (const SaId& id : ids) {
    const auto found = known(id);
    if (!found) continue;
    SaSettings settings = found->settings();
    settings.id.destination = move.new_destination;
    settings.source = move.new_source;
    if (udp) settings.udp = udp;
    if (settings.id == id) {
      const auto done = database_.update(continued(settings, found->before()));
      if (!done) return refuse(EINVAL, done.error().message);
      keep(settings, xfrm_lifetime_cur(found->before()));
      continue;
    }
    const ReplayState replay{found->status.counters.sequence, found->status.counters.sequence};
    const auto done = replace(id, settings, replay, plus(found->status.counters, found->before()));
    if (!done) return done;
  }
  return {};
}

}  // namespace sluice::ipsec::xfrm
