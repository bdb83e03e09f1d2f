// The element in chains on an engine: what copies hold where an element changes payloads, and what passes it takes.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/settings.h"
#include "engine/pipeline.h"
#include "engine/port_table.h"
#include "function/acl/acl_trial_test.h"
#include "function/srtp/srtp_trial_test.h"

namespace sluice::function {
namespace {

std::unique_ptr<engine::Element> mirror_of(const engine::PortTable& ports) {
  Diagnostics diagnostics;
  auto file = Settings::from_text(
      "[[mirror.session]]\nname = \"a\"\nfrom = [\"in\"]\ndirection = \"rx\"\nto = \"out\"\n", "m.toml", diagnostics);
  EXPECT_TRUE(file);
  Settings section = file->section("mirror");
  auto element = engine::find_element("mirror")->make(section, ports);
  section.finish();
  EXPECT_EQ(diagnostics.lines, std::vector<std::string>());
  return std::move(*element);
}

// Frames come in by "in" and go back; copies leave by "out".
std::unique_ptr<engine::Pipeline> with_mirror(bool in_front, const engine::PortTable& ports) {
  std::vector<std::unique_ptr<engine::Element>> elements;
  elements.push_back(std::make_unique<AwaitGpu>());
  if (in_front) elements.push_back(mirror_of(ports));
  elements.push_back(srtp_of(stream_text("protect")));
  if (!in_front) elements.push_back(mirror_of(ports));
  elements.push_back(std::make_unique<Bridge>(std::vector<std::uint16_t>{0, 0}));
  return std::make_unique<engine::Pipeline>(std::move(elements));
}

std::vector<Bytes> media() {
  std::vector<Bytes> all;
  for (std::uint16_t i = 0; i < 100; ++i) all.push_back(udp_frame(rtp(i, 300)).build());
  return all;
}

std::vector<Bytes> longer_than(std::size_t least, const std::vector<Bytes>& frames) {
  std::vector<Bytes> longer;
  for (const Bytes& frame : frames) {
    if (frame.size() > least) longer.push_back(frame);
  }
  return longer;
}

class MirrorChain : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (const std::string why = missing(GetParam()); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(MirrorChain, InFrontOfSrtpCopiesAreInClear) {
  const std::vector<Bytes> clear = media();
  const Outcome out =
      AclTrial(GetParam()).run(clear, [](const engine::PortTable& ports) { return with_mirror(true, ports); });
  EXPECT_EQ(out.metrics.at("srtp_protected_rtp"), clear.size());
  EXPECT_EQ(out.metrics.at("mirror_skipped_frames"), 0U);
  EXPECT_EQ(longer_than(300, out.sent), clear);
  EXPECT_EQ(longer_than(300, out.back).size(), clear.size());
  for (const Bytes& frame : longer_than(300, out.back))
    EXPECT_GT(frame.size(), clear.front().size()) << "without a tag";
}

TEST_P(MirrorChain, BehindSrtpCopiesAreProtected) {
  const std::vector<Bytes> clear = media();
  const Outcome out =
      AclTrial(GetParam()).run(clear, [](const engine::PortTable& ports) { return with_mirror(false, ports); });
  EXPECT_EQ(longer_than(300, out.back).size(), clear.size());
  EXPECT_EQ(longer_than(300, out.sent), longer_than(300, out.back));
}

INSTANTIATE_TEST_SUITE_P(Devices, MirrorChain, testing::Values("cpu", "cuda:0"),
                         [](const auto& info) { return info.param.substr(0, info.param.find(':')); });

TEST(MirrorPasses, AreMoreInFrontOfWhatChangesPayloadsAlone) {
  const engine::PortTable ports({{.name = "in", .mac = {}}, {.name = "out", .mac = {}}});
  EXPECT_EQ(with_mirror(true, ports)->passes(), 2U);
  EXPECT_EQ(with_mirror(false, ports)->passes(), 1U);
  EXPECT_EQ(before_bridge(mirror_of(ports))->passes(), 1U);
}

}  // namespace
}  // namespace sluice::function
