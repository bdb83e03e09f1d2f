// What a daemon asks by XFRM's messages, done to the Database, and the answers: as Linux answers them, with its errno.
//
// What a message asks for and the gateway would not do is refused (sa_message.h, policy_message.h), never left out: the
// daemon takes a tunnel for what it has asked for. Each refusal is a line in the log.
//
// SAs that come this way are kept here with their keys and until they are deleted: daemons read an SA, delete it and
// add it anew with other addresses (charon's MOBIKE), keys and all. Those of the configuration are shown without keys,
// and a daemon cannot change them.
//
// Thread-safety: none (one thread). The Database may be changed by others meanwhile.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipsec/database.h"
#include "ipsec/xfrm/event_message.h"
#include "ipsec/xfrm/kept_policies.h"
#include "ipsec/xfrm/message.h"
#include "ipsec/xfrm/sa_message.h"

namespace sluice::ipsec::xfrm {

struct Surroundings {
  // Whether packets to there are for the gateway itself: of an SA of which nothing else says it, that it is inbound.
  std::function<bool(const packet::IpAddress&)> is_local = [](const packet::IpAddress&) { return false; };
  std::function<void(const std::string&)> log = [](const std::string&) {};
  std::function<std::uint64_t()> now;  // seconds since the epoch; empty: the system's clock
};

// The messages of a long answer one at a time, then nothing.
using Dump = std::function<std::optional<Message>()>;

struct Answer {
  std::vector<Message> messages;
  Dump dump;               // behind `messages`
  std::vector<Told> told;  // to all who listen
};

class Requests {
 public:
  Requests(Database& database, Surroundings surroundings);

  // One datagram's requests in turn. `port`: nlmsg_pid of the answers.
  Answer handle(NetlinkBytes datagram, std::uint32_t port);

  // An event of the Database. At the hard limit an SA is deleted if no daemon listens that would do it.
  Told expired(const SaStatus& sa, bool hard, bool somebody_listens);

  // SAs that move and whose time is over are deleted.
  using Time = std::chrono::steady_clock::time_point;
  void finish_moves(Time now = std::chrono::steady_clock::now());
  bool has_moves() const { return !moving_.empty(); }

  std::uint64_t refused() const { return refused_; }

 private:
  struct KeptSa {
    SaSettings settings;       // as the daemon has said
    xfrm_lifetime_cur before;  // counted by the SA that this one goes on with
  };
  struct Request {
    const nlmsghdr& header;
    NetlinkBytes body;
    std::uint32_t port;
    Answer& answer;
    // The message that answers it.
    Message reply(std::uint16_t type, std::uint16_t flags = 0) const { return {type, flags, header.nlmsg_seq, port}; }
  };

  void one(const nlmsghdr& header, NetlinkBytes body, std::uint32_t port, Answer& answer);
  Result<void> dispatch(const Request& request);
  void refuse_one(const Request& request, const Refusal& refusal);

  // sa_requests.cc
  Result<void> new_sa(const Request& request);
  Result<void> delete_sa(const Request& request);
  Result<void> get_sa(const Request& request);
  Result<void> dump_sas(const Request& request);
  Result<void> flush_sas(const Request& request);
  Result<void> allocate_spi(const Request& request);
  Result<void> get_sad_info(const Request& request);
  // replay_requests.cc
  Result<void> new_replay(const Request& request);
  Result<void> get_replay(const Request& request);
  std::optional<SaId> moved_from(const SaSettings& settings) const;
  Result<void> go_on(const SaId& old, const SaRequest& request);
  bool moves(const SaId& id) const;
  void end_move(const SaId& id);  // it is there no more, or goes on
  // policy_requests.cc
  Result<void> new_policy(const Request& request);
  Result<void> delete_policy(const Request& request);
  Result<void> get_policy(const Request& request);
  Result<void> dump_policies(const Request& request);
  Result<void> expire_policy(const Request& request);
  Result<void> get_spd_info(const Request& request);
  Result<void> migrate(const Request& request);

  // Both kinds of an SA: one of the daemon, with what is kept of it, and one of others.
  struct Known {
    SaStatus status;
    const KeptSa* kept = nullptr;
    const SaSettings& settings() const { return kept != nullptr ? kept->settings : status.settings; }
    const xfrm_lifetime_cur& before() const;
  };
  Result<Known> known(const SaId& id) const;       // ESRCH: there is none
  Result<Known> changeable(const SaId& id) const;  // EPERM: it is of the configuration
  void keep(const SaSettings& settings, const xfrm_lifetime_cur& before);
  void forget(const SaId& id);
  void forget_gone();
  // The Database's settings for one that goes on with what another has counted.
  SaSettings continued(const SaSettings& settings, const xfrm_lifetime_cur& before) const;
  // Takes the place of one that is kept, with its counts; under the same id or another.
  Result<void> replace(const SaId& old, SaSettings settings, const ReplayState& replay,
                       const xfrm_lifetime_cur& before);
  Direction direction_of(const SaRequest& request, const std::optional<SaStatus>& current) const;
  std::uint64_t last_use(const Policy& policy) const;
  Message sa_message(const Request& request, const Known& known, std::uint16_t flags) const;
  Result<void> move_sas(const Move& move, const std::optional<UdpPorts>& udp);

  Database& database_;
  const Surroundings around_;
  KeptPolicies policies_;
  std::map<SaId, KeptSa> kept_;
  std::multimap<std::uint32_t, SaId> by_reqid_;  // but 0
  std::size_t look_at_ = 0;                      // so many kept: time to look for those that are gone
  std::optional<SaId> asked_;                    // whose numbers were asked for by the last request
  std::vector<std::pair<SaId, Time>> moving_;    // until when
  std::uint64_t refused_ = 0;
};

}  // namespace sluice::ipsec::xfrm
