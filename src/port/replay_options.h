// What a memory replay port (replay_port.h) is to hand out, and how, as it is written in a configuration.
// Thread-safety: any thread. Cost of parse(): the file of destinations is read, of 256 MB at most.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "packet/ip_address.h"

namespace sluice::port {

struct ReplayOptions {
  static constexpr unsigned least_frames = 64;

  std::string mix = "64";   // packet/frame_mix.h
  unsigned frames = 16384;  // per queue
  int family = 4;           // 4 | 6
  std::uint64_t seed = 1;
  double rate = 0;    // frames per second and queue; 0: unlimited
  unsigned ring = 0;  // due frames that may wait to be received, per queue, as a NIC's descriptors; 0: all
  bool ordered = false;
  unsigned refresh = 0;  // rounds between refreshes; 0: never
  // UDP to `udp_port`; TCP segments without a handshake to port 80; or conversations (replay_conversations.h).
  enum class Protocol { udp, tcp, streams, http };
  Protocol protocol = Protocol::udp;
  std::uint16_t udp_port = 4000;
  bool text = false;     // `pieces` are words
  bool codings = false;  // of HTTP: replay_codings.h
  bool resets = false;   // of streams: replay_conversations.h
  // What payloads are made of, one piece after another, drawn at random; random bytes when there are none.
  std::vector<std::string> pieces;
  // Drawn at random, from those of the frame's family; random addresses when there are none.
  std::vector<packet::IpAddress> destinations;
  // Whose frames they are, one after the other, each queue beginning where the one before it ends; those of the frame's
  // family. None: from one address to `destinations`, each from a port of its own.
  struct Flow {
    packet::IpAddress source, destination;
    std::uint16_t source_port = 0, destination_port = 0;
  };
  std::vector<Flow> flows;

  // From devargs, in any order: "replay", then each of these that is not to be as above:
  //     mix=heavy-tail,frames=16384,family=6,seed=1,rate=1e6,ring=4096,ordered=1,refresh=200,destinations=FILE,
  //     protocol=tcp,payload=text,flows=FLOWS
  // protocol: udp, tcp, streams or http. FILE has one address on a line. FLOWS has a flow of UDP or TCP on each line,
  // `SOURCE PORT DESTINATION PORT`, instead of destinations. payload is one of:
  //
  //   random   Random bytes.
  //   text     Words of English.
  //   web      Words of pages and requests. UDP is to port 53 then.
  //   codings  Of protocol=http: bodies that cost who decodes them most.
  //   resets   Of protocol=streams: data that waits for a byte that never comes, until a reset.
  //   a file   A piece of payloads on each line, in hexadecimal digits.
  //
  // An Error, one line that begins with "replay: ", for a key that there is not or that is there twice, a value that it
  // does not take, or keys that exclude each other. Also for destinations or flows that cannot be read or have none of
  // the family.
  static Expected<ReplayOptions> parse(const std::string& devargs);
};

// What is wrong with destinations, or flows, that have no address of this family.
std::string no_destination(int family);
std::string no_flow(int family);

}  // namespace sluice::port
