// The pipeline of the chain: its elements' sections are part of the file, with the same lines for its mistakes.
#include "control/pipeline_maker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "control/config.h"
#include "control/sample_config.h"
#include "engine/jobs.h"

namespace sluice::control {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(PipelineMaker, AllMistakesAreFoundInOnePassAndSaidByLine) {
  Config bad = Config::from_text("[probe]\ndepth = 10\n[engine]\nchain = [\"probe\"]\nbatch = 1\n" + good_port +
                                     "mtu = 20\n[log]\nlevel = \"loud\"\n[nowhere]\n",
                                 "r.toml");
  bad.add_problem("routes.txt:1: of another file");
  EXPECT_FALSE(make_checked_pipeline(bad, described_ports(bad.engine)));
  std::vector<unsigned> lines;
  std::istringstream all(bad.mistakes());
  for (std::string line; std::getline(all, line);) {
    unsigned number = 0;
    if (std::sscanf(line.c_str(), "r.toml:%u:", &number) == 1) lines.push_back(number);
  }
  EXPECT_THAT(lines, ElementsAre(2, 5, 9, 11, 12)) << bad.mistakes();
  EXPECT_TRUE(bad.mistakes().ends_with("\nroutes.txt:1: of another file"));
}

TEST(PipelineMaker, AFunctionThatThereIsNotIsOneLine) {
  for (const std::string name : {"nat", "prob", ""}) {
    Config config = Config::from_text("[engine]\nchain = [\"" + name + "\"]\n" + good_port, "r.toml");
    EXPECT_FALSE(make_checked_pipeline(config, described_ports(config.engine)));
    EXPECT_FALSE(make_pipeline(config, described_ports(config.engine)));
    EXPECT_TRUE(config.mistakes().starts_with("r.toml:2: [engine] chain = [ \"" + name + "\" ]: unknown function"))
        << config.mistakes();
    EXPECT_EQ(config.mistakes().find('\n'), std::string::npos);
  }
}

// What stands in front stays there.
TEST(PipelineMaker, AProxyWithoutARouterIsShownAChainThatHasOne) {
  for (const std::string front : {"\"srtp\"", "\"acl\", \"srtp\""}) {
    Config config =
        Config::from_text("[engine]\nchain = [" + front + ", \"bridge\"]\n[srtp]\n[srtp.rtsp]\n" +
                              "servers = [\"192.0.2.0/24\"]\n[acl]\nrule = [{action = \"permit\"}]\n" + good_port,
                          "r.toml");
    EXPECT_FALSE(make_pipeline(config, described_ports(config.engine)));
    EXPECT_THAT(
        config.mistakes(),
        testing::HasSubstr("rtsp: the proxy needs a router, which is the last function: set [engine] chain = [" +
                           front + ", \"route\"]"));
  }
}

// Which a router hands to the host as it comes, so that the element would not see it.
TEST(PipelineMaker, AStreamToManyHostsStandsBeforeNoRouter) {
  for (const std::string destination : {"239.1.1.1", "ff0e::1", "255.255.255.255", "10.2.0.2"}) {
    const bool six = destination.find(':') != std::string::npos;
    for (const std::string last : {"route", "bridge"}) {
      Config config = Config::from_text(
          "[engine]\nchain = [\"srtp\", \"" + last + "\"]\n[[srtp.stream]]\naction = \"protect\"\nsource = \"" +
              (six ? "2001:db8::1" : "10.1.0.2") + "\"\nsource_port = 5004\ndestination = \"" + destination +
              "\"\ndestination_port = 5004\ncrypto = \"1 AES_CM_128_HMAC_SHA1_80 "
              "inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj\"\n" +
              good_port,
          "r.toml");
      (void)make_pipeline(config, described_ports(config.engine));
      const bool refused = config.mistakes().starts_with("r.toml:7: [[srtp.stream]] destination") &&
                           config.mistakes().find("is of many hosts: a router leaves") != std::string::npos;
      EXPECT_EQ(refused, last == "route" && destination != "10.2.0.2") << destination << ' ' << config.mistakes();
    }
  }
}

TEST(PipelineMaker, PortsAreDescribedAsTheyWillBe) {
  const Config config = Config::from_text(
      "[engine]\nchain = [\"probe\"]\n[[port]]\nname = \"a\"\ndevice = \"net_null0\"\nqueues = 2\nmtu = 1400\n"
      "peer = \"a\"\ntwin = \"sl-a\"\naddress = [\"10.0.0.1/24\"]\n"
      "[[port]]\nname = \"b\"\ndevice = \"net_null1\"\nlanes = 3\n",
      "r.toml");
  const engine::PortTable ports = described_ports(config.engine);
  ASSERT_EQ(ports.size(), 2U);
  EXPECT_EQ(ports[0].name, "a");
  EXPECT_EQ(ports[0].mtu, 1400U);
  EXPECT_EQ(ports[0].peer, 0);
  EXPECT_TRUE(ports[0].names_peer);
  ASSERT_EQ(ports[0].addresses.size(), 1U);
  EXPECT_EQ(ports[0].addresses[0].str(), "10.0.0.1");
  EXPECT_EQ(ports[0].lanes, 2U);
  EXPECT_EQ(ports[1].peer, 0);
  EXPECT_FALSE(ports[1].names_peer);
  engine::Options changed = config.engine;
  changed.ports[0].addresses[0].address = *packet::IpAddress::parse("10.0.0.9");
  const engine::PortTable later = with_addresses(ports, changed);
  EXPECT_EQ(later[0].addresses[0].str(), "10.0.0.9");
  EXPECT_TRUE(later[1].addresses.empty());
  EXPECT_EQ(ports[1].lanes, 3U);
}

TEST(PipelineMaker, AddsTheFunctionsMistakesToTheFiles) {
  Config good = Config::from_text(with_chain("[probe]\ndepth = 3\n") + good_port, "r.toml");
  EXPECT_TRUE(make_pipeline(good, described_ports(good.engine)));
  EXPECT_TRUE(good.ok());

  Config bad = Config::from_text(with_chain("[probe]\ndepht = 3\ndepth = 10\n") + good_port, "r.toml");
  ASSERT_TRUE(bad.ok());
  const auto refused = make_pipeline(bad, described_ports(bad.engine));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, bad.mistakes());
  EXPECT_THAT(bad.diagnostics().lines,
              ElementsAre("r.toml:4: [probe] depth = 10: allowed is a whole number from 1 to 9",
                          "r.toml:3: [probe] depht = 3: unknown key; did you mean \"depth\"?"));

  Config failing = Config::from_text(with_chain("[probe]\nfail = true\n") + good_port, "r.toml");
  const auto pipeline = make_pipeline(failing, described_ports(failing.engine));
  ASSERT_FALSE(pipeline);
  EXPECT_EQ(pipeline.error().message, "r.toml:2: [probe]: cannot be made with 1 ports");
}

class Submitter final : public engine::Element, public engine::JobUser {
 public:
  void apply(engine::Batch&, engine::Span, engine::Emitter&) override {}
  void* find_trait(std::string_view name) override { return engine::offer<engine::JobUser>(name, this); }
  std::vector<engine::JobKindType> job_kinds() const override { return {}; }
  Expected<void> use_queues(std::span<engine::JobQueue* const>) override { return {}; }
};

const bool submitter_registered = engine::register_element(
    {.name = "submitter",
     .text = "submits jobs",
     .make = [](Settings&, const engine::PortTable&) -> Expected<std::unique_ptr<engine::Element>> {
       return std::make_unique<Submitter>();
     }});

// An engine is made of options that say so, and the bound has the jobs' slice in it.
TEST(PipelineMaker, OptionsSayWhetherTheChainSubmitsJobs) {
  EXPECT_TRUE(submitter_registered);
  for (const bool submits : {true, false}) {
    const std::string engine = "[engine]\npoll = \"busy\"\ncycle = \"325us\"\nchain = [" +
                               std::string(submits ? "\"submitter\", " : "") + "\"probe\"]\n";
    Config config = Config::from_text(engine + good_port, "r.toml");
    EXPECT_TRUE(config.ok()) << config.mistakes();
    const auto made = make_checked_pipeline(config, described_ports(config.engine));
    EXPECT_EQ(config.engine.jobs, submits);
    EXPECT_EQ(made.has_value(), !submits);
    if (submits) {
      EXPECT_TRUE(config.mistakes().starts_with(
          "r.toml:3: [engine] cycle = \"325us\": the bound of this configuration, (2 + 1 + 3/16)*cycle"))
          << config.mistakes();
    }
  }
}

// Of any function: nothing here knows the router.
TEST(PipelineMaker, TablesAreReadAndHeldAgainstTheMemory) {
  Config config = Config::from_text(with_chain("[probe]\nmegabytes = 4096\n") + good_port, "r.toml");
  EXPECT_FALSE(make_checked_pipeline(config, described_ports(config.engine)));
  EXPECT_THAT(config.diagnostics().lines,
              ElementsAre("r.toml:3: [probe] megabytes = 4096: the tables need 4096M and the frames 37M, and [memory] "
                          "size is 2048M: lower depth or megabytes, or raise [memory] size to \"4133M\"",
                          "probe.txt:1: is wrong", "probe.txt:2: too"));

  Config by_size =
      Config::from_text(with_chain("memory.size = \"64M\"\n[probe]\nlarge = true\n") + good_port, "r.toml");
  EXPECT_FALSE(make_checked_pipeline(by_size, described_ports(by_size.engine)));
  EXPECT_EQ(
      by_size.diagnostics().lines.at(0),
      "r.toml:2: [memory] size = \"64M\": the tables need 4096M and the frames 37M: raise it to \"4133M\", or set "
      "a lower [probe] depth or megabytes");

  Config stopped = Config::from_text(with_chain("[probe]\nmegabytes = 1\n") + good_port, "r.toml");
  std::string reported;
  const auto pipeline = make_checked_pipeline(
      stopped, described_ports(stopped.engine), [&](std::string_view what, std::size_t done, std::size_t total) {
        reported = std::string(what) + std::to_string(done) + std::to_string(total);
        return false;
      });
  ASSERT_FALSE(pipeline);
  EXPECT_EQ(reported, "probing12");
  EXPECT_EQ(pipeline.error().message, "r.toml: interrupted");
}

TEST(PipelineMaker, PortsHaveTheirPeers) {
  const auto peers = [](const std::string& ports) {
    const Config config = Config::from_text(with_chain(ports), "r.toml");
    EXPECT_THAT(config.diagnostics().lines, IsEmpty());
    const engine::PortTable table = described_ports(config.engine);
    std::vector<unsigned> result;
    for (std::size_t i = 0; i < table.size(); ++i) result.push_back(table[i].peer);
    return result;
  };
  const auto port = [](const std::string& name, const std::string& rest) {
    return "[[port]]\nname = \"" + name + "\"\ndevice = \"replay\"\n" + rest;
  };
  EXPECT_THAT(peers(port("a", "")), ElementsAre(0));
  EXPECT_THAT(peers(port("a", "") + port("b", "")), ElementsAre(1, 0));
  EXPECT_THAT(peers(port("a", "") + port("b", "peer = \"b\"\n")), ElementsAre(1, 1));
  EXPECT_THAT(peers(port("a", "peer = \"c\"\n") + port("b", "") + port("c", "")), ElementsAre(2, 1, 2));
}

}  // namespace
}  // namespace sluice::control
