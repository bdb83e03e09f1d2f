// Any bytes as what one recv() from rtnetlink returned: the decoder stays inside them, promises of its structs hold,
// and messages that stand alone decode as they do in company. The corpus holds what a kernel sent: dumps and changes.
#include <linux/netlink.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "control/netlink/decoder.h"
#include "require.h"

using namespace sluice;
using namespace sluice::control::netlink;

namespace {

bool address_or_none(const packet::IpAddress& address) {
  return address.family == 0 || address.family == 4 || address.family == 6;
}

void check_hop(const Hop& hop) {
  REQUIRE(address_or_none(hop.gateway));
  REQUIRE(hop.weight >= 1);
}

// Checks every message and keeps a line for each call, to compare two decodings.
class Checker : public Visitor {
 public:
  void on_link(const Header& header, const LinkMessage& message) override {
    REQUIRE(message.name.find('\0') == std::string::npos);
    note("link", header, message.ifindex);
  }

  void on_address(const Header& header, const AddressMessage& message) override {
    REQUIRE(message.address.family == 4 || message.address.family == 6);
    note("address", header, message.prefix_length);
  }

  void on_link_address(const Header& header, const LinkAddressMessage& message) override {
    REQUIRE((message.mac.bytes[0] & 1) == 0);
    note("link address", header, message.ifindex);
  }

  void on_interface_settings(const Header& header, const InterfaceSettingsMessage& message) override {
    REQUIRE(message.family == 4 || message.family == 6);
    note("settings", header, message.ifindex);
  }

  void on_neighbour(const Header& header, const NeighbourMessage& message) override {
    REQUIRE(message.address.family == 4 || message.address.family == 6);
    note("neighbour", header, message.ifindex);
  }

  void on_route(const Header& header, const RouteMessage& message) override {
    const packet::IpPrefix& prefix = message.prefix;
    REQUIRE(prefix.address.family == 4 || prefix.address.family == 6);
    REQUIRE(prefix.length <= prefix.address.bits());
    REQUIRE(packet::IpPrefix::of(prefix.address, prefix.length) == prefix);
    for (const Hop& hop : message.hops) {
      check_hop(hop);
    }
    note("route", header, static_cast<long>(message.hops.size()));
  }

  void on_nexthop(const Header& header, const NexthopMessage& message) override {
    REQUIRE(message.id != 0);
    check_hop(message.hop);
    for (const NexthopMessage::Member& member : message.group) {
      REQUIRE(member.weight >= 1);
    }
    note("nexthop", header, message.id);
  }

  void on_answer(const Header& header, int error) override { note("answer", header, error); }
  void on_malformed(const Header& header) override { note("malformed", header, 0); }

  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void note(const char* what, const Header& header, long detail) {
    notes_.push_back(std::string(what) + " " + std::to_string(header.type) + " " + std::to_string(header.sequence) +
                     " " + std::to_string(detail));
  }

  std::vector<std::string> notes_;
};

std::vector<std::string> decoded(std::span<const std::byte> bytes) {
  // A copy of just this size, so that AddressSanitizer sees a read behind it.
  const std::vector<std::byte> exact(bytes.begin(), bytes.end());
  Checker checker;
  decode(exact, checker);
  return checker.notes();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data), size);
  const std::vector<std::string> together = decoded(rest);
  REQUIRE(together.size() <= size / sizeof(nlmsghdr) + 1);

  std::vector<std::string> alone;
  while (!rest.empty()) {
    nlmsghdr header{};
    std::memcpy(&header, rest.data(), std::min(sizeof header, rest.size()));
    const bool whole =
        rest.size() >= sizeof header && header.nlmsg_len >= sizeof header && header.nlmsg_len <= rest.size();
    const std::size_t length = whole ? std::min<std::size_t>(NLMSG_ALIGN(header.nlmsg_len), rest.size()) : rest.size();
    const auto notes = decoded(rest.first(length));
    alone.insert(alone.end(), notes.begin(), notes.end());
    rest = rest.subspan(length);
  }
  REQUIRE(alone == together);
  return 0;
}
