#include "lookup/acl/classbench.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace sluice::lookup::acl {
namespace {

class ClassBenchTest : public testing::Test {
 protected:
  ClassBenchTest() {
    std::string name = (std::filesystem::temp_directory_path() / "classbench-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~ClassBenchTest() override { std::filesystem::remove_all(folder_); }
  std::string write(const std::string& text) {
    std::ofstream(folder_ / "file") << text;
    return (folder_ / "file").string();
  }
  std::filesystem::path folder_;
};

TEST_F(ClassBenchTest, ReadsFilters) {
  const auto rules =
      read_classbench(write("@192.0.2.9/30\t198.51.100.7/32\t0 : 65535\t1024 : 2047\t0x06/0xFF\t0x0200/0x1200\t\n"
                            "# a comment\n"
                            "\n"
                            "@0.0.0.0/0 0.0.0.0/0 53 : 53 0 : 65535 0x00/0x00\r\n"
                            "@2001:db8::/32 ::/0 0 : 65535 0 : 65535 0x3a/0xff 0x8000/0xff00\n"));
  ASSERT_TRUE(rules) << rules.error().message;
  ASSERT_EQ(rules->size(), 3U);
  AclRule first;
  first.source = *packet::IpPrefix::parse("192.0.2.8/30");
  first.destination = *packet::IpPrefix::parse("198.51.100.7");
  first.destination_port = {1024, 2047};
  first.protocol = {6, 0xff};
  first.flags = {0x02, 0x12};
  first.line = 1;
  EXPECT_EQ((*rules)[0], first);
  EXPECT_EQ((*rules)[1].source_port, (PortRange{53, 53}));
  EXPECT_EQ((*rules)[1].protocol, MaskedByte());
  EXPECT_EQ((*rules)[1].flags, MaskedByte());
  EXPECT_EQ((*rules)[1].family(), 4);
  EXPECT_EQ((*rules)[1].line, 4U);
  EXPECT_EQ((*rules)[2].family(), 6);
  EXPECT_EQ((*rules)[2].flags, (MaskedByte{0x80, 0xff}));
}

TEST_F(ClassBenchTest, FiltersThatNamePortsOfAProtocolWithoutAreRulesAndCanBeReported) {
  const auto rules =
      read_classbench(write("@1.2.3.4/32 0.0.0.0/0 0 : 65535 0 : 65535 0x01/0xFF\n"
                            "@1.2.3.4/32 0.0.0.0/0 0 : 65535 8 : 8 0x01/0xFF\n"
                            "@1.2.3.4/32 0.0.0.0/0 0 : 1023 0 : 65535 0x2f/0xFF\n"
                            "@1.2.3.4/32 0.0.0.0/0 0 : 65535 8 : 8 0x00/0xFE\n"
                            "@1.2.3.4/32 0.0.0.0/0 0 : 65535 8 : 8 0x10/0xFE\n"
                            "@1.2.3.4/32 0.0.0.0/0 0 : 65535 8 : 8 0x00/0x00\n"
                            "@1.2.3.4/32 0.0.0.0/0 0 : 65535 8 : 8 0x06/0xFF\n"));
  ASSERT_TRUE(rules) << rules.error().message;
  std::vector<std::uint32_t> lines;
  for (const AclRule& rule : *rules) {
    if (names_ports_in_vain(rule)) lines.push_back(rule.line);
  }
  EXPECT_EQ(rules->size(), 7U);
  EXPECT_EQ(lines, (std::vector<std::uint32_t>{2, 3, 4})) << "0x10/0xfe has UDP in it";
}

TEST_F(ClassBenchTest, ReadsHeaders) {
  const auto headers = read_classbench_trace(
      write("3221225985 3325256711 65535 443 6 33559040 12\n0 1 2 3 17 0\n1 1 1 1 1 4294967295 9\n"));
  ASSERT_TRUE(headers) << headers.error().message;
  ASSERT_EQ(headers->size(), 3U);
  const Key4 wanted{{192, 0, 2, 1}, {198, 51, 100, 7}, {0xff, 0xff}, {1, 0xbb}, 6, 0x02, {0, 0}};
  EXPECT_EQ(std::memcmp(&(*headers)[0].key, &wanted, sizeof wanted), 0);
  EXPECT_EQ((*headers)[0].filter, 12U);
  EXPECT_EQ((*headers)[1].key.flags, 0);
  EXPECT_EQ((*headers)[2].key.flags, 0xff);
}

struct Mistake {
  const char* line;
  const char* said;
};

TEST_F(ClassBenchTest, NamesTheLineOfAMistakeInAFilter) {
  const Mistake mistakes[] = {
      {"1.2.3.4/32 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00", "'1.2.3.4/32' does not begin with @"},
      {"@1.2.3/32 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00", "1.2.3"},
      {"@1.2.3.4/33 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00", "'1.2.3.4/33' is not a prefix"},
      {"@1.2.3.4 0.0.0.0/0 0 : 1 0 : 1 0x00/0x00", "'1.2.3.4' is not a prefix"},
      {"@1.2.3.4/32 ::/0 0 : 1 0 : 1 0x00/0x00", "not of one family"},
      {"@1.2.3.4/32 0.0.0.0/0 2 : 1 0 : 1 0x00/0x00", "'2 : 1' is not a range"},
      {"@1.2.3.4/32 0.0.0.0/0 0 : 1 0 - 1 0x00/0x00", "'0 - 1' is not a range"},
      {"@1.2.3.4/32 0.0.0.0/0 0 : 1 0 : 65536 0x00/0x00", "'0 : 65536' is not a range"},
      {"@1.2.3.4/32 0.0.0.0/0 0 : 1 0 : 1", "'' is not value/mask of 8 bits"},
      {"@1.2.3.4/32 0.0.0.0/0 0 : 1 0 : 1 0x100/0xff", "'0x100/0xff' is not value/mask of 8 bits"},
      {"@1.2.3.4/32 0.0.0.0/0 0 : 1 0 : 1 0x06", "'0x06' is not value/mask of 8 bits"},
      {"@1.2.3.4/32 0.0.0.0/0 0 : 1 0 : 1 0x06/0xff 0x0001/0x0001", "only the upper byte may"},
      {"@1.2.3.4/32 0.0.0.0/0 0 : 1 0 : 1 0x06/0xff 0x0/0x0 x", "'x' is too much"},
  };
  for (const Mistake& mistake : mistakes) {
    const std::string path = write(std::string("# one\n") + mistake.line + "\n");
    const auto rules = read_classbench(path);
    ASSERT_FALSE(rules) << mistake.line;
    EXPECT_TRUE(rules.error().message.starts_with(path + ":2: ")) << rules.error().message;
    EXPECT_NE(rules.error().message.find(mistake.said), std::string::npos) << rules.error().message;
  }
}

TEST_F(ClassBenchTest, NamesTheLineOfAMistakeInAHeader) {
  for (const Mistake& mistake :
       {Mistake{"1 2 3 4 5", "5 numbers"}, Mistake{"1 2 3 4 5 6 7 8", "'8' is too much"},
        Mistake{"1 2 65536 4 5 6", "a port above 65535"}, Mistake{"1 2 3 4 256 6", "a protocol above 255"},
        Mistake{"4294967296 2 3 4 5 6", "'4294967296' is not a number of 32 bits"},
        Mistake{"a", "'a' is not a number"}}) {
    const std::string path = write(std::string(mistake.line) + "\n");
    const auto headers = read_classbench_trace(path);
    ASSERT_FALSE(headers) << mistake.line;
    EXPECT_TRUE(headers.error().message.starts_with(path + ":1: ")) << headers.error().message;
    EXPECT_NE(headers.error().message.find(mistake.said), std::string::npos) << headers.error().message;
  }
}

}  // namespace
}  // namespace sluice::lookup::acl
