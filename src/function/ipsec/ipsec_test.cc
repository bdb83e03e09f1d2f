// What becomes of frames in the element "ipsec", on a core and on a GPU.
#include <algorithm>
#include <memory>
#include <optional>
#include <random>
#include <set>

#include "../tests/support/gpu.h"
#include "function/ipsec/ipsec_trial_test.h"
#include "function/routing_reasons.h"
#include "ipsec/proposal.h"

namespace sluice::function::test {
namespace {

using packet::PacketBuilder;
using Work = IpsecTrial::Work;

struct Suite {
  std::string protocol, proposal;
  bool on_gpus = true;
};
const Suite suites[] = {{"esp", "aes128-sha1"},
                        {"esp", "aes192-sha256"},
                        {"esp", "aes256-sha384"},
                        {"esp", "aes128ctr-sha1"},
                        {"esp", "aes256ctr-sha512"},
                        {"esp", "aes128gcm16"},
                        {"esp", "aes192gcm12"},
                        {"esp", "aes256gcm8"},
                        {"esp", "null-sha256"},
                        {"ah", "sha1"},
                        {"ah", "sha512"},
                        {"esp", "chacha20poly1305", false}};

std::string digits(std::size_t bytes, std::uint8_t seed) {
  std::string text;
  for (std::size_t i = 0; i < bytes; ++i) {
    char pair[3];
    std::snprintf(pair, sizeof pair, "%02x", static_cast<unsigned>((i * 11 + seed) & 0xff));
    text += pair;
  }
  return text;
}

// Tunnel n protects 10.N.0.0/16 to 10.100.N.0/24, or the same of IPv6: at one end of it outbound, at the other inbound.
std::string tunnel(std::size_t n, const Suite& suite, const std::string& direction, const std::string& more = "") {
  const auto proposal =
      ipsec::parse_proposal(suite.proposal, suite.protocol == "ah" ? ipsec::Protocol::ah : ipsec::Protocol::esp);
  EXPECT_TRUE(proposal) << suite.proposal;
  const std::string number = std::to_string(n);
  const bool outer_ipv6 = n % 3 == 2;
  const std::string near = outer_ipv6 ? "2001:db8:f::1" : "192.0.2.1", far = outer_ipv6 ? "2001:db8:f::2" : "192.0.2.2";
  std::string text = "[[ipsec.sa]]\ndirection = \"" + direction + "\"\nsource = \"" + near + "\"\ndestination = \"" +
                     far + "\"\nspi = " + std::to_string(0x1000 + n) + "\nreqid = " + std::to_string(n + 1) +
                     "\nprotocol = \"" + suite.protocol + "\"\nproposal = \"" + suite.proposal + "\"\n" + more;
  const std::size_t key = proposal->key_length + proposal->salt_length;
  if (key != 0) text += "key = \"" + digits(key, static_cast<std::uint8_t>(n)) + "\"\n";
  if (proposal->auth_key_length != 0) {
    text += "auth_key = \"" + digits(proposal->auth_key_length, static_cast<std::uint8_t>(n + 7)) + "\"\n";
  }
  for (const bool ipv6 : {false, true}) {
    text += "[[ipsec.policy]]\ndirection = \"" + direction + "\"\nsource = \"" +
            (ipv6 ? "2001:db8:" + number + "::/48" : "10." + number + ".0.0/16") + "\"\ndestination = \"" +
            (ipv6 ? "2001:db8:100:" + number + "::/64" : "10.100." + number + ".0/24") + "\"\ntunnel_source = \"" +
            near + "\"\ntunnel_destination = \"" + far + "\"\nreqid = " + std::to_string(n + 1) + "\nprotocol = \"" +
            suite.protocol + "\"\n";
  }
  return text;
}

std::string tunnels(const std::string& direction, const std::string& settings = "gpu_at_least = 1\n") {
  std::string text = "[ipsec]\n" + settings;
  for (std::size_t n = 0; n < std::size(suites); ++n) text += tunnel(n, suites[n], direction);
  return text;
}

Bytes clear_frame(std::size_t n, std::size_t payload, bool ipv6) {
  const std::string number = std::to_string(n);
  PacketBuilder builder;
  ipv6 ? builder.ipv6("2001:db8:" + number + "::5", "2001:db8:100:" + number + "::9")
       : builder.ipv4("10." + number + ".0.5", "10.100." + number + ".9");
  return builder.udp(1000, 2000).payload(payload).build();
}

// Of all tunnels, sizes and families, shuffled.
std::vector<Bytes> mixed_frames(std::size_t count) {
  std::mt19937 random(5);
  std::vector<Bytes> frames;
  for (std::size_t i = 0; i < count; ++i) {
    frames.push_back(clear_frame(random() % std::size(suites), random() % 1300, random() % 2 == 0));
  }
  return frames;
}
// The packet without its Ethernet header, whose addresses are the router's to write.
Bytes packet_of(const Bytes& frame) {
  return {frame.begin() + 14, frame.end()};
}
std::vector<Bytes> frames_of(const std::vector<Judged>& judged) {
  std::vector<Bytes> frames;
  for (const Judged& one : judged) frames.push_back(one.frame);
  return frames;
}

class IpsecOn : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (GetParam() == "cpu") return;
    if (const std::string why = sluice::test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
    auto opened = device::Gpu::open(0, 2);
    ASSERT_TRUE(opened) << (opened ? "" : opened.error().message);
    gpu_ = std::move(*opened);
  }
  device::Gpu* gpu() { return gpu_.get(); }

 private:
  std::unique_ptr<device::Gpu> gpu_;
};
INSTANTIATE_TEST_SUITE_P(Devices, IpsecOn, testing::Values("cpu", "cuda:0"),
                         [](const auto& info) { return info.param.substr(0, info.param.find(':')); });

// What one device seals the other opens.
TEST_P(IpsecOn, AllAlgorithmsInOneBatchThereAndBack) {
  const std::vector<Bytes> clear = mixed_frames(400);
  for (const bool seals : {true, false}) {
    IpsecTrial out(tunnels("out"), seals ? gpu() : nullptr), in(tunnels("in"), seals ? nullptr : gpu());
    for (int round = 0; round < 2; ++round) {
      const std::vector<Judged> sealed = out.seal(clear);
      for (std::size_t i = 0; i < clear.size(); ++i) {
        ASSERT_EQ(sealed[i].name(), "passes") << i;
        ASSERT_GT(sealed[i].frame.size(), clear[i].size()) << i;
      }
      const std::vector<Judged> opened = in.open(frames_of(sealed));
      for (std::size_t i = 0; i < clear.size(); ++i) {
        ASSERT_EQ(opened[i].name(), "passes") << i;
        EXPECT_EQ(packet_of(opened[i].frame), packet_of(clear[i])) << i;
      }
    }
    EXPECT_EQ(out.metric("ipsec_sealed_packets"), 800U);
    EXPECT_EQ(in.metric("ipsec_opened_packets"), 800U);
    const bool on_gpu = gpu() != nullptr;
    const std::uint64_t kept = out.metric("ipsec_kept_from_device") + in.metric("ipsec_kept_from_device");
    EXPECT_EQ(kept != 0, on_gpu) << "ChaCha20 alone";
    EXPECT_LT(kept, 200U);
    EXPECT_EQ(out.metric("ipsec_of_small_batches") + in.metric("ipsec_of_small_batches"), 0U);
  }
}

TEST_P(IpsecOn, TamperedAndReplayedPacketsAreRefusedAmongOthers) {
  IpsecTrial out(tunnels("out")), in(tunnels("in"), gpu());
  const std::vector<Bytes> clear = mixed_frames(300);
  std::vector<Bytes> sealed = frames_of(out.seal(clear));
  for (std::size_t i = 0; i < sealed.size(); i += 3) sealed[i].back() ^= 1;
  std::vector<Judged> opened = in.open(sealed);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    EXPECT_EQ(opened[i].name(), i % 3 == 0 ? "ipsec_bad_icv" : "passes") << i;
  }
  opened = in.open(sealed);
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    EXPECT_EQ(opened[i].name(), i % 3 == 0 ? "ipsec_bad_icv" : "ipsec_replay") << i;
  }
}

// So far behind the window that with ESN they would be of the next 2^32.
TEST_P(IpsecOn, WhatIsBehindTheWindowIsAReplay) {
  for (const bool esn : {false, true}) {
    for (const Suite& suite : {suites[0], suites[5], suites[9]}) {
      const std::string more = esn ? "esn = true\n" : "";
      IpsecTrial out("[ipsec]\n" + tunnel(0, suite, "out", more)),
          in("[ipsec]\n" + tunnel(0, suite, "in", more), gpu());
      const std::vector<Bytes> sealed = frames_of(out.seal(std::vector<Bytes>(400, clear_frame(0, 100, false))));
      for (const Judged& one : in.open(sealed)) ASSERT_EQ(one.name(), "passes") << suite.proposal;
      for (const Judged& one : in.open(sealed)) {
        // With ESN those are taken for ones of the next 2^32, whose ICV would be another.
        ASSERT_TRUE(one.name() == "ipsec_replay" || (esn && one.name() == "ipsec_bad_icv"))
            << suite.proposal << one.name();
      }
    }
  }
}

// Whatever order warps work in, numbers are those of the batch.
TEST_P(IpsecOn, NumbersAreInTheOrderOfFrames) {
  IpsecTrial out(tunnels("out"), gpu());
  std::vector<Bytes> clear;
  for (std::size_t i = 0; i < 300; ++i) clear.push_back(clear_frame(i % 2 * 3, 1300 - i * 4, false));
  const std::vector<Judged> sealed = out.seal(clear);
  std::uint32_t next[2] = {1, 1};
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    const std::uint8_t* const number = sealed[i].frame.data() + 14 + 20 + 4;
    EXPECT_EQ(number[2] * 256U + number[3], next[i % 2]++) << i;
  }
}

TEST_P(IpsecOn, CoresComputeWhatTheSettingsSay) {
  const std::vector<Bytes> clear = mixed_frames(200);
  IpsecTrial in(tunnels("in"));
  const auto expect_right = [&](IpsecTrial& out) {
    const std::vector<Judged> opened = in.open(frames_of(out.seal(clear)));
    for (std::size_t i = 0; i < clear.size(); ++i) {
      ASSERT_EQ(opened[i].name(), "passes") << i;
      EXPECT_EQ(packet_of(opened[i].frame), packet_of(clear[i])) << i;
    }
  };
  IpsecTrial small(tunnels("out", "gpu_at_least = 1000\n"), gpu());
  expect_right(small);
  const std::uint64_t of_small = small.metric("ipsec_of_small_batches");
  EXPECT_EQ(of_small + small.metric("ipsec_kept_from_device"), gpu() != nullptr ? 200U : 0U);
}

TEST_P(IpsecOn, CiphersOfCoresAreKeptFromTheGpu) {
  const std::vector<Bytes> clear = mixed_frames(200);
  IpsecTrial out(
      tunnels("out", "gpu_at_least = 1\ncores_compute = [\"aes-cbc\", \"aes-ctr\", \"aes-gcm\", \"null\"]\n"), gpu());
  IpsecTrial in(tunnels("in"));
  const std::vector<Judged> opened = in.open(frames_of(out.seal(clear)));
  for (std::size_t i = 0; i < clear.size(); ++i) {
    ASSERT_EQ(opened[i].name(), "passes") << i;
    EXPECT_EQ(packet_of(opened[i].frame), packet_of(clear[i])) << i;
  }
  EXPECT_EQ(out.metric("ipsec_kept_from_device"), gpu() != nullptr ? 200U : 0U);
}

// The last place of a full batch is the next one of the device's jobs and of the core's.
TEST_P(IpsecOn, TheLastPacketOfAFullBatchMayBeTheCores) {
  std::size_t of_cores = 0;
  while (suites[of_cores].on_gpus) ++of_cores;
  std::vector<Bytes> clear(IpsecTrial::capacity - 1, clear_frame(0, 300, false));
  clear.push_back(clear_frame(of_cores, 300, false));
  IpsecTrial out(tunnels("out"), gpu()), in(tunnels("in"), gpu());
  const std::vector<Judged> sealed = out.seal(clear);
  for (const Judged& one : sealed) ASSERT_EQ(one.name(), "passes");
  for (const Judged& one : in.open(frames_of(sealed))) ASSERT_EQ(one.name(), "passes");
  EXPECT_EQ(out.metric("ipsec_kept_from_device"), gpu() != nullptr ? 1U : 0U);
}

// Sealing in place cannot be done twice. What the GPU had nothing of goes on.
TEST_P(IpsecOn, OfABatchThatAGpuLosesOnlyItsOwnPacketsAreDropped) {
  if (gpu() == nullptr) GTEST_SKIP() << "there is nothing to lose";
  const std::vector<Bytes> clear = mixed_frames(200);
  std::size_t kept = 0;
  IpsecTrial out(tunnels("out"), gpu());
  for (const Judged& one : out.seal(clear, Work::lost)) {
    kept += one.name() == "passes" ? 1U : 0U;
    EXPECT_TRUE(one.name() == "passes" || one.name() == "device_lost") << one.name();
  }
  EXPECT_EQ(kept, out.metric("ipsec_kept_from_device"));
  IpsecTrial small(tunnels("out", "gpu_at_least = 1000\n"), gpu());
  for (const Judged& one : small.seal(clear, Work::lost)) EXPECT_EQ(one.name(), "passes");
}

TEST(IpsecElement, ResultsOfTheNullDeviceArePassed) {
  IpsecTrial out(tunnels("out"));
  for (const Judged& one : out.seal(mixed_frames(100), Work::null)) EXPECT_EQ(one.name(), "passes");
}

// As VXLAN does, in the same buffer.
TEST(IpsecElement, WhatATunnelMakesOfAPacketIsLookedAtAnew) {
  IpsecTrial out("[ipsec]\n" + tunnel(0, suites[0], "out"));
  const Bytes inner = PacketBuilder().ipv4("172.16.0.1", "172.16.0.2").udp(1000, 2000).payload(10).build();
  const Bytes other = PacketBuilder().ipv4("172.16.0.3", "172.16.0.4").udp(1000, 4789).payload(60).build();
  EXPECT_FALSE(out.leaves_wrapped(inner, clear_frame(0, 60, false)));
  EXPECT_TRUE(out.leaves_wrapped(inner, other));
}

// From one tunnel into another, as at a hub: the error quotes what is protected.
TEST(IpsecElement, AnErrorAboutSizeToASenderBehindAnSaIsSealed) {
  const std::string back =
      "[[ipsec.policy]]\ndirection = \"out\"\nsource = \"10.100.0.0/24\"\ndestination = \"10.0.0.0/16\"\n"
      "tunnel_source = \"192.0.2.1\"\ntunnel_destination = \"192.0.2.2\"\nreqid = 1\n";
  const std::vector<Bytes> large = {
      PacketBuilder().ipv4("10.0.0.5", "10.100.0.9").dont_fragment().udp(1000, 2000).payload(1460).build()};
  for (const bool is_behind : {false, true}) {
    IpsecTrial out("[ipsec]\n" + tunnel(0, suites[0], "out") + (is_behind ? back : ""));
    const std::vector<Judged> left = out.seal(large);
    ASSERT_EQ(left[0].name(), "passes");
    EXPECT_EQ(left[0].frame[14 + 9], is_behind ? 50 : 1);
    EXPECT_EQ(out.metric("ipsec_size_answers"), 1U);
  }
}

TEST(IpsecElement, NoSaInAndNoSaOutAreDroppedByDifferentNames) {
  std::string policy = tunnel(0, suites[0], "out");
  policy.erase(0, policy.find("[[ipsec.policy]]"));
  IpsecTrial without("[ipsec]\n" + policy), with("[ipsec]\n" + tunnel(0, suites[0], "out"));
  EXPECT_EQ(without.seal({clear_frame(0, 60, false)})[0].name(), "ipsec_no_sa_out");
  const std::vector<Bytes> sealed = frames_of(with.seal({clear_frame(0, 60, false)}));
  // No SA has taken it, and the router has found that it is for the host.
  EXPECT_EQ(without.seal(sealed, Work::done, 0, {engine::Fate::own, packet::no_reason, 0})[0].name(), "ipsec_no_sa_in");
}

// A router that says the same port of each row.
class SaysPort : public engine::Element, public engine::Egress {
 public:
  explicit SaysPort(std::uint16_t port) : port_(port) {}
  engine::Shape shape() const override { return {.ends_chain = true}; }
  void apply(engine::Batch&, engine::Span, engine::Emitter&) override {}
  void* find_trait(std::string_view name) override { return engine::offer<engine::Egress>(name, this); }
  std::uint16_t egress(const engine::Batch&, std::uint32_t) const override { return port_; }

 private:
  const std::uint16_t port_;
};

// Rows that the kernel is to forward say the port that they came by, whose MTU is 1,500: 1,438 bytes would fit.
TEST(IpsecElement, WhatTheKernelIsToForwardIsMeasuredByThePortThatItLeavesBy) {
  constexpr std::uint16_t of_1500 = 1, of_1400 = 2;
  struct Case {
    std::uint16_t port;
    std::size_t bytes;
    bool fits;
  };
  const Case cases[] = {{of_1400, 1326, true},
                        {of_1400, 1327, false},
                        {of_1500, 1438, true},
                        {of_1500, 1439, false},
                        {engine::no_port, 1500, true}};
  for (const Case& one : cases) {
    for (const packet::Reason reason : {unresolved, too_big}) {
      std::vector<std::unique_ptr<engine::Element>> elements;
      elements.push_back(std::make_unique<SaysPort>(one.port));
      engine::Pipeline behind(std::move(elements));
      IpsecTrial out("[ipsec]\n" + tunnel(0, suites[1], "out"), nullptr, &behind);
      const Bytes clear =
          PacketBuilder().ipv4("10.0.0.5", "10.100.0.9").dont_fragment().udp(1, 2).payload(one.bytes - 28).build();
      const auto left = out.seal({clear}, Work::done, 0, {engine::Fate::to_host, reason, 0});
      ASSERT_EQ(left[0].name(), "passes");
      EXPECT_EQ(left[0].frame[14 + 9], one.fits ? 50 : 1) << one.port << " " << one.bytes;
      EXPECT_EQ(out.metric("ipsec_size_answers"), one.fits ? 0U : 1U) << one.port << " " << one.bytes;
    }
  }
}

// What the host sends may be neighbour discovery. What it forwards only looks like it.
TEST(IpsecElement, NeighbourDiscoveryThatWasForwardedIsProtected) {
  IpsecTrial out(tunnels("out"));
  const auto solicitation = [](std::uint8_t hop_limit) {
    return PacketBuilder().ipv6("2001:db8:1::5", "2001:db8:100:1::9").ttl(hop_limit).icmp6(135, 0).payload(16).build();
  };
  const std::vector<Bytes> clear = {solicitation(255), solicitation(254)};
  const std::vector<Judged> left = out.seal(clear, Work::done, engine::no_port);
  EXPECT_EQ(left[0].frame, clear[0]);
  EXPECT_GT(left[1].frame.size(), clear[1].size());
}

TEST(IpsecElement, CiphersThatThereAreNotAreRefused) {
  Diagnostics diagnostics;
  auto file = Settings::from_text("[ipsec]\ncores_compute = [\"aes-gcm\", \"des\"]\n", "a.toml", diagnostics);
  ASSERT_TRUE(file);
  Settings section = file->section("ipsec");
  read_ipsec(section);
  ASSERT_EQ(diagnostics.lines.size(), 1U);
  EXPECT_NE(diagnostics.lines.front().find("there is no \"des\": write a list of"), std::string::npos)
      << diagnostics.lines.front();
}

}  // namespace
}  // namespace sluice::function::test
