// A chain of rules, patterns and the router, from capture to capture: on the CPU, with a kernel for each part, and with
// one for all, the same frames leave and the same are dropped for the same reasons.
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "function/acl/acl_trial_test.h"
#include "function/fused/fused.h"
#include "function/route/route.h"
#include "match/automaton/gpu_matcher.h"
#include "match/automaton/reference_test.h"

namespace sluice::function {
namespace {

const packet::Reason holds_pattern = packet::register_reason("test_pattern", "it holds a pattern");

// Drops the frames that hold a pattern.
class Patterns final : public engine::Element, public Fusable {
 public:
  static inline std::atomic<unsigned> launched{0}, joined{0};  // batches of all of them

  engine::Shape shape() const override {
    return {.bytes_per_frame = 4 + 4 * match::max_hits + sizeof(match::Span) + 1,
            .payloads = engine::Payloads::read,
            .on_device = true};
  }
  void* find_trait(std::string_view name) override { return engine::offer<Fusable>(name, this); }
  Expected<void> attach(device::Gpu& gpu, const engine::DevicePlan&) override {
    auto made = match::GpuMatcher::create(gpu, match::GramTable(keys_));
    if (!made) return tl::unexpected(made.error());
    matcher_ = std::move(*made);
    return {};
  }
  void classify(engine::Batch& batch, engine::Span span) override {
    const match::MatchBatch all = batch_of(batch);
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      const_cast<match::Span*>(all.span)[i] = {14, batch.length[i]};
      const_cast<std::uint8_t*>(all.klass)[i] = 0;
    }
  }
  Expected<void> launch(engine::Batch& batch, device::GpuStream& stream) override {
    ++launched;
    return matcher_->match(batch_of(batch), stream);
  }
  bool join(const engine::Batch& batch, FusedWork& work) override {
    ++joined;
    work.match = {matcher_->view(), batch_of(batch)};
    return true;
  }
  void compute(engine::Batch& batch, engine::Span span) override {
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      const std::string payload(reinterpret_cast<const char*>(batch.frame[i]) + 14, batch.length[i] - 14U);
      batch_of(batch).found[i] = static_cast<std::uint32_t>(match::test::keys_in(keys_, payload, 0).size());
    }
  }
  void apply(engine::Batch& batch, engine::Span span, engine::Emitter&) override {
    for (std::uint32_t i = span.first; i < span.end(); ++i) {
      if (batch.is_live(i) && batch_of(batch).found[i] != 0) batch.drop(i, holds_pattern);
    }
  }

 private:
  match::MatchBatch batch_of(const engine::Batch& batch) const {
    auto* const found = reinterpret_cast<std::uint32_t*>(area(batch));
    auto* const key = found + batch.capacity;
    auto* const span = reinterpret_cast<match::Span*>(key + std::size_t{batch.capacity} * match::max_hits);
    auto* const klass = reinterpret_cast<std::uint8_t*>(span + batch.capacity);
    return {batch.frame, span, klass, found, key, batch.count, batch.bytes};
  }

  const match::KeySet keys_{std::vector<match::Pattern>{{"attack!", true}, {"/etc/passwd"}}};
  std::unique_ptr<match::GpuMatcher> matcher_;
};

// What the engine reports of all frames, and what left.
struct Made {
  std::vector<Bytes> sent;
  std::vector<std::uint64_t> drops;
  engine::CountedRules::Listing counted;
};

void expect_same(const Made& made, const Made& expected, const char* how) {
  for (std::size_t i = 0; i < expected.drops.size(); ++i) {
    EXPECT_EQ(made.drops[i], expected.drops[i])
        << how << ": " << packet::reason_name(static_cast<packet::Reason>(i + 1));
  }
  ASSERT_EQ(made.counted.rules.size(), expected.counted.rules.size());
  for (std::size_t i = 0; i < expected.counted.rules.size(); ++i) {
    EXPECT_EQ(made.counted.rules[i].frames, expected.counted.rules[i].frames) << how << ": rule " << i + 1;
    EXPECT_EQ(made.counted.rules[i].bytes, expected.counted.rules[i].bytes) << how << ": rule " << i + 1;
  }
  EXPECT_EQ(made.counted.unmatched.frames, expected.counted.unmatched.frames) << how;
  EXPECT_EQ(made.counted.unmatched.bytes, expected.counted.unmatched.bytes) << how;
  EXPECT_TRUE(made.sent == expected.sent) << how << ": " << made.sent.size() << " and not " << expected.sent.size();
}

std::vector<Bytes> frames() {
  std::mt19937 random(3);
  std::vector<Bytes> out;
  for (unsigned i = 0; i < 900; ++i) {
    static constexpr const char* to4[] = {"10.2.0.2", "10.2.0.3", "198.51.100.9"};
    static constexpr const char* to6[] = {"2001:db8:2::2", "2001:db8:2::3", "2001:db8:9::1"};
    PacketBuilder frame;
    if (random() % 3 == 0) {
      frame.ipv6("2001:db8:1::9", to6[random() % 3]);
    } else {
      frame.ipv4("10.1.0.9", to4[random() % 3]);
    }
    std::string text = "number " + std::to_string(i) + std::string(random() % 300, '.');
    if (random() % 4 == 0) text.insert(random() % text.size(), random() % 2 == 0 ? "ATTACK!" : "/etc/passwd");
    const bool cut = random() % 10 == 0;  // no flags
    if (cut) {
      frame.protocol(6).payload(Bytes(8));
    } else {
      frame.tcp(static_cast<std::uint16_t>(1024 + i), random() % 4 == 0 ? 22 : 80)
          .payload(Bytes(text.begin(), text.end()));
    }
    out.push_back(frame.build());
  }
  return out;
}

Made run(const std::string& device, bool fused, bool patterns_first) {
  const auto make = [&](const engine::PortTable& ports) -> std::unique_ptr<engine::Pipeline> {
    Router::RouterOptions options;
    options.max_ipv4 = options.max_ipv6 = 10'000;
    options.kernel = false;
    options.any_mac = true;
    for (const char* prefix : {"10.2.0.0/24", "2001:db8:2::/64"}) {
      options.statics.connected.push_back({1, *packet::IpPrefix::parse(prefix)});
    }
    for (const char* address : {"10.2.0.2", "10.2.0.3", "2001:db8:2::2", "2001:db8:2::3"}) {
      const auto number = static_cast<std::uint8_t>(options.statics.neighbours.size());
      options.statics.neighbours.push_back(
          {1, *packet::IpAddress::parse(address), packet::MacAddress{{2, 0, 0, 0, 1, number}}});
    }
    std::vector<std::unique_ptr<engine::Element>> elements;
    elements.push_back(std::make_unique<AwaitGpu>());
    if (patterns_first) elements.push_back(std::make_unique<Patterns>());
    elements.push_back(acl_of(R"(
[[acl.rule]]
protocol = "tcp"
destination_port = "22"
action = "deny"
[[acl.rule]]
destination = "10.2.0.3"
action = "mark"
mark = 10
[[acl.rule]]
destination = "2001:db8:2::2"
action = "permit"
)"));
    if (!patterns_first) elements.push_back(std::make_unique<Patterns>());
    elements.push_back(std::make_unique<Router>(options, ports));
    return std::make_unique<engine::Pipeline>(std::move(elements), fused);
  };
  const Outcome outcome = AclTrial(device).run(frames(), make);
  Made made{outcome.sent, {}, outcome.counted};
  for (Bytes& frame : made.sent) std::fill_n(frame.begin() + 6, 6, std::uint8_t{0});  // the port's, another each time
  for (packet::Reason reason = 1; reason < packet::reason_count(); ++reason) {
    made.drops.push_back(outcome.stats.drops[reason]);
  }
  if (device != "cpu") {
    EXPECT_GE(outcome.stats.total.frames_gpu, frames().size());
  }
  return made;
}

// Rules count the frames that they are asked about: all that are not malformed, and that patterns in front let go on.
void expect_all_counted(const Made& made, bool patterns_first) {
  ASSERT_EQ(made.counted.rules.size(), 3U);
  EXPECT_EQ(made.counted.rules[0].frames, made.drops[acl_denied - 1]);
  std::uint64_t counted = made.counted.unmatched.frames;
  for (const engine::CountedRule& rule : made.counted.rules) {
    EXPECT_GT(rule.frames, 20U);
    counted += rule.frames;
  }
  const std::uint64_t before = patterns_first ? made.drops[holds_pattern - 1] : 0;
  EXPECT_EQ(counted, frames().size() - made.drops[acl_malformed - 1] - before);
}

TEST(FusedKernelInAPipeline, MakesOfFramesWhatThePartsMakeOfThem) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const Made expected = run("cpu", true, false);
  EXPECT_GT(expected.sent.size(), 200U);
  EXPECT_GT(expected.drops[acl_denied - 1], 100U);
  EXPECT_GT(expected.drops[acl_malformed - 1], 50U);
  EXPECT_GT(expected.drops[holds_pattern - 1], 100U);
  expect_all_counted(expected, false);
  for (const bool fused : {false, true}) {
    Patterns::launched = Patterns::joined = 0;
    expect_same(run("cuda:0", fused, false), expected, fused ? "fused" : "one after the other");
    EXPECT_EQ(Patterns::launched > 0, !fused);
    EXPECT_EQ(Patterns::joined > 0, fused);
  }
}

// Rules behind the patterns hide nothing from them.
TEST(FusedKernelInAPipeline, IsNoneWhereRulesStandBehindPatterns) {
  if (const std::string why = test::why_no_gpu(); !why.empty()) GTEST_SKIP() << why;
  const Made expected = run("cpu", true, true);
  EXPECT_LT(expected.drops[acl_denied - 1], run("cpu", true, false).drops[acl_denied - 1]) << "of those with both";
  expect_all_counted(expected, true);
  Patterns::launched = Patterns::joined = 0;
  expect_same(run("cuda:0", true, true), expected, "one after the other");
  EXPECT_GT(Patterns::launched, 0U);
}

}  // namespace
}  // namespace sluice::function
