// xfrm_server SOCKET [LOCAL ADDRESS]...
//
// The gateway's side of an IKE daemon (src/ipsec/xfrm/server.h) over a Database that keeps what it is told. Commands
// come on standard input, a line each; each is answered by a line of JSON on standard output:
//   state                              everything: SAs with their keys, policies, counts, the log
//   count SPI PACKETS BYTES SEQUENCE   as if so much had passed an SA
//   expire SPI soft|hard               its lifetime is over
//   moved SPI ADDRESS PORT             its peer has another address
//   acquire SOURCE DESTINATION REQID   a packet wants the SA of the outbound policy with this reqid
// Ends at the end of the input.
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <iostream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>

#include "ipsec/databases.h"
#include "ipsec/xfrm/server.h"

using namespace sluice;
using namespace sluice::ipsec;
using nlohmann::json;

namespace {

std::string hex(const SecretKey& key) {
  std::string text;
  for (const std::uint8_t one : key.view()) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", one);
    text += digits;
  }
  return text;
}

std::string text(const PortMatch& ports) {
  return std::to_string(ports.value) + "/" + std::to_string(ports.mask);
}

json to_json(const Selector& selector) {
  return {{"source", selector.source.str()},
          {"destination", selector.destination.str()},
          {"protocol", selector.protocol},
          {"source_port", text(selector.source_port)},
          {"destination_port", text(selector.destination_port)}};
}

std::string name(crypto::Cipher cipher) {
  using enum crypto::Cipher;
  switch (cipher) {
    case null:
      return "null";
    case aes_cbc:
      return "aes_cbc";
    case aes_ctr_esp:
      return "aes_ctr";
    case aes_gcm_esp:
      return "aes_gcm";
    case chacha20_poly1305_esp:
      return "chacha20_poly1305";
    default:
      return "?";
  }
}

std::string name(crypto::Hash hash) {
  using enum crypto::Hash;
  switch (hash) {
    case none:
      return "none";
    case hmac_sha1:
      return "hmac_sha1";
    case hmac_sha256:
      return "hmac_sha256";
    case hmac_sha384:
      return "hmac_sha384";
    case hmac_sha512:
      return "hmac_sha512";
  }
  return "?";
}

// `given`: with its keys.
json to_json(const SaStatus& status, const SaSettings& given) {
  const SaSettings& sa = status.settings;
  json one = {{"spi", sa.id.spi},
              {"destination", sa.id.destination.str()},
              {"source", sa.source.str()},
              {"protocol", sa.id.protocol == Protocol::esp ? "esp" : "ah"},
              {"direction", sa.direction == Direction::in ? "in" : "out"},
              {"mode", sa.mode == Mode::tunnel ? "tunnel" : "transport"},
              {"larval", status.state == SaState::larval},
              {"reqid", sa.reqid},
              {"cipher", name(sa.transform.cipher)},
              {"hash", name(sa.transform.hash)},
              {"key", hex(given.transform.cipher_key)},
              {"salt", hex(given.transform.salt)},
              {"auth_key", hex(given.transform.auth_key)},
              {"icv", sa.transform.icv_length},
              {"esn", sa.esn},
              {"window", sa.replay_window},
              {"sequence", status.counters.sequence},
              {"seconds", {sa.lifetime.seconds.soft, sa.lifetime.seconds.hard}},
              {"bytes", {sa.lifetime.bytes.soft, sa.lifetime.bytes.hard}}};
  if (sa.udp) one["udp"] = {sa.udp->source, sa.udp->destination};
  if (sa.selector) one["selector"] = to_json(*sa.selector);
  return one;
}

json to_json(const Policy& policy) {
  json one = to_json(policy.selector);
  one["direction"] = policy.direction == Direction::in ? "in" : "out";
  one["action"] = policy.action == Action::protect ? "protect" : policy.action == Action::bypass ? "bypass" : "discard";
  one["priority"] = policy.priority;
  one["templates"] = json::array();
  for (const Template& wanted : policy.templates) {
    one["templates"].push_back({{"protocol", wanted.protocol == Protocol::esp ? "esp" : "ah"},
                                {"mode", wanted.mode == Mode::tunnel ? "tunnel" : "transport"},
                                {"source", wanted.source.str()},
                                {"destination", wanted.destination.str()},
                                {"reqid", wanted.reqid},
                                {"spi", wanted.spi}});
  }
  return one;
}

// Passes all on to the real ones, and knows what those do not show: the keys, and what no lane has counted.
class Remembering : public Database {
 public:
  Expected<void> add(const SaSettings& sa) override {
    const std::lock_guard lock(mutex_);
    counted_.erase(sa.id);
    return databases_.add(sa).map([&] { given_.insert_or_assign(sa.id, sa); });
  }
  Expected<void> update(const SaSettings& sa) override {
    const std::lock_guard lock(mutex_);
    const auto before = databases_.sa(sa.id);
    return databases_.update(sa).map([&] {
      if (before && before->state == SaState::larval) given_.insert_or_assign(sa.id, sa);
    });
  }
  bool remove(const SaId& id) override {
    const std::lock_guard lock(mutex_);
    given_.erase(id);
    counted_.erase(id);
    return databases_.remove(id);
  }
  Expected<std::uint32_t> reserve_spi(const packet::IpAddress& source, const packet::IpAddress& destination,
                                      Protocol protocol, std::uint32_t reqid, std::uint32_t least,
                                      std::uint32_t most) override {
    return databases_.reserve_spi(source, destination, protocol, reqid, least, most);
  }
  std::optional<SaStatus> sa(const SaId& id) const override {
    const std::lock_guard lock(mutex_);
    auto status = databases_.sa(id);
    if (status) add_counts(*status);
    return status;
  }
  std::vector<SaStatus> sas(std::size_t most) const override {
    const std::lock_guard lock(mutex_);
    auto all = databases_.sas(most);
    for (SaStatus& one : all) add_counts(one);
    return all;
  }
  std::size_t sa_count() const override { return databases_.sa_count(); }
  void flush_sas(std::optional<Protocol> protocol) override { databases_.flush_sas(protocol); }
  Expected<void> add(const Policy& policy, bool replaces) override { return databases_.add(policy, replaces); }
  bool remove_policy(Direction direction, const Selector& selector) override {
    return databases_.remove_policy(direction, selector);
  }
  std::optional<Policy> policy(Direction direction, const Selector& selector) const override {
    return databases_.policy(direction, selector);
  }
  std::vector<Policy> policies(std::size_t most) const override { return databases_.policies(most); }
  std::size_t policy_count() const override { return databases_.policy_count(); }
  void flush_policies() override { databases_.flush_policies(); }
  void set_events(Events* events) override { databases_.set_events(events); }

  std::optional<SaSettings> given(const SaId& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = given_.find(id);
    return found == given_.end() ? std::nullopt : std::optional(found->second);
  }
  void count(const SaId& id, const SaCounters& counters) {
    const std::lock_guard lock(mutex_);
    counted_[id] = counters;
  }
  void tick() { databases_.tick(std::chrono::steady_clock::now()); }

 private:
  void add_counts(SaStatus& status) const {
    const auto found = counted_.find(status.settings.id);
    if (found == counted_.end()) return;
    const std::uint64_t added = status.counters.added_at;
    status.counters = found->second;
    status.counters.added_at = added;
  }

  mutable std::mutex mutex_;
  std::map<SaId, SaSettings> given_;
  std::map<SaId, SaCounters> counted_;
  crypto::KeyTable keys_ = crypto::KeyTable::make(256, true).value();
  Databases databases_{keys_, {.sas = 256, .policies = 256}};
};

class Program {
 public:
  explicit Program(std::set<packet::IpAddress> local) : local_(std::move(local)) {}

  int run(const std::string& path) {
    xfrm::Surroundings around;
    around.is_local = [this](const packet::IpAddress& address) { return local_.contains(address); };
    around.log = [this](const std::string& line) {
      const std::lock_guard lock(mutex_);
      log_.push_back(line);
    };
    auto server = xfrm::Server::start(database_, path, around);
    if (!server) {
      std::cerr << server.error().message << "\n";
      return 1;
    }
    server_ = std::move(*server);
    database_.set_events(server_.get());
    std::atomic<bool> ends = false;
    std::thread watcher([&] {
      for (; !ends; std::this_thread::sleep_for(std::chrono::milliseconds(50))) database_.tick();
    });
    std::cout << "{}" << std::endl;  // ready
    std::string line;
    while (std::getline(std::cin, line)) std::cout << command(line).dump() << std::endl;
    ends = true;
    watcher.join();
    database_.set_events(nullptr);
    return 0;
  }

 private:
  json command(const std::string& line) {
    std::istringstream words(line);
    std::string verb;
    words >> verb;
    if (verb == "state") return state();
    if (verb == "acquire") return acquire(words);
    std::uint32_t spi = 0;
    words >> spi;
    for (const SaStatus& status : database_.sas(~std::size_t{0})) {
      if (status.settings.id.spi == spi) return of_sa(verb, status, words);
    }
    return {{"error", "no such SA"}};
  }

  json of_sa(const std::string& verb, const SaStatus& status, std::istringstream& words) {
    if (verb == "count") {
      SaCounters counters = status.counters;
      words >> counters.packets >> counters.bytes >> counters.sequence;
      counters.first_used_at = counters.last_used_at = static_cast<std::uint64_t>(std::time(nullptr));
      database_.count(status.settings.id, counters);
    } else if (verb == "expire") {
      std::string kind;
      words >> kind;
      server_->expired(status, kind == "hard");
    } else if (verb == "moved") {
      std::string address;
      std::uint16_t port = 0;
      words >> address >> port;
      server_->moved(status, packet::IpAddress::parse(address).value(), port);
    }
    return json::object();
  }

  json acquire(std::istringstream& words) {
    std::string source, destination;
    std::uint32_t reqid = 0;
    words >> source >> destination >> reqid;
    for (const Policy& policy : database_.policies(~std::size_t{0})) {
      if (policy.direction != Direction::out || policy.templates.empty() || policy.templates[0].reqid != reqid)
        continue;
      FlowKey packet;
      packet.source = packet::IpAddress::parse(source).value();
      packet.destination = packet::IpAddress::parse(destination).value();
      packet.protocol = 1;
      server_->acquire({policy, policy.templates[0], packet, 1});
      return json::object();
    }
    return {{"error", "no such policy"}};
  }

  json state() {
    json all;
    all["sas"] = json::array();
    for (const SaStatus& status : database_.sas(~std::size_t{0})) {
      all["sas"].push_back(to_json(status, database_.given(status.settings.id).value_or(status.settings)));
    }
    all["policies"] = json::array();
    for (const Policy& policy : database_.policies(~std::size_t{0})) all["policies"].push_back(to_json(policy));
    const auto counts = server_->counts();
    all["counts"] = {{"requests", counts.requests},
                     {"refused", counts.refused},
                     {"events", counts.events},
                     {"events_lost", counts.events_lost},
                     {"connections", counts.connections}};
    const std::lock_guard lock(mutex_);
    all["log"] = log_;
    return all;
  }

  const std::set<packet::IpAddress> local_;
  Remembering database_;
  std::unique_ptr<xfrm::Server> server_;
  std::mutex mutex_;  // of the log
  std::vector<std::string> log_;
};

}  // namespace

int main(int count, char** words) {
  if (count < 2) {
    std::cerr << "usage: xfrm_server SOCKET [LOCAL ADDRESS]...\n";
    return 2;
  }
  std::set<packet::IpAddress> local;
  for (int i = 2; i < count; ++i) local.insert(packet::IpAddress::parse(words[i]).value());
  return Program(std::move(local)).run(words[1]);
}
