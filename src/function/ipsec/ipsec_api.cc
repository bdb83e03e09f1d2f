// Routes of the API: SAs and policies, and what adds and removes them.
#include <charconv>
#include <chrono>
#include <utility>

#include "base/json_text.h"
#include "function/ipsec/drop_reasons.h"
#include "function/ipsec/ipsec_control.h"
#include "function/ipsec/ipsec_rows.h"
#include "function/ipsec/ipsec_type.h"
#include "ipsec/proposal.h"

namespace sluice::function {
namespace {

using engine::ApiAnswer;
using engine::ApiRequest;
using engine::bad_request;
using engine::conflict;
using engine::refused;
using ipsec::Direction;
using Origin = IpsecControl::Origin;

constexpr const char* the_request = "the request";

std::string direction_text(Direction direction) {
  return direction == Direction::in ? "in" : "out";
}
std::string protocol_text(ipsec::Protocol protocol) {
  return protocol == ipsec::Protocol::ah ? "ah" : "esp";
}
std::string mode_text(ipsec::Mode mode) {
  return mode == ipsec::Mode::tunnel ? "tunnel" : "transport";
}
std::string state_text(ipsec::SaState state) {
  constexpr const char* texts[] = {"larval", "valid", "dying", "dead"};
  return texts[static_cast<std::size_t>(state)];
}
std::string origin_text(Origin origin) {
  constexpr const char* texts[] = {"configuration", "api", "ike"};
  return texts[static_cast<std::size_t>(origin)];
}
std::string action_text(ipsec::Action action) {
  constexpr const char* texts[] = {"protect", "bypass", "discard"};
  return texts[static_cast<std::size_t>(action)];
}

std::map<std::string, std::uint64_t> limits_of(const ipsec::Lifetime& lifetime) {
  std::map<std::string, std::uint64_t> limits;
  const auto note = [&](const std::string& what, const ipsec::Limit& limit) {
    if (limit.soft != 0) limits["soft_" + what] = limit.soft;
    if (limit.hard != 0) limits["hard_" + what] = limit.hard;
  };
  note("bytes", lifetime.bytes);
  note("packets", lifetime.packets);
  note("seconds", lifetime.seconds);
  note("use_seconds", lifetime.use_seconds);
  return limits;
}

IpsecSaRow row_of(const ipsec::SaStatus& sa, Origin origin) {
  const ipsec::SaSettings& settings = sa.settings;
  const ipsec::SaCounters& counters = sa.counters;
  const bool larval = sa.state == ipsec::SaState::larval;
  IpsecSaRow row{.direction = direction_text(settings.direction),
                 .protocol = protocol_text(settings.id.protocol),
                 .mode = mode_text(settings.mode),
                 .spi = settings.id.spi,
                 .source = settings.source.str(),
                 .destination = settings.id.destination.str(),
                 .proposal = larval ? "" : ipsec::proposal_text(settings.transform, settings.id.protocol),
                 .state = state_text(sa.state),
                 .origin = origin_text(origin),
                 .name = settings.name,
                 .reqid = settings.reqid,
                 .esn = settings.esn,
                 .replay_window = settings.direction == Direction::in && !larval ? settings.replay_window : 0,
                 .selector = settings.selector ? settings.selector->str() : "",
                 .lifetime = limits_of(settings.lifetime),
                 .packets = counters.packets,
                 .bytes = counters.bytes,
                 .sequence = counters.sequence,
                 .path_mtu = sa.path_mtu};
  if (settings.udp) {
    row.udp_source_port = settings.udp->source;
    row.udp_destination_port = settings.udp->destination;
  }
  row.drops = {{std::string(packet::reason_name(ipsec_bad_icv)), counters.bad_icv},
               {std::string(packet::reason_name(ipsec_replay)), counters.replay},
               {std::string(packet::reason_name(ipsec_policy)), counters.policy},
               {std::string(packet::reason_name(ipsec_expired)), counters.expired},
               {std::string(packet::reason_name(ipsec_malformed)), counters.malformed}};
  const auto now = std::chrono::system_clock::now().time_since_epoch() / std::chrono::seconds(1);
  const auto since = [&](std::uint64_t at) { return std::max<std::int64_t>(0, now - static_cast<std::int64_t>(at)); };
  row.age_s = since(counters.added_at);
  if (counters.last_used_at != 0) row.idle_s = since(counters.last_used_at);
  return row;
}

IpsecPolicyRow row_of(const ipsec::Policy& policy, Origin origin, const ipsec::Count& count) {
  IpsecPolicyRow row{.direction = direction_text(policy.direction),
                     .selector = policy.selector.str(),
                     .action = action_text(policy.action),
                     .priority = policy.priority,
                     .origin = origin_text(origin),
                     .name = policy.name,
                     .packets = count.packets,
                     .bytes = count.bytes};
  for (const ipsec::Template& one : policy.templates) {
    row.templates.push_back({protocol_text(one.protocol), mode_text(one.mode),
                             one.source.empty() ? "" : one.source.str(),
                             one.destination.empty() ? "" : one.destination.str(), one.reqid, one.spi});
  }
  return row;
}

// Null before the element is prepared.
IpsecControl* control_of(engine::Element& element) {
  return element.trait<IpsecControl>();
}
ApiAnswer not_yet() {
  return refused(conflict, "the gateway is starting");
}

Expected<std::uint32_t> read_spi(const std::string& value) {
  const bool hexadecimal = value.starts_with("0x");
  const char* const first = value.data() + (hexadecimal ? 2 : 0);
  std::uint32_t spi = 0;
  const auto [end, problem] = std::from_chars(first, value.data() + value.size(), spi, hexadecimal ? 16 : 10);
  if (problem == std::errc{} && end == value.data() + value.size()) return spi;
  return make_error("spi=" + value + ": allowed is a number of 32 bits, as 4097 or 0x1001");
}

ApiAnswer list_sas(engine::Element& element, const ApiRequest& request) {
  IpsecControl::SaFilter filter;
  std::uint32_t limit = engine::usual_rows;
  for (const auto& [key, value] : request.parameters) {
    if (key == "address") {
      const auto address = packet::IpAddress::parse(value);
      if (!address) return refused(bad_request, "address=" + value + ": " + address.error().message);
      filter.address = *address;
    } else if (key == "spi") {
      const auto spi = read_spi(value);
      if (!spi) return refused(bad_request, spi.error().message);
      filter.spi = *spi;
    } else {
      const Expected<std::uint32_t> read =
          key == "limit" ? engine::read_limit(value) : engine::unknown_parameter(key, {"address", "spi", "limit"});
      if (!read) return refused(bad_request, read.error().message);
      limit = *read;
    }
  }
  const IpsecControl* const control = control_of(element);
  if (control == nullptr) return not_yet();
  const auto listing = control->list_sas(limit, filter);
  IpsecSaTable table;
  for (const auto& row : listing.rows) table.sas.push_back(row_of(row.value, row.origin));
  table.count = listing.count;
  return {.text = to_json_text(table)};
}

ApiAnswer list_policies(engine::Element& element, const ApiRequest& request) {
  std::optional<Direction> direction;
  std::uint32_t limit = engine::usual_rows;
  for (const auto& [key, value] : request.parameters) {
    if (key == "direction") {
      if (value != "in" && value != "out") {
        return refused(bad_request, "direction=" + value + ": allowed is in or out");
      }
      direction = value == "in" ? Direction::in : Direction::out;
    } else {
      const Expected<std::uint32_t> read =
          key == "limit" ? engine::read_limit(value) : engine::unknown_parameter(key, {"direction", "limit"});
      if (!read) return refused(bad_request, read.error().message);
      limit = *read;
    }
  }
  const IpsecControl* const control = control_of(element);
  if (control == nullptr) return not_yet();
  const auto listing = control->list_policies(limit, direction);
  IpsecPolicyTable table;
  for (const auto& row : listing.rows) table.policies.push_back(row_of(row.value, row.origin, row.count));
  table.count = listing.count;
  return {.text = to_json_text(table)};
}

// `read`: of the body; `make`: with what was read.
template <class T>
engine::ApiRoute change(const char* path, const char* what, Expected<T> (*read)(std::string_view, const std::string&),
                        Expected<IpsecChange> (IpsecControl::*make)(const T&)) {
  const auto answer = [read, make](engine::Element& element, const ApiRequest& request) -> ApiAnswer {
    const auto wanted = read(request.body, the_request);
    if (!wanted) return refused(bad_request, wanted.error().message);
    IpsecControl* const control = control_of(element);
    if (control == nullptr) return not_yet();
    const auto changed = (control->*make)(*wanted);
    if (!changed) return refused(conflict, changed.error().message);
    return {.text = to_json_text(nlohmann::json{{"done", changed->done}, {"warnings", changed->warnings}})};
  };
  return {.path = path, .change = true, .what = what, .answer = answer, .often = true, .waits_for_reload = true};
}

}  // namespace

const std::vector<engine::ApiRoute>& ipsec_routes() {
  constexpr const char* sas = "SAs of IPsec";
  constexpr const char* policies = "policies of IPsec";
  static const std::vector<engine::ApiRoute> all = {
      {.path = "/sas", .what = sas, .answer = list_sas},
      {.path = "/policies", .what = policies, .answer = list_policies},
      change<GivenSa>("/sas/add", sas, read_given_sa_text, &IpsecControl::add),
      change<ipsec::SaId>("/sas/remove", sas, read_sa_id_text, &IpsecControl::remove),
      change<ipsec::Policy>("/policies/add", policies, read_policy_text, &IpsecControl::add),
      change<PolicyId>("/policies/remove", policies, read_policy_id_text, &IpsecControl::remove),
  };
  return all;
}

}  // namespace sluice::function
