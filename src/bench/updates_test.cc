// Streams of updates, their pace, and what a table holds after them: in a running router on each device.
#include "bench/updates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "bench/verify_table.h"

namespace sluice::cli::bench {
namespace {

using testing::HasSubstr;
constexpr RouterTable::Size small{3000, 1000};

class UpdatesFile : public testing::Test {
 protected:
  UpdatesFile() : path_(testing::TempDir() + "sluice_updates_" + std::to_string(getpid()) + ".txt") {}
  ~UpdatesFile() override { unlink(path_.c_str()); }
  Expected<std::vector<Update>> read(const std::string& text) {
    std::ofstream(path_) << text;
    return read_updates(path_);
  }
  std::string path_;
};

TEST_F(UpdatesFile, KeepsTheFilesTimeAndSpreadsWholeSeconds) {
  const auto updates = read(
      "BGP4MP|100|A|192.0.2.1|1|20.0.0.0/8|1|IGP|192.0.2.1|0|0||NAG||\n"
      "BGP4MP|100|A|192.0.2.1|1|21.0.0.0/8|1|IGP|192.0.2.2|0|0||NAG||\n"
      "BGP4MP|102.25|W|192.0.2.1|1|20.0.0.0/8\n"
      "BGP4MP|90|A|192.0.2.1|1|22.0.0.0/8|1|IGP|192.0.2.1|0|0||NAG||\n");
  ASSERT_TRUE(updates) << updates.error().message;
  ASSERT_EQ(updates->size(), 4U);
  const double seconds[] = {0, 0.5, 2.25, 2.25};
  for (unsigned i = 0; i < 4; ++i) {
    EXPECT_EQ((*updates)[i].seconds, seconds[i]) << i;
  }
  EXPECT_EQ((*updates)[0].gateway, (*updates)[3].gateway);
  EXPECT_NE((*updates)[0].gateway, (*updates)[1].gateway);
  EXPECT_EQ((*updates)[2].gateway, 0);
  EXPECT_THAT(read("").error().message, HasSubstr("has no updates"));
  EXPECT_THAT(read("BGP4MP|1|X\n").error().message, HasSubstr(":1: 'X' is not A, W or STATE"));
}

TEST(Updates, MadeUpOnesAreTheSameAndOfEveryKind) {
  const auto updates = make_updates(2000, 1000, 5, small);
  ASSERT_EQ(updates.size(), 2000U);
  EXPECT_DOUBLE_EQ(updates.back().seconds, 1.999);
  unsigned withdrawn = 0;
  unsigned ipv6 = 0;
  for (const Update& update : updates) {
    withdrawn += update.gateway == 0;
    ipv6 += update.prefix.address.family == 6;
  }
  EXPECT_GT(withdrawn, 400U);
  EXPECT_LT(withdrawn, 1000U);
  EXPECT_NEAR(ipv6, 400, 100);
  EXPECT_EQ(make_updates(2000, 1000, 5, small).back().prefix, updates.back().prefix);
}

TEST(Pace, IsTheStreamsOwnAFigureOrTheMost) {
  EXPECT_EQ(Pace::parse("own")->kind, Pace::Kind::own);
  EXPECT_EQ(Pace::parse("max")->kind, Pace::Kind::most);
  EXPECT_EQ(Pace::parse("250.5")->per_second, 250.5);
  for (const char* wrong : {"", "0", "-1", "fast", "5x", "nan"}) {
    ASSERT_FALSE(Pace::parse(wrong)) << wrong;
    EXPECT_EQ(Pace::parse(wrong).error().message, "--pace " + std::string(wrong) + ": own, max, or updates per second");
  }
}

class RunningRouter : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    BenchOptions options;
    options.lanes = 1;
    options.frames = 512;
    options.batch = 256;
    options.deadline_ms = 20;
    auto table = RouterTable::make({}, small);
    ASSERT_TRUE(table) << table.error().message;
    table_ = std::move(*table);
    auto rig = Rig::make(router_rig(options, *table_, 4, engine::Mode::full, GetParam()));
    ASSERT_TRUE(rig) << rig.error().message;
    rig_ = std::move(*rig);
    rig_->engine().start();
  }
  function::Router& router() { return static_cast<function::Router&>(*rig_->engine().pipeline().elements().back()); }
  std::unique_ptr<RouterTable> table_;
  std::unique_ptr<Rig> rig_;
};

TEST_P(RunningRouter, AfterTheUpdatesTheTableIsAsIfBuiltFromScratch) {
  const auto updates = make_updates(4000, 1000, 5, small);
  Updater updater(router().table(), updates, {Pace::Kind::most, 0});
  ASSERT_TRUE(updater.run([&] { return updater.applied() + updater.unknown() >= 6000; }));
  EXPECT_GT(updater.applied() + updater.unknown(), updates.size());  // round again
  EXPECT_LT(updater.announced(), updater.applied());
  auto same = verify_table(router(), *table_, updater.state());
  ASSERT_TRUE(same) << same.error().message;
  EXPECT_GT(*same, 4 * updater.state().size());
  // One change that the stream knows nothing of is found out.
  const auto& [prefix, gateway] =
      *std::find_if(updater.state().begin(), updater.state().end(), [](const auto& one) { return one.second != 0; });
  ASSERT_TRUE(router().table().remove_route(prefix, 7));
  same = verify_table(router(), *table_, updater.state());
  ASSERT_FALSE(same) << prefix.str() << " through " << unsigned{gateway};
  EXPECT_THAT(same.error().message, HasSubstr("a table built from scratch"));
  EXPECT_TRUE(rig_->finish());
}

TEST_P(RunningRouter, UpdatesComeAtTheirPace) {
  using Clock = std::chrono::steady_clock;
  const auto count_in = [&](Pace pace) {
    Updater updater(router().table(), make_updates(1000, 200, 5, small), pace);
    const auto end = Clock::now() + std::chrono::milliseconds(500);
    EXPECT_TRUE(updater.run([&] { return Clock::now() >= end; }));
    for (const auto& [prefix, gateway] : updater.state()) {
      EXPECT_TRUE(gateway == 0 || router().table().remove_route(prefix, 7));
    }
    return updater.applied();
  };
  EXPECT_NEAR(count_in({}), 100, 30);
  EXPECT_NEAR(count_in({Pace::Kind::fixed, 1000}), 500, 100);
  EXPECT_GT(count_in({Pace::Kind::most, 0}), 2000U);
  EXPECT_TRUE(rig_->finish());
}

INSTANTIATE_TEST_SUITE_P(Devices, RunningRouter, testing::Values("cpu", "cuda:0"),
                         [](const auto& info) { return std::string(info.param) == "cpu" ? "Cpu" : "Gpu"; });

}  // namespace
}  // namespace sluice::cli::bench
