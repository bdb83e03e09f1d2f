// What concerns SAs.
#include <algorithm>
#include <cerrno>
#include <limits>
#include <memory>
#include <utility>

#include "ipsec/xfrm/requests.h"

namespace sluice::ipsec::xfrm {
namespace {

constexpr std::size_t everything = std::numeric_limits<std::size_t>::max();
constexpr std::size_t often_enough = 1024;  // SAs between two looks for those that are gone
constexpr std::chrono::milliseconds move_patience(200);

// What is left of a limit; never 0, which is none.
std::uint64_t left_of(std::uint64_t limit, std::uint64_t used) {
  return limit == 0 ? 0 : limit > used ? limit - used : 1;
}
Limit left_of(const Limit& limit, std::uint64_t used) {
  return {left_of(limit.soft, used), left_of(limit.hard, used)};
}

bool matches(const xfrm_address_filter& filter, const SaSettings& settings) {
  const int family = ip_family(filter.family);
  if (family == 0) return true;
  const auto within = [&](const xfrm_address_t& bytes, unsigned length, const packet::IpAddress& address) {
    return packet::IpPrefix::of(packet::IpAddress::from_bytes(family, &bytes), length).contains(address);
  };
  return within(filter.saddr, filter.splen, settings.source) &&
         within(filter.daddr, filter.dplen, settings.id.destination);
}

}  // namespace

const xfrm_lifetime_cur& Requests::Known::before() const {
  static constexpr xfrm_lifetime_cur nothing{};
  return kept != nullptr ? kept->before : nothing;
}

Result<Requests::Known> Requests::known(const SaId& id) const {
  auto status = moves(id) ? std::nullopt : database_.sa(id);
  if (!status) return refuse(ESRCH, "there is no SA " + id.str());
  const auto kept = kept_.find(id);
  return Known{std::move(*status), kept == kept_.end() ? nullptr : &kept->second};
}

Result<Requests::Known> Requests::changeable(const SaId& id) const {
  auto found = known(id);
  if (found && !found->status.settings.name.empty()) {
    return refuse(EPERM, "the SA " + id.str() + " is of the configuration");
  }
  return found;
}

void Requests::keep(const SaSettings& settings, const xfrm_lifetime_cur& before) {
  forget(settings.id);
  if (kept_.size() >= std::max(look_at_, often_enough)) forget_gone();
  kept_.emplace(settings.id, KeptSa{settings, before});
  if (settings.reqid != 0) by_reqid_.emplace(settings.reqid, settings.id);
}

void Requests::forget(const SaId& id) {
  const auto found = kept_.find(id);
  end_move(id);
  if (found == kept_.end()) return;
  const auto [first, last] = by_reqid_.equal_range(found->second.settings.reqid);
  for (auto one = first; one != last; ++one) {
    if (one->second != id) continue;
    by_reqid_.erase(one);
    break;
  }
  kept_.erase(found);
}

// Others may have removed SAs from the Database: their keys go, too.
void Requests::forget_gone() {
  std::vector<SaId> gone;
  for (const auto& [id, kept] : kept_) {
    if (!database_.sa(id)) gone.push_back(id);
  }
  for (const SaId& id : gone) forget(id);
  look_at_ = 2 * kept_.size();
}

SaSettings Requests::continued(const SaSettings& settings, const xfrm_lifetime_cur& before) const {
  const auto since = [now = around_.now()](std::uint64_t time) { return time == 0 || time > now ? 0 : now - time; };
  SaSettings left = settings;
  left.lifetime.bytes = left_of(settings.lifetime.bytes, before.bytes);
  left.lifetime.packets = left_of(settings.lifetime.packets, before.packets);
  left.lifetime.seconds = left_of(settings.lifetime.seconds, since(before.add_time));
  left.lifetime.use_seconds = left_of(settings.lifetime.use_seconds, since(before.use_time));
  return left;
}

Direction Requests::direction_of(const SaRequest& request, const std::optional<SaStatus>& current) const {
  if (current) return current->settings.direction;
  if (request.direction) return *request.direction;
  return around_.is_local(request.settings.id.destination) ? Direction::in : Direction::out;
}

Result<void> Requests::new_sa(const Request& request) {
  auto read = read_sa(request.body);
  if (!read) return tl::unexpected(read.error());
  SaSettings& settings = read->settings;
  const bool updates = request.header.nlmsg_type == XFRM_MSG_UPDSA;
  if (const auto old = moved_from(settings); old && !updates) return go_on(*old, *read);
  if (moves(settings.id)) {
    forget(settings.id);
    database_.remove(settings.id);
  }
  const auto current = database_.sa(settings.id);
  const bool valid = current && current->state != SaState::larval;
  if (updates && !current) return refuse(ESRCH, "there is no SA " + settings.id.str());
  if (!updates && valid) return refuse(EEXIST, "there is an SA " + settings.id.str());
  if (current && !current->settings.name.empty()) {
    return refuse(EPERM, "the SA " + settings.id.str() + " is of the configuration");
  }
  settings.direction = direction_of(*read, current);
  if (read->direction && *read->direction != settings.direction) {
    return refuse(EINVAL, "the SA " + settings.id.str() + " is of the other direction");
  }
  xfrm_lifetime_cur before{};
  const auto kept = kept_.find(settings.id);
  if (valid && kept != kept_.end()) {  // what does not change
    before = kept->second.before;
    settings.transform = kept->second.settings.transform;
    settings.esn = kept->second.settings.esn;
    settings.replay_window = kept->second.settings.replay_window;
    settings.mode = kept->second.settings.mode;
    settings.reqid = kept->second.settings.reqid;
  } else {
    settings.sequence = settings.direction == Direction::out ? read->replay.sent : read->replay.received;
    before = read->used.value_or(xfrm_lifetime_cur{});
  }
  const SaSettings left = continued(settings, before);
  const auto done = current ? database_.update(left) : database_.add(left);
  if (!done) return refuse(EINVAL, done.error().message);
  keep(settings, before);
  return {};
}

Result<void> Requests::delete_sa(const Request& request) {
  xfrm_usersa_id bytes;
  if (!load_front(request.body, bytes)) return refuse(EINVAL, "the message is too short");
  const auto id = read_sa_id(bytes);
  if (!id) return tl::unexpected(id.error());
  const auto found = changeable(*id);
  if (found && found->kept != nullptr && asked_ == *id) {
    asked_.reset();
    moving_.emplace_back(*id, std::chrono::steady_clock::now() + move_patience);
    return {};
  }
  if (!moves(*id)) forget(*id);
  if (!found) return tl::unexpected(found.error());
  database_.remove(*id);
  return {};
}

Message Requests::sa_message(const Request& request, const Known& known, std::uint16_t flags) const {
  Message message = request.reply(XFRM_MSG_NEWSA, flags);
  if (known.status.state == SaState::larval) {
    message.body(sa_info(known.settings(), known.status.counters, known.before()));
  } else {
    write_sa(message, known.settings(), known.status.counters, known.before());
  }
  return message;
}

Result<void> Requests::get_sa(const Request& request) {
  xfrm_usersa_id bytes;
  if (!load_front(request.body, bytes)) return refuse(EINVAL, "the message is too short");
  const auto found = read_sa_id(bytes).and_then([&](const SaId& id) { return known(id); });
  if (!found) return tl::unexpected(found.error());
  request.answer.messages.push_back(sa_message(request, *found, 0));
  return {};
}

Result<void> Requests::dump_sas(const Request& request) {
  const auto attributes = Attributes::read(request.body);  // without a fixed part
  const auto filter = attributes ? attributes->value<xfrm_address_filter>(XFRMA_ADDRESS_FILTER) : std::nullopt;
  const auto protocol = attributes ? attributes->value<std::uint8_t>(XFRMA_PROTO) : std::nullopt;
  auto all = std::make_shared<std::vector<SaStatus>>(database_.sas(everything));
  request.answer.dump = [this, all, filter, protocol, next = std::size_t{0}, header = request.header,
                         port = request.port]() mutable -> std::optional<Message> {
    Answer none;
    const Request asked{header, {}, port, none};
    while (next < all->size()) {
      const SaStatus& status = (*all)[next++];
      const bool wanted =
          !protocol || *protocol == 0 || *protocol == static_cast<std::uint8_t>(status.settings.id.protocol);
      if (!wanted || moves(status.settings.id) || (filter && !matches(*filter, status.settings))) continue;
      const auto kept = kept_.find(status.settings.id);
      return sa_message(asked, {status, kept == kept_.end() ? nullptr : &kept->second}, NLM_F_MULTI);
    }
    if (next++ > all->size()) return std::nullopt;
    Message done = asked.reply(NLMSG_DONE, NLM_F_MULTI);
    done.body(int{0});
    return done;
  };
  return {};
}

Result<void> Requests::flush_sas(const Request& request) {
  xfrm_usersa_flush flush;
  if (!load_front(request.body, flush)) return refuse(EINVAL, "the message is too short");
  constexpr std::uint8_t any = 255;  // IPSEC_PROTO_ANY
  std::vector<SaId> ids;
  for (const auto& [id, kept] : kept_) {
    if (flush.proto == any || flush.proto == 0 || flush.proto == static_cast<std::uint8_t>(id.protocol))
      ids.push_back(id);
  }
  for (const SaId& id : ids) {
    database_.remove(id);
    forget(id);
  }
  return {};
}

Result<void> Requests::allocate_spi(const Request& request) {
  const auto read = read_spi_request(request.body);
  if (!read) return tl::unexpected(read.error());
  const auto spi =
      database_.reserve_spi(read->source, read->destination, read->protocol, read->reqid, read->least, read->most);
  if (!spi) return refuse(ENOENT, spi.error().message);
  SaSettings larval;
  larval.id = {read->destination, *spi, read->protocol};
  larval.source = read->source;
  larval.mode = read->mode;
  larval.reqid = read->reqid;
  larval.replay_window = 0;
  xfrm_usersa_info info = sa_info(larval, {}, {});
  info.seq = read->sequence;
  Message message = request.reply(XFRM_MSG_NEWSA);
  message.body(info);
  request.answer.messages.push_back(std::move(message));
  return {};
}

Result<void> Requests::get_sad_info(const Request& request) {
  std::uint32_t flags = 0;
  if (!load_front(request.body, flags)) return refuse(EINVAL, "the message is too short");
  const auto count = static_cast<std::uint32_t>(database_.sa_count());
  Message message = request.reply(XFRM_MSG_NEWSADINFO);
  message.body(flags);
  message.attribute(XFRMA_SAD_CNT, count);
  message.attribute(XFRMA_SAD_HINFO, xfrmu_sadhinfo{count, count});
  request.answer.messages.push_back(std::move(message));
  return {};
}

Told Requests::expired(const SaStatus& sa, bool hard, bool somebody_listens) {
  const auto kept = kept_.find(sa.settings.id);
  const xfrm_lifetime_cur before = kept == kept_.end() ? xfrm_lifetime_cur{} : kept->second.before;
  if (hard && !somebody_listens && kept != kept_.end()) {
    forget(sa.settings.id);
    database_.remove(sa.settings.id);
  }
  return expire_message(sa, before, hard);
}

}  // namespace sluice::ipsec::xfrm
