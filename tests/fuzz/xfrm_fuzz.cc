// Any bytes as the datagrams that an IKE daemon sends in place of netlink's XFRM: a length of two bytes (little-endian)
// in front of each. Answers are whole messages, each request has one at most, and what is in the Database is what the
// contract allows. The corpus holds sessions of charon and of iproute2.
#include <cstring>
#include <span>
#include <vector>

#include "ipsec/xfrm/fake_database.h"
#include "ipsec/xfrm/requests.h"
#include "require.h"

using namespace sluice;
using namespace sluice::ipsec;
using namespace sluice::ipsec::xfrm;

namespace {

constexpr std::uint32_t port = 7;

void check_message(const Message& message) {
  std::size_t messages = 0;
  const auto wrong = each_netlink_message(message.bytes(), [&](const nlmsghdr& header, NetlinkBytes) {
    REQUIRE(header.nlmsg_pid == port || header.nlmsg_pid == 0);
    ++messages;
    return true;
  });
  REQUIRE(!wrong && messages == 1);
}

// What answers a question about an SA or a policy is one that could be asked for.
void check_answer(const Message& message) {
  check_message(message);
  const NetlinkBytes body = message.bytes().subspan(sizeof(nlmsghdr));
  if (message.type() == XFRM_MSG_NEWPOLICY) REQUIRE(read_policy(body).has_value());
  xfrm_usersa_info info;
  const bool larval = body.size() == sizeof info;
  if (message.type() == XFRM_MSG_NEWSA && !larval) REQUIRE(read_sa(body).has_value());
}

std::size_t requests_in(NetlinkBytes datagram) {
  std::size_t count = 0;
  each_netlink_message(datagram, [&](const nlmsghdr&, NetlinkBytes) { return ++count != 0; });
  return count;
}

void check(const FakeDatabase& database) {
  for (const SaStatus& status : database.sas(~std::size_t{0})) {
    const SaSettings& sa = status.settings;
    REQUIRE(sa.id.destination.family == 4 || sa.id.destination.family == 6);
    REQUIRE(sa.source.family == 0 || sa.source.family == sa.id.destination.family);
    REQUIRE(sa.id.protocol == Protocol::esp || sa.id.protocol == Protocol::ah);
    REQUIRE(sa.id.spi >= 256);
    REQUIRE(sa.replay_window <= most_replay_window);
    REQUIRE(status.state == SaState::larval || sa.transform.cipher != crypto::Cipher::none);
  }
  for (const Policy& policy : database.policies(~std::size_t{0})) {
    REQUIRE((policy.action == Action::protect) == !policy.templates.empty());
    const Selector& selector = policy.selector;
    REQUIRE(selector.source.address.family == selector.destination.address.family);
    REQUIRE(selector.source.length <= selector.source.address.bits());
    REQUIRE(packet::IpPrefix::of(selector.source.address, selector.source.length) == selector.source);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FakeDatabase database;
  Requests requests(database, {.is_local = [](const packet::IpAddress& address) { return address.bytes[3] == 1; }});
  std::span<const std::byte> rest(reinterpret_cast<const std::byte*>(data), size);
  while (rest.size() >= 2) {
    std::uint16_t length = 0;
    std::memcpy(&length, rest.data(), sizeof length);
    rest = rest.subspan(sizeof length);
    // A copy of just this size, so that AddressSanitizer sees a read behind it.
    const auto datagram = rest.first(std::min<std::size_t>(length, rest.size()));
    const std::vector<std::byte> exact(datagram.begin(), datagram.end());
    rest = rest.subspan(exact.size());
    Answer answer = requests.handle(exact, port);
    REQUIRE(answer.messages.size() <= 2 * requests_in(exact));  // what is asked for, and that it was done
    for (const Message& one : answer.messages) check_answer(one);
    for (const Told& one : answer.told) check_message(one.message);
    bool done = !answer.dump;
    while (answer.dump) {
      const auto next = answer.dump();
      if (!next) break;
      REQUIRE(!done);
      check_answer(*next);
      done = next->type() == NLMSG_DONE;
    }
    REQUIRE(done);
    check(database);
  }
  requests.finish_moves(std::chrono::steady_clock::now() + std::chrono::seconds(1));
  REQUIRE(!requests.has_moves());
  return 0;
}
