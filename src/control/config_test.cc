// The file as a whole: what its keys become, and that each mistake is one line.
#include "control/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/chain_hints.h"
#include "control/config_json.h"
#include "control/pipeline_maker.h"
#include "control/sample_config.h"

namespace sluice::control {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Config, DefaultsAreTheOptionsOwn) {
  ASSERT_TRUE(probe_registered);
  const Config config = Config::from_text("[engine]\nchain = [\"probe\"]\n" + good_port, "r.toml");
  EXPECT_THAT(config.diagnostics().lines, IsEmpty());
  const engine::Options defaults;
  EXPECT_EQ(config.engine.device, "auto");
  EXPECT_EQ(config.engine.deadline, defaults.deadline);
  EXPECT_EQ(config.engine.cycle, 0ns);
  EXPECT_EQ(config.engine.cpu_below, -1);
  EXPECT_FALSE(config.engine.allow_busy_cores);
  EXPECT_THAT(config.engine.cores, IsEmpty());
  EXPECT_EQ(config.engine.memory.size, 2048ULL << 20);
  ASSERT_EQ(config.engine.ports.size(), 1U);
  EXPECT_EQ(config.engine.ports[0].mtu, 1500U);
  EXPECT_TRUE(config.engine.ports[0].promiscuous);
  EXPECT_EQ(config.api.listen, "127.0.0.1:9230");
  EXPECT_EQ(config.log.level, "info");
}

constexpr const char* every_key = R"(
[engine]
device = "cuda:1"
deadline = "5ms"
cycle = "1ms"
overlap = 2
stagger = true
batch = 8192
batches = 8
streams = 6
poll = "busy"
cores = [2, 3]
worker_core = 4
busy_cores = "allow"
forwarder_cores = [6, 7]
scheduling = "realtime"
admission = "all"
mode = "zero-load"
cpu_below = 100
chain = ["probe"]
[memory]
hugepages = "off"
size = "256M"
frames = 8192
frame_bytes = 4096
[[port]]
name = "left"
device = "net_af_packet0,iface=veth0"
queues = 2
lanes = 4
mtu = 2000
twin = "twin0"
peer = "right"
descriptors = 512
promiscuous = false
[[port]]
name = "right"
device = "0000:3b:00.0"
[probe]
depth = 3
[api]
listen = "0.0.0.0:80"
allow_remote = true
[log]
level = "debug"
file = "/tmp/x.log"
format = "json"
)";

TEST(Config, EveryKeyIsRead) {
  const Config config = Config::from_text(every_key, "r.toml");
  EXPECT_THAT(config.diagnostics().lines, IsEmpty());
  const engine::Options& e = config.engine;
  EXPECT_EQ(e.device, "cuda:1");
  EXPECT_EQ(e.deadline, 5ms);
  EXPECT_EQ(e.cycle, 1ms);
  EXPECT_EQ(e.overlap, 2U);
  EXPECT_EQ(e.stagger, engine::Stagger::on);
  EXPECT_EQ(e.batch, 8192U);
  EXPECT_EQ(e.batches, 8U);
  EXPECT_EQ(e.streams, 6U);
  EXPECT_EQ(e.poll, engine::Poll::busy);
  EXPECT_THAT(e.cores, ElementsAre(2, 3));
  EXPECT_THAT(e.forwarder_cores, ElementsAre(6, 7));
  EXPECT_EQ(e.scheduling, engine::Scheduling::realtime);
  EXPECT_EQ(e.admission, engine::Admit::all);
  EXPECT_EQ(e.worker_core, 4);
  EXPECT_TRUE(config.engine.allow_busy_cores);
  EXPECT_EQ(e.mode, engine::Mode::zero_load);
  EXPECT_EQ(e.cpu_below, 100);
  EXPECT_THAT(e.chain, ElementsAre("probe"));
  EXPECT_EQ(e.memory.hugepages, port::Hugepages::off);
  EXPECT_EQ(e.memory.size, 256ULL << 20);
  EXPECT_EQ(e.memory.frames, 8192U);
  EXPECT_EQ(e.memory.frame_bytes, 4096U);
  ASSERT_EQ(e.ports.size(), 2U);
  EXPECT_EQ(e.ports[0].name, "left");
  EXPECT_EQ(e.ports[0].device, "net_af_packet0,iface=veth0");
  EXPECT_EQ(e.ports[0].queues, 2U);
  EXPECT_EQ(e.ports[0].lanes, 4U);
  EXPECT_EQ(e.ports[1].lanes, 1U);
  EXPECT_EQ(e.ports[0].mtu, 2000U);
  EXPECT_EQ(e.ports[0].twin, "twin0");
  EXPECT_EQ(e.ports[0].peer, "right");
  EXPECT_EQ(e.ports[0].descriptors, 512U);
  EXPECT_FALSE(e.ports[0].promiscuous);
  EXPECT_EQ(config.api.listen, "0.0.0.0:80");
  EXPECT_EQ(config.log.level, "debug");
  EXPECT_EQ(config.log.file, "/tmp/x.log");
  EXPECT_EQ(config.log.format, "json");
}

struct BadCase {
  const char* text;  // after the chain and before one good port
  std::vector<std::string> lines;
};

TEST(Config, EachMistakeIsOneLine) {
  const std::string devices =
      "\"auto\", \"cpu\", or \"cuda:N\" with N from 0 to 15, or a list of GPUs, each once, and \"cpu\": "
      "[\"cuda:0\", \"cuda:1\", \"cpu\"]";
  const std::vector<BadCase> cases = {
      {"engine.device = \"gpu\"\n", {"r.toml:2: [engine] device = \"gpu\": allowed is " + devices}},
      {"engine.device = \"cuda:16\"\n", {"r.toml:2: [engine] device = \"cuda:16\": allowed is " + devices}},
      {"engine.device = [\"cuda:0\", \"cuda:0\"]\n",
       {"r.toml:2: [engine] device = [ \"cuda:0\", \"cuda:0\" ]: allowed is " + devices}},
      {"engine.device = [\"cpu\", \"cpu\"]\n",
       {"r.toml:2: [engine] device = [ \"cpu\", \"cpu\" ]: allowed is " + devices}},
      {"engine.device = [\"cpu\", \"auto\"]\n",
       {"r.toml:2: [engine] device = [ \"cpu\", \"auto\" ]: \"auto\" stands alone: allowed is " + devices}},
      {"engine.device = [\"cuda:0\", \"auto\"]\n",
       {"r.toml:2: [engine] device = [ \"cuda:0\", \"auto\" ]: \"auto\" stands alone: allowed is " + devices}},
      {"engine.device = []\n", {"r.toml:2: [engine] device = []: allowed is " + devices}},
      {"engine.device = true\n", {"r.toml:2: [engine] device = true: allowed is " + devices}},
      {"engine.deadlin = \"1ms\"\n", {"r.toml:2: [engine] deadlin = \"1ms\": unknown key; did you mean \"deadline\"?"}},
      {"engine.deadline = 1\n",
       {"r.toml:2: [engine] deadline = 1: allowed is a duration above 0 with its unit, such as \"250us\", \"1ms\" or "
        "\"2s\""}},
      {"engine.deadline = \"1m\"\n",
       {"r.toml:2: [engine] deadline = \"1m\": allowed is a duration above 0 with its unit, such as \"250us\", \"1ms\" "
        "or "
        "\"2s\""}},
      {"engine.deadline = \"11s\"\n", {"r.toml:2: [engine] deadline = \"11s\": allowed is at most 10s"}},
      {"engine.cycle = 3\n",
       {"r.toml:2: [engine] cycle = 3: allowed is \"auto\" or a duration above 0 with its unit, such as \"250us\", "
        "\"1ms\" or "
        "\"2s\""}},
      {"engine.overlap = 9\n", {"r.toml:2: [engine] overlap = 9: allowed is a whole number from 1 to 8"}},
      {"engine.batch = 63\n", {"r.toml:2: [engine] batch = 63: allowed is a whole number from 64 to 65536"}},
      {"engine.batches = 1\n", {"r.toml:2: [engine] batches = 1: allowed is a whole number from 2 to 32"}},
      {"engine.streams = 33\n", {"r.toml:2: [engine] streams = 33: allowed is a whole number from 1 to 32"}},
      {"engine.poll = \"lazy\"\n", {"r.toml:2: [engine] poll = \"lazy\": allowed is \"auto\", \"busy\", \"adaptive\""}},
      {"engine.cores = \"all\"\n",
       {"r.toml:2: [engine] cores = \"all\": allowed is \"auto\" or a list of whole numbers, such as [1, 2]"}},
      {"engine.cores = []\n",
       {"r.toml:2: [engine] cores = []: allowed is \"auto\" or a list of whole numbers, such as [1, 2]"}},
      {"log.file = \"/tmp\"\n", {"r.toml:2: [log] file = \"/tmp\": is a folder: name a file in it"}},
      {"engine.cores = [1, 1]\n",
       {"r.toml:2: [engine] cores = [ 1, 1 ]: core 1 is there twice: give each thread a core of its own"}},
      {"engine.cores = [-1]\n", {"r.toml:2: [engine] cores = [ -1 ]: a core is a number from 0 to 1023"}},
      {"engine.busy_cores = true\n", {"r.toml:2: [engine] busy_cores = true: allowed is \"refuse\", \"allow\""}},
      {"engine.mode = \"idle\"\n",
       {"r.toml:2: [engine] mode = \"idle\": allowed is \"full\", \"zero-load\", \"collector-only\""}},
      {"engine.cpu_below = -1\n",
       {"r.toml:2: [engine] cpu_below = -1: allowed is \"auto\" or a whole number from 0 to 1000000000"}},
      {"[memory]\nhugepages = true\n",
       {"r.toml:3: [memory] hugepages = true: allowed is \"auto\", \"off\", \"require\""}},
      {"[memory]\nsize = \"512MB\"\n",
       {"r.toml:3: [memory] size = \"512MB\": allowed is a size such as \"512M\", \"4K\" or \"2G\", or a number of "
        "bytes"}},
      {"[memory]\nsize = \"1M\"\n", {"r.toml:3: [memory] size = \"1M\": allowed is from 64M to 1T"}},
      {"[memory]\nsize = \"64M\"\nframes = 65536\n",
       {"r.toml:3: [memory] size = \"64M\": the ports' 65536 frames take 148M: allowed is that or more; or lower "
        "frames"}},
      {"[memory]\nframe_bytes = 1024\n",
       {"r.toml:3: [memory] frame_bytes = 1024: port \"a\" has an MTU of 1500: allowed is 1522 or more"}},
      {"[memory]\nframes = 1024\n",
       {"r.toml:3: [memory] frames = 1024: port \"a\" alone holds 2 x 1024 in its descriptors: allowed is that or "
        "more"}},
      {"[[port]]\nname = \"z\"\ndevice = \"net_null7,size=2049\"\n",
       {"r.toml:4: [[port]] device = \"net_null7,size=2049\": frames of size=2049: allowed is from 1 to [memory] "
        "frame_bytes, 2048"}},
      {"[[port]]\nname = \"z\"\ndevice = \"net_null7,size=0\"\n",
       {"r.toml:4: [[port]] device = \"net_null7,size=0\": frames of size=0: allowed is from 1 to [memory] "
        "frame_bytes, 2048"}},
      {"[api]\nlisten = \"9230\"\n",
       {"r.toml:3: [api] listen = \"9230\": allowed is ADDRESS:PORT, such as \"127.0.0.1:9230\" or \"[::1]:9230\""}},
      {"[api]\nlisten = \"0.0.0.0:9230\"\n",
       {"r.toml:3: [api] listen = \"0.0.0.0:9230\": is not a loopback address; whoever reaches the API reads all "
        "that it reports: use 127.0.0.1 or [::1], or set allow_remote = true"}},
      {"[api]\nsocket = \"sluice.sock\"\n",
       {"r.toml:3: [api] socket = \"sluice.sock\": allowed is a path that begins with /, \"auto\", or \"\" for none"}},
      {"[api]\nsocket = \"/\"\n", {"r.toml:3: [api] socket = \"/\": is there and no socket: name a path of its own"}},
      {"[api]\nsocket = \"/nowhere/at/all.sock\"\n",
       {"r.toml:3: [api] socket = \"/nowhere/at/all.sock\": there is no folder /nowhere/at: make it, or name a path in "
        "one that is there"}},
      {"[api]\nread_only = 1\n", {"r.toml:3: [api] read_only = 1: allowed is true or false"}},
      {"[log]\nlevel = \"loud\"\n",
       {"r.toml:3: [log] level = \"loud\": allowed is \"trace\", \"debug\", \"info\", \"warn\", \"error\", \"off\""}},
      {"[log]\nformat = \"xml\"\n", {"r.toml:3: [log] format = \"xml\": allowed is \"text\", \"json\""}},
      {"[engin]\nbatch = 1\n", {"r.toml:2: [engin]: unknown section; did you mean \"engine\"?"}},
      {"[[prot]]\nname = \"b\"\n", {"r.toml:2: [[prot]]: unknown section; did you mean \"port\"?"}},
      // Two mistakes, two lines, in one pass.
      {"[log]\nlevel = 1\nformat = 2\n",
       {"r.toml:3: [log] level = 1: allowed is \"trace\", \"debug\", \"info\", \"warn\", \"error\", \"off\"",
        "r.toml:4: [log] format = 2: allowed is \"text\", \"json\""}},
  };
  for (const BadCase& c : cases) {
    const Config config = Config::from_text(with_chain(c.text) + good_port, "r.toml");
    EXPECT_THAT(config.diagnostics().lines, testing::ElementsAreArray(c.lines)) << c.text;
  }
}

TEST(Config, ALogFileNeedsItsFolder) {
  EXPECT_THAT(
      Config::from_text(with_chain("log.file = \"/nowhere/at/all/x.log\"\n") + good_port, "r.toml").diagnostics().lines,
      ElementsAre("r.toml:2: [log] file = \"/nowhere/at/all/x.log\": there is no folder /nowhere/at/all: make it, or "
                  "name a file in one that is there"));
  EXPECT_TRUE(Config::from_text(with_chain("log.file = \"x.log\"\n") + good_port, "r.toml").ok());
}

TEST(Config, WithoutAPortThereIsNothingToRun) {
  EXPECT_THAT(Config::from_text(with_chain(""), "r.toml").diagnostics().lines,
              ElementsAre("r.toml: there is no port: add at least one [[port]] with a name and a device"));
}

class Watch final : public engine::Element {
 public:
  void apply(engine::Batch&, engine::Span, engine::Emitter&) override {}
};

const bool watch_registered = engine::register_element(
    {.name = "watch",
     .text = "looks on",
     .make = [](Settings&, const engine::PortTable&) -> Expected<std::unique_ptr<engine::Element>> {
       return std::make_unique<Watch>();
     }});

TEST(Config, ChainIsElementsThatLookAndThenOneThatForwards) {
  const auto mistake = [](const std::string& chain) {
    const Config config = Config::from_text("engine.chain = " + chain + "\n" + good_port, "r.toml");
    return config.ok() ? "" : config.diagnostics().lines[0];
  };
  EXPECT_EQ(mistake("[\"probe\"]"), "");
  EXPECT_EQ(mistake("[\"watch\", \"probe\"]"), "");
  const std::string places = functions_and_places();
  EXPECT_THAT(places, testing::MatchesRegex("the last function is one of .*\"bridge\".*\"probe\".*, and in front of it "
                                            "there can be .*\"acl\".*\"watch\""));
  EXPECT_EQ(mistake("[]"), "r.toml:1: [engine] chain = []: at least one function is needed: " + places);
  EXPECT_EQ(mistake("[\"prob\"]"), "r.toml:1: [engine] chain = [ \"prob\" ]: unknown function \"prob\": " + places +
                                       "; did you mean \"probe\"?");
  EXPECT_EQ(mistake("[\"firewall\"]"),
            "r.toml:1: [engine] chain = [ \"firewall\" ]: unknown function \"firewall\": " + places);
  EXPECT_THAT(mistake("[\"watch\"]"), HasSubstr("\"watch\" forwards nothing: the last function must be one of "));
  EXPECT_THAT(mistake("[\"probe\", \"probe\"]"),
              HasSubstr("\"probe\" forwards every frame, so nothing can stand behind it: in front of the last function "
                        "there can be "));
  EXPECT_THAT(mistake("[\"watch\", \"watch\", \"probe\"]"), HasSubstr("\"watch\" is there twice"));
}

TEST(Config, AChainIsMadeOfItsParts) {
  Config config = Config::from_text("engine.chain = [\"watch\", \"probe\"]\n" + good_port, "r.toml");
  const auto made = make_pipeline(config, described_ports(config.engine));
  ASSERT_TRUE(made) << made.error().message;
  const auto elements = (*made)->elements();
  ASSERT_EQ(elements.size(), 2U);
  EXPECT_NE(dynamic_cast<Watch*>(elements[0].get()), nullptr);
  EXPECT_NE(dynamic_cast<Probe*>(elements[1].get()), nullptr);
}

TEST(Config, SectionOfAFunctionOutsideTheChainIsRefused) {
  const struct {
    const char* what;
    std::string text;
    std::string section;
    std::string chain;
    bool is_in_front;
  } cases[] = {
      {"a name that is none is left out", "engine.chain = [\"none\"]\n[probe]\n", "2: [probe]", "[\"probe\"]", false},
      {"no chain is written", "\n[watch]\n", "2: [watch]", "[\"watch\", \"route\"]", true},
      {"in front of what forwards", "engine.chain = [\"probe\"]\n[watch]\n", "2: [watch]", "[\"watch\", \"probe\"]",
       true},
      {"in place of what forwards", "engine.chain = [\"watch\", \"bridge\"]\n[probe]\n", "2: [probe]",
       "[\"watch\", \"probe\"]", false},
      {"acl is the first", "engine.chain = [\"watch\", \"bridge\"]\n[acl]\n", "2: [acl]",
       "[\"acl\", \"watch\", \"bridge\"]", true},
      {"behind acl", "engine.chain = [\"acl\", \"bridge\"]\n[watch]\n", "2: [watch]",
       "[\"acl\", \"watch\", \"bridge\"]", true},
      {"all that have a section", "\n[acl]\n[watch]\n[bridge]\n", "4: [bridge]", "[\"acl\", \"watch\", \"bridge\"]",
       false},
      {"no function that ends a chain", "engine.chain = [\"watch\"]\n[acl]\n", "2: [acl]",
       "[\"acl\", \"watch\", \"route\"]", true},
      {"what begins a chain is the first", "engine.chain = [\"acl\", \"route\"]\n[ipsec]\n", "2: [ipsec]",
       "[\"ipsec\", \"acl\", \"route\"]", true},
      {"no other in front of it", "engine.chain = [\"ipsec\", \"route\"]\n[acl]\n", "2: [acl]",
       "[\"ipsec\", \"acl\", \"route\"]", true},
      {"with others", "\n[acl]\n[ipsec]\n[inspect]\n", "4: [inspect]", "[\"ipsec\", \"acl\", \"inspect\", \"route\"]",
       true},
      {"it goes where it belongs", "engine.chain = [\"acl\", \"ipsec\", \"route\"]\n[watch]\n", "2: [watch]",
       "[\"ipsec\", \"acl\", \"watch\", \"route\"]", true},
  };
  for (const auto& [what, text, section, chain, is_in_front] : cases) {
    const Config config = Config::from_text(text + good_port, "r.toml");
    EXPECT_THAT(config.diagnostics().lines,
                testing::Contains("r.toml:" + section +
                                  ": the function is not in the chain: remove the section, or set [engine] chain = " +
                                  chain + (is_in_front ? ", where it is in front: " : ", where it is the last one: ") +
                                  functions_and_places()))
        << what;
    EXPECT_TRUE(Config::from_text("engine.chain = " + chain + "\n" + good_port, "r.toml").ok()) << what;
  }
}

TEST(Config, SeveralGpusAreAList) {
  const Config config = Config::from_text("engine.device = [\"cuda:0\", \"cuda:3\"]\n", "r.toml");
  EXPECT_EQ(config.engine.device, "cuda:0,cuda:3");
}

// In two passes: what one reads of payloads the other changes.
TEST(Config, WhatChangesPayloadsAndWhatReadsThemAreInOneChain) {
  const std::string inspect = "[inspect]\nrules = [\"r.rules\"]\n", acl = "[acl]\nrule = [{action = \"permit\"}]\n";
  const struct {
    const char* chain;
    std::string sections;
    unsigned passes;
  } cases[] = {{"[\"inspect\", \"srtp\", \"route\"]", inspect, 2},
               {"[\"srtp\", \"acl\", \"inspect\", \"route\"]", inspect + acl, 2},
               {"[\"acl\", \"inspect\", \"route\"]", inspect + acl, 1},
               {"[\"acl\", \"srtp\", \"route\"]", acl, 1}};
  for (const auto& [chain, sections, passes] : cases) {
    Config config = Config::from_text("engine.chain = " + std::string(chain) + "\n" + sections + good_port, "r.toml");
    const auto made = make_pipeline(config, described_ports(config.engine));
    ASSERT_TRUE(made) << chain << made.error().message;
    EXPECT_EQ((*made)->passes(), passes) << chain;
  }
  // The bound is that of both passes.
  Config late = Config::from_text(
      "engine.chain = [\"inspect\", \"srtp\", \"route\"]\nengine.poll = \"busy\"\nengine.cycle = \"250us\"\n" +
          inspect + good_port,
      "r.toml");
  EXPECT_TRUE(late.ok()) << late.mistakes();
  const auto refused = make_pipeline(late, described_ports(late.engine));
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message,
              HasSubstr("r.toml:3: [engine] cycle = \"250us\": the bound of this configuration, "
                        "(2 + 1 + 1*(1 + 1))*cycle"));
  for (const auto& [chain, section, proposed] :
       {std::tuple{"[\"srtp\", \"route\"]", "inspect", "[\"inspect\", \"srtp\", \"route\"]"},
        {"[\"inspect\", \"route\"]", "srtp", "[\"inspect\", \"srtp\", \"route\"]"}}) {
    const Config config =
        Config::from_text("engine.chain = " + std::string(chain) + "\n[" + section + "]\n" + good_port, "r.toml");
    EXPECT_THAT(config.diagnostics().lines,
                ElementsAre("r.toml:2: [" + std::string(section) +
                            "]: the function is not in the chain: remove the section, or set [engine] chain = " +
                            proposed + ", where it is in front: " + functions_and_places()));
  }
}

// Set as it says, the chain is one, and takes the section for which it was said.
TEST(Config, AChainThatAMessageProposesDoes) {
  const std::string proposal = "set [engine] chain = ";
  for (const std::string text : {
           "chain = [\"srtp\", \"route\"]\n[inspect]\n[acl]\n",
           "chain = [\"inspect\", \"srtp\", \"route\"]\n[acl]\n",
           "chain = [\"acl\", \"bridge\"]\n[srtp]\n[inspect]\n",
           "chain = [\"inspect\", \"bridge\"]\n[route]\n[srtp]\n",
           "chain = [\"acl\", \"bridge\"]\n[srtp]\n[srtp.rtsp]\n",
           "chain = [\"srtp\", \"bridge\"]\n[srtp.rtsp]\n",
       }) {
    Config config = Config::from_text("[engine]\n" + text + good_port, "r.toml");
    const auto first = make_pipeline(config, described_ports(config.engine));
    std::size_t proposed = 0;
    std::vector<std::string> said = config.diagnostics().lines;
    for (const std::string& line : said) {
      const std::size_t at = line.find(proposal);
      if (at == std::string::npos) continue;
      ++proposed;
      const std::string chain =
          line.substr(at + proposal.size(), line.find(']', at + proposal.size() + 1) - (at + proposal.size()) + 1);
      const std::size_t named = line.find(": [") + 3;
      const std::string section = "[" + line.substr(named, line.find(']') - named) + "]";
      Config again =
          Config::from_text("[engine]\nchain = " + chain + text.substr(text.find('\n')) + good_port, "r.toml");
      const auto second = make_pipeline(again, described_ports(again.engine));
      EXPECT_THAT(again.diagnostics().lines, testing::Not(testing::Contains(HasSubstr("[engine] chain"))))
          << text << line;
      EXPECT_THAT(again.diagnostics().lines,
                  testing::Not(testing::Contains(HasSubstr(section + ": the function is not in the chain"))))
          << text << line;
    }
    EXPECT_NE(proposed, 0U) << text;
    (void)first;
  }
}

TEST(Config, SyntaxErrorAndMissingFileAreLinesToo) {
  EXPECT_THAT(Config::from_text("[engine\n", "r.toml").diagnostics().lines, ElementsAre(HasSubstr("r.toml:1:8: ")));
  EXPECT_THAT(Config::from_file("/nowhere/r.toml").diagnostics().lines,
              ElementsAre("/nowhere/r.toml: No such file or directory"));
}

TEST(Config, MistakesAreALineEach) {
  const Config config = Config::from_text(good_port + "[log]\nlevel = \"loud\"\nfile = 3\n[nowhere]\n", "r.toml");
  ASSERT_EQ(config.diagnostics().lines.size(), 3U);
  const std::vector<std::string>& lines = config.diagnostics().lines;
  EXPECT_EQ(config.mistakes(), lines[0] + "\n" + lines[1] + "\n" + lines[2]);
  EXPECT_EQ(config.mistakes(2), lines[2]);
  EXPECT_EQ(config.mistakes(3), "");
}

TEST(ConfigJson, IsAConfigurationThatReadsAsTheSame) {
  const Config config =
      Config::from_text(with_chain("engine.cycle = \"200us\"\nmemory.size = \"96M\"\n") + good_port, "r.toml");
  ASSERT_TRUE(config.ok());
  const auto json = nlohmann::json::parse(config_json(config));
  EXPECT_EQ(json["file"], std::filesystem::absolute("r.toml").string());
  EXPECT_EQ(json["engine"]["cycle"], "200us");
  EXPECT_EQ(json["engine"]["deadline"], "1ms");
  EXPECT_EQ(json["engine"]["cores"], "auto");
  EXPECT_EQ(json["engine"]["cpu_below"], "auto");
  EXPECT_EQ(json["engine"]["mode"], "full");
  EXPECT_EQ(json["memory"]["size"], "96M");
  EXPECT_EQ(json["port"][0]["device"], "net_null0");
  EXPECT_EQ(json["api"]["listen"], "127.0.0.1:9230");
}

TEST(ConfigJson, HasWhatAFunctionReadsOnceItIsMade) {
  Config config = Config::from_text(
      "[engine]\nchain = [\"mirror\", \"echo\"]\n[echo]\nkey = 7\n[[mirror.session]]\n"
      "name = \"m\"\nto = \"b\"\n[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n"
      "[[port]]\nname = \"b\"\ndevice = \"net_null1\"\n",
      "r.toml");
  EXPECT_FALSE(nlohmann::json::parse(config_json(config)).contains("echo"));
  ASSERT_TRUE(make_checked_pipeline(config, described_ports(config.engine))) << config.mistakes();
  const auto json = nlohmann::json::parse(config_json(config));
  EXPECT_EQ(json["echo"].dump(), R"({"key":7,"path":"auto","piece":"8M"})");
  EXPECT_EQ(json["mirror"]["session"][0].dump(), R"({"direction":"both","from":["a"],"length":0,"name":"m","to":"b"})");
}

// There are keys in it.
TEST(ConfigJson, HasNothingOfASectionThatHidesItsValues) {
  Config config =
      Config::from_text("[engine]\nchain = [\"srtp\", \"bridge\"]\n[srtp]\nmax_keys = 5\n" + good_port, "r.toml");
  ASSERT_TRUE(make_checked_pipeline(config, described_ports(config.engine))) << config.mistakes();
  EXPECT_FALSE(nlohmann::json::parse(config_json(config)).contains("srtp"));
}

}  // namespace
}  // namespace sluice::control
