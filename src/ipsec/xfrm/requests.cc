#include "ipsec/xfrm/requests.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string_view>

namespace sluice::ipsec::xfrm {
namespace {

constexpr std::string_view type_names[] = {"NEWSA",      "DELSA",      "GETSA",   "NEWPOLICY",   "DELPOLICY",
                                           "GETPOLICY",  "ALLOCSPI",   "ACQUIRE", "EXPIRE",      "UPDPOLICY",
                                           "UPDSA",      "POLEXPIRE",  "FLUSHSA", "FLUSHPOLICY", "NEWAE",
                                           "GETAE",      "REPORT",     "MIGRATE", "NEWSADINFO",  "GETSADINFO",
                                           "NEWSPDINFO", "GETSPDINFO", "MAPPING", "SETDEFAULT",  "GETDEFAULT"};

std::string name_of(unsigned type) {
  const unsigned index = type - XFRM_MSG_BASE;
  return type >= XFRM_MSG_BASE && index < std::size(type_names) ? std::string(type_names[index])
                                                                : "message " + std::to_string(type);
}

// What daemons ask to know, or say of what is gone already.
bool is_ordinary(int error) {
  return error == ESRCH || error == ENOENT || error == EEXIST;
}

bool is_get(unsigned type) {
  return type == XFRM_MSG_GETSA || type == XFRM_MSG_GETPOLICY;
}

}  // namespace

Requests::Requests(Database& database, Surroundings surroundings)
    : database_(database),
      around_([&] {
        if (!surroundings.now) surroundings.now = [] { return static_cast<std::uint64_t>(std::time(nullptr)); };
        return std::move(surroundings);
      }()),
      policies_(database) {}

Answer Requests::handle(NetlinkBytes datagram, std::uint32_t port) {
  Answer answer;
  each_netlink_message(datagram, [&](const nlmsghdr& header, NetlinkBytes body) {
    one(header, body, port, answer);
    return true;
  });
  return answer;
}

void Requests::one(const nlmsghdr& header, NetlinkBytes body, std::uint32_t port, Answer& answer) {
  const Request request{header, body, port, answer};
  const bool asks = (header.nlmsg_flags & NLM_F_REQUEST) != 0 && header.nlmsg_type >= NLMSG_MIN_TYPE;
  const auto done = asks ? dispatch(request) : Result<void>{};
  if (!done) {
    refuse_one(request, done.error());
  } else if ((header.nlmsg_flags & NLM_F_ACK) != 0 && !answer.dump) {
    answer.messages.push_back(error_message(header, port, 0));
  }
}

void Requests::refuse_one(const Request& request, const Refusal& refusal) {
  request.answer.messages.push_back(error_message(request.header, request.port, refusal.error, refusal.why));
  if (is_ordinary(refusal.error)) return;
  ++refused_;
  around_.log("xfrm: " + name_of(request.header.nlmsg_type) + " is refused: " + refusal.why);
}

Result<void> Requests::dispatch(const Request& request) {
  const unsigned type = request.header.nlmsg_type;
  const bool dumps = is_get(type) && (request.header.nlmsg_flags & NLM_F_DUMP) != 0;
  if (dumps && request.answer.dump) return refuse(EBUSY, "one dump at a time");
  if (type != XFRM_MSG_DELSA) asked_.reset();
  switch (type) {
    case XFRM_MSG_NEWSA:
    case XFRM_MSG_UPDSA:
      return new_sa(request);
    case XFRM_MSG_DELSA:
      return delete_sa(request);
    case XFRM_MSG_GETSA:
      return dumps ? dump_sas(request) : get_sa(request);
    case XFRM_MSG_ALLOCSPI:
      return allocate_spi(request);
    case XFRM_MSG_FLUSHSA:
      return flush_sas(request);
    case XFRM_MSG_NEWAE:
      return new_replay(request);
    case XFRM_MSG_GETAE:
      return get_replay(request);
    case XFRM_MSG_GETSADINFO:
      return get_sad_info(request);
    case XFRM_MSG_NEWPOLICY:
    case XFRM_MSG_UPDPOLICY:
      return new_policy(request);
    case XFRM_MSG_DELPOLICY:
      return delete_policy(request);
    case XFRM_MSG_GETPOLICY:
      return dumps ? dump_policies(request) : get_policy(request);
    case XFRM_MSG_FLUSHPOLICY:
      policies_.flush();
      return {};
    case XFRM_MSG_POLEXPIRE:
      return expire_policy(request);
    case XFRM_MSG_GETSPDINFO:
      return get_spd_info(request);
    case XFRM_MSG_NEWSPDINFO:
      return {};  // sizes of Linux's hash tables
    case XFRM_MSG_MIGRATE:
      return migrate(request);
    default:
      return refuse(EOPNOTSUPP, name_of(type) + " is not supported");
  }
}

}  // namespace sluice::ipsec::xfrm
