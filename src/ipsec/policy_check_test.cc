#include "ipsec/policy_check.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "ipsec/ipsec_trial_test.h"
#include "ipsec/sa_record.h"
#include "ipsec/spd.h"

namespace sluice::ipsec {
namespace {

constexpr std::string_view here = "192.0.2.1", there = "198.51.100.7";

std::unique_ptr<Sa> made(Protocol protocol, Mode mode, std::string_view source, std::uint32_t reqid) {
  SaSettings settings = test::sa(Direction::in, source, here, 0x1000, reqid);
  settings.id.protocol = protocol;
  settings.mode = mode;
  return std::make_unique<Sa>(settings, 0, 0, 0);
}

TEST(PolicyCheck, WantsWhatItsTemplatesSay) {
  const auto tunnel = made(Protocol::esp, Mode::tunnel, there, 5),
             elsewhere = made(Protocol::esp, Mode::tunnel, here, 5),
             other = made(Protocol::esp, Mode::tunnel, there, 6), ah = made(Protocol::ah, Mode::transport, there, 5),
             transport = made(Protocol::esp, Mode::transport, there, 5),
             transport_elsewhere = made(Protocol::esp, Mode::transport, here, 5);
  const Template esp = test::tunnel_template(there, here, 5);
  Template optional = esp, any = esp;
  optional.optional = true;
  any.reqid = 0;
  const Template around{.protocol = Protocol::ah, .mode = Mode::transport, .reqid = 5};
  Template in_transport = around;
  in_transport.protocol = Protocol::esp;
  struct Case {
    const char* what;
    Action action;
    std::vector<Template> templates;
    std::vector<const Sa*> opened;
    bool satisfied;
  };
  const Case cases[] = {
      {"as it says", Action::protect, {esp}, {tunnel.get()}, true},
      {"in clear", Action::protect, {esp}, {}, false},
      {"of another tunnel", Action::protect, {esp}, {elsewhere.get()}, false},
      {"of another reqid", Action::protect, {esp}, {other.get()}, false},
      {"of any reqid", Action::protect, {any}, {other.get()}, true},
      {"in another mode", Action::protect, {esp}, {transport.get()}, false},
      {"transport mode", Action::protect, {in_transport}, {transport.get()}, true},
      {"transport mode, whatever its ends", Action::protect, {in_transport}, {transport_elsewhere.get()}, true},
      {"AH around ESP", Action::protect, {esp, around}, {ah.get(), tunnel.get()}, true},
      {"without the AH", Action::protect, {esp, around}, {tunnel.get()}, false},
      {"without the ESP", Action::protect, {esp, around}, {ah.get()}, false},
      {"the other way round", Action::protect, {esp, around}, {tunnel.get(), ah.get()}, false},
      {"AH that was not asked for", Action::protect, {esp}, {ah.get(), tunnel.get()}, true},
      {"a tunnel that was not asked for", Action::protect, {esp}, {tunnel.get(), other.get()}, false},
      {"a tunnel around that was not asked for", Action::protect, {esp}, {other.get(), tunnel.get()}, false},
      {"optional, and there", Action::protect, {optional}, {tunnel.get()}, true},
      {"optional, and not there", Action::protect, {optional}, {}, true},
      {"optional, and another tunnel", Action::protect, {optional}, {other.get()}, false},
      {"bypass, in clear", Action::bypass, {}, {}, true},
      {"bypass, from a tunnel", Action::bypass, {}, {tunnel.get()}, false},
      {"bypass, in transport mode", Action::bypass, {}, {transport.get()}, true},
      {"discard", Action::discard, {}, {}, false},
  };
  for (const Case& one : cases) {
    Spd spd(1);
    Policy policy{
        .direction = Direction::in, .selector = test::selector("0.0.0.0/0", "0.0.0.0/0"), .action = one.action};
    policy.templates = one.templates;
    const auto entry = spd.make(policy, false);
    ASSERT_TRUE(entry) << entry.error().message;
    EXPECT_EQ(satisfies(**entry, one.opened), one.satisfied) << one.what;
  }
}

}  // namespace
}  // namespace sluice::ipsec
