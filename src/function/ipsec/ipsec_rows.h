// SAs and policies of the element "ipsec" as the API has them (docs/api.md): the gateway writes these, `sluice ctl
// ipsec` reads them. In JSON fields have the members' names; one that is absent keeps its default.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace sluice::function {

// No key is ever reported.
struct IpsecSaRow {
  std::string direction, protocol, mode;  // "in", "out"; "esp", "ah"; "tunnel", "transport"
  std::uint32_t spi = 0;
  std::string source, destination;  // of the outer packet
  std::string proposal;
  std::string state;   // "larval", "valid", "dying", "dead"
  std::string origin;  // "configuration", "api", "ike"
  std::string name = {};
  std::uint32_t reqid = 0;
  bool esn = false;
  std::uint32_t replay_window = 0;
  std::uint16_t udp_source_port = 0, udp_destination_port = 0;  // 0: no UDP encapsulation
  std::string selector = {};                                    // of the traffic inside; empty: as policies say
  std::map<std::string, std::uint64_t> lifetime = {};           // its limits, by the names of the configuration's keys
  std::uint64_t packets = 0, bytes = 0;                         // inner packets that were opened, or protected
  std::map<std::string, std::uint64_t> drops = {};              // by reason, all reasons there are
  std::uint64_t sequence = 0;                                   // out: the last one sent; in: the highest received
  std::uint32_t path_mtu = 0;                                   // out: learnt of the way; 0: none
  std::int64_t age_s = 0;                                       // since it was added
  std::int64_t idle_s = -1;                                     // since its last packet; -1: none has come
};

struct IpsecSaTable {
  std::vector<IpsecSaRow> sas;  // by direction, destination and SPI; as many as were asked for
  std::uint64_t count = 0;      // how many there are
};

struct IpsecTemplateRow {
  std::string protocol, mode, source, destination;  // of a tunnel
  std::uint32_t reqid = 0, spi = 0;                 // 0: any
};

struct IpsecPolicyRow {
  std::string direction, selector, action;  // "protect", "bypass", "discard"
  std::uint32_t priority = 0;
  std::vector<IpsecTemplateRow> templates = {};  // of "protect"
  std::string origin;
  std::string name = {};
  std::uint64_t packets = 0, bytes = 0;  // that it was looked up for, those of "bypass" not
};

struct IpsecPolicyTable {
  std::vector<IpsecPolicyRow> policies;  // inbound ones first, of a direction as they are looked at
  std::uint64_t count = 0;
};

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(IpsecSaRow, direction, protocol, mode, spi, source, destination,
                                                proposal, state, origin, name, reqid, esn, replay_window,
                                                udp_source_port, udp_destination_port, selector, lifetime, packets,
                                                bytes, drops, sequence, path_mtu, age_s, idle_s)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(IpsecSaTable, sas, count)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(IpsecTemplateRow, protocol, mode, source, destination, reqid, spi)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(IpsecPolicyRow, direction, selector, action, priority, templates,
                                                origin, name, packets, bytes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE_WITH_DEFAULT(IpsecPolicyTable, policies, count)

// For people.
std::string ipsec_sas_report(const IpsecSaTable& table);
std::string ipsec_policies_report(const IpsecPolicyTable& table);

}  // namespace sluice::function
