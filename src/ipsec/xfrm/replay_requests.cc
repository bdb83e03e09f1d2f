// What concerns an SA's numbers and counts, and its moves.
#include <algorithm>
#include <cerrno>

#include "crypto/secret.h"
#include "ipsec/xfrm/requests.h"

namespace sluice::ipsec::xfrm {
namespace {

// More than an SA sends between the look at its number and its end: 10 ms at 100 million a second.
constexpr std::uint64_t leap = 1U << 20;
constexpr std::uint64_t last_short_number = 0xffffffff;

// From which an SA goes on that another one with its key has sent up to `last`, and may still.
std::uint64_t sent_from(const SaSettings& settings, std::uint64_t wanted, std::uint64_t last) {
  if (last == 0) return wanted;
  const std::uint64_t from = std::max(wanted, last + leap);
  return settings.esn ? from : std::min(from, last_short_number);
}

bool same_bytes(const SecretKey& a, const SecretKey& b) {
  return a.length == b.length && crypto::equal(a.bytes.bytes, b.bytes.bytes, a.length);
}

bool same_keys(const Transform& a, const Transform& b) {
  return a.cipher == b.cipher && a.hash == b.hash && a.icv_length == b.icv_length &&
         same_bytes(a.cipher_key, b.cipher_key) && same_bytes(a.salt, b.salt) && same_bytes(a.auth_key, b.auth_key);
}

// What update() of the Database changes is all that is different.
bool is_same_but_place(const SaSettings& a, const SaSettings& b) {
  return a.id == b.id && a.mode == b.mode && a.reqid == b.reqid && a.esn == b.esn &&
         a.replay_window == b.replay_window && a.dont_fragment == b.dont_fragment && a.copy_dscp == b.copy_dscp &&
         a.ecn == b.ecn && a.pad_to == b.pad_to;
}

}  // namespace

bool Requests::moves(const SaId& id) const {
  return std::any_of(moving_.begin(), moving_.end(), [&](const auto& one) { return one.first == id; });
}

void Requests::end_move(const SaId& id) {
  std::erase_if(moving_, [&](const auto& one) { return one.first == id; });
}

void Requests::finish_moves(Time now) {
  std::vector<SaId> over;
  for (const auto& [id, until] : moving_) {
    if (until <= now) over.push_back(id);
  }
  for (const SaId& id : over) {
    forget(id);
    database_.remove(id);
  }
}

std::optional<SaId> Requests::moved_from(const SaSettings& settings) const {
  for (const auto& [id, until] : moving_) {
    const auto kept = kept_.find(id);
    if (id.spi == settings.id.spi && id.protocol == settings.id.protocol && kept != kept_.end() &&
        same_keys(kept->second.settings.transform, settings.transform)) {
      return id;
    }
  }
  return std::nullopt;
}

Result<void> Requests::go_on(const SaId& old, const SaRequest& request) {
  end_move(old);
  const auto found = known(old);
  if (!found) return tl::unexpected(found.error());
  SaSettings settings = request.settings;
  settings.direction = found->settings().direction;
  if (is_same_but_place(settings, found->settings())) {
    const xfrm_lifetime_cur before = found->before();
    const auto done = database_.update(continued(settings, before));
    if (!done) return refuse(EINVAL, done.error().message);
    keep(settings, before);
    return {};
  }
  const ReplayState last{found->status.counters.sequence, found->status.counters.sequence};
  return replace(old, settings, last, plus(found->status.counters, found->before()));
}

// A number cannot be set in an SA that is there, so that a new one takes its place.
Result<void> Requests::replace(const SaId& old, SaSettings settings, const ReplayState& replay,
                               const xfrm_lifetime_cur& before) {
  settings.sequence = replay.received;
  if (settings.direction == Direction::out) {
    const auto status = database_.sa(old);
    settings.sequence = sent_from(settings, replay.sent, status ? status->counters.sequence : 0);
  }
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
  asked_ = settings.id;
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
    auto done = replace(id, settings, replay, plus(found->status.counters, found->before()));
    if (!done) return done;
  }
  return {};
}

}  // namespace sluice::ipsec::xfrm
