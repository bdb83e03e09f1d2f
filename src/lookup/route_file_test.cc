#include "lookup/route_file.h"

#include <gtest/gtest.h>
#include <lzma.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <set>

namespace sluice::lookup {
namespace {

class RouteFile : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    const std::string path = testing::TempDir() + "sluice_" + name;
    std::ofstream(path, std::ios::binary) << text;
    written_.push_back(path);
    return path;
  }
  ~RouteFile() override {
    for (const std::string& path : written_) {
      std::remove(path.c_str());
    }
  }

 private:
  std::vector<std::string> written_;
};

std::string xz(const std::string& text) {
  std::string packed(lzma_stream_buffer_bound(text.size()), '\0');
  std::size_t used = 0;
  EXPECT_EQ(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC64, nullptr, reinterpret_cast<const std::uint8_t*>(text.data()),
                                    text.size(), reinterpret_cast<std::uint8_t*>(packed.data()), &used, packed.size()),
            LZMA_OK);
  packed.resize(used);
  return packed;
}

constexpr const char* good =
    "# a comment\n"
    "1.0.0.0/24 10.254.0.104\n"
    "\n"
    "  2001:db8::/32\tfd00:fe::1 # the rest\r\n"
    "1.0.4.0/22 10.254.0.104\n"
    "9.9.9.9";

// "10.0.0.0/8 a", packed by `xz --lzma2=dict=1500MiB`.
constexpr std::string_view large_window(
    "\xfd\x37\x7a\x58\x5a\x00\x00\x01\x69\x22\xde\x36\x02\x00\x21\x01\x25\x00\x00\x00\x3b\x78\x7b\x41\x01"
    "\x00\x0c\x31\x30\x2e\x30\x2e\x30\x2e\x30\x2f\x38\x20\x61\x0a\x00\x00\x00\x00\x66\xb0\xdd\xfb\x00\x01"
    "\x21\x0d\x75\xdc\xa8\xd2\x90\x42\x99\x0d\x01\x00\x00\x00\x00\x01\x59\x5a",
    68);

TEST_F(RouteFile, RefusesAPackedFileThatWouldTakeTheMemoryOfTheMachine) {
  const auto list = read_routes(write("window.xz", std::string(large_window)));
  ASSERT_FALSE(list);
  EXPECT_NE(list.error().message.find("needs more than 256 MB to unpack"), std::string::npos) << list.error().message;
}

TEST_F(RouteFile, ReadsPlainAndPackedAlike) {
  for (const std::string& path :
       {write("good.txt", good), write("good.txt.xz", xz(good)), write("packed.txt", xz(good))}) {
    const auto list = read_routes(path);
    ASSERT_TRUE(list) << list.error().message;
    ASSERT_EQ(list->routes.size(), 4U);
    EXPECT_EQ(list->next_hops, (std::vector<std::string>{"", "10.254.0.104", "fd00:fe::1"}));
    EXPECT_EQ(list->routes[0].prefix.str(), "1.0.0.0/24");
    EXPECT_EQ(list->routes[0].next_hop, 1U);
    EXPECT_EQ(list->routes[1].prefix.str(), "2001:db8::/32");
    EXPECT_EQ(list->routes[1].next_hop, 2U);
    EXPECT_EQ(list->routes[2].next_hop, 1U);
    EXPECT_EQ(list->routes[3].prefix.str(), "9.9.9.9/32");
    EXPECT_EQ(list->routes[3].next_hop, no_route);
  }
}

TEST_F(RouteFile, MistakesNameFileAndLine) {
  struct Case {
    const char* text;
    const char* expected;
  };
  for (const auto& [text, expected] : {
           Case{"1.0.0.0/24 a\n1.0.0.1/24 b\n", ":2: '1.0.0.1/24' has host bits set; did you mean 1.0.0.0/24?"},
           Case{"\n\n1.0.0.0/33 a\n", ":3: '1.0.0.0/33': the prefix length must be 0 to 32"},
           Case{"1.0.0/24\n", ":1: '1.0.0' is not an IPv4 or IPv6 address"},
           Case{"1.0.0.0/24 via 2.2.2.2\n", ":1: '2.2.2.2' is too much; a line is: prefix [next_hop]"},
       }) {
    const std::string path = write("bad.txt", text);
    const auto list = read_routes(path);
    ASSERT_FALSE(list) << text;
    EXPECT_EQ(list.error().message, path + expected);
  }
}

TEST_F(RouteFile, EveryMistakeIsALineAndAfterTenTheyAreCounted) {
  const std::string two = write("two.txt", "1.0.0.0/33 a\n1.0.0.0/8 a\nx a\n");
  EXPECT_EQ(read_routes(two).error().message, two + ":1: '1.0.0.0/33': the prefix length must be 0 to 32\n" + two +
                                                  ":3: 'x' is not an IPv4 or IPv6 address");
  std::string text;
  std::string lines;
  for (int i = 1; i <= 13; ++i) text += "bad a\n";
  const std::string many = write("many.txt", text);
  for (int i = 1; i <= 10; ++i) lines += many + ":" + std::to_string(i) + ": 'bad' is not an IPv4 or IPv6 address\n";
  EXPECT_EQ(read_routes(many).error().message, lines + many + ":11: and 3 more mistakes from here on");
  const std::string eleven = write("eleven.txt", text.substr(0, 11 * std::string("bad a\n").size()));
  EXPECT_TRUE(read_routes(eleven).error().message.ends_with("\n" + eleven + ":11: and one more mistake"));
}

TEST_F(RouteFile, NextHopsAreCheckedWhereTheyStand) {
  unsigned calls = 0;
  const auto list = [&](const std::string& path) {
    return read_routes(path, [&](std::string_view hop, int family) -> std::string {
      ++calls;
      if (family == 6) return "not for IPv6";
      return hop.empty() ? "needs a next hop" : hop == "good" ? "" : "'" + std::string(hop) + "' is bad";
    });
  };
  const std::string path = write("hops.txt", "1.0.0.0/8 good\n2.0.0.0/8 evil\n3.0.0.0/8\n4.0.0.0/8 evil\n");
  const auto refused = list(path);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            path + ":2: 'evil' is bad\n" + path + ":3: needs a next hop\n" + path + ":4: 'evil' is bad");
  EXPECT_EQ(calls, 3U) << "once for each next hop, not for each line";
  const std::string both = write("families.txt", "1.0.0.0/8 good\n2001:db8::/32 good\n2.0.0.0/8 good\n");
  EXPECT_EQ(list(both).error().message, both + ":2: not for IPv6");
  EXPECT_EQ(calls, 5U) << "and once for each family";
  EXPECT_TRUE(list(write("fine.txt", "1.0.0.0/8 good\n")));
}

TEST_F(RouteFile, AMissingOrBrokenFileIsSaid) {
  EXPECT_EQ(read_routes("/nowhere/routes.txt").error().message, "/nowhere/routes.txt: No such file or directory");
  const std::string whole = xz(good);
  const std::string cut = write("cut.xz", whole.substr(0, whole.size() / 2));
  EXPECT_EQ(read_routes(cut).error().message, cut + ": not a whole .xz file");
  const std::string plain = write("plain.xz", good);
  EXPECT_EQ(read_routes(plain).error().message, plain + ": not a whole .xz file");
}

TEST_F(RouteFile, WhatIsNoFileIsRefusedAtOnceAndNothingAborts) {
  const std::string pipe = testing::TempDir() + "sluice_pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const std::string large = write("large.txt", "");
  ASSERT_EQ(truncate(large.c_str(), (1LL << 30) + 1), 0);
  const std::pair<std::string, std::string> cases[] = {
      {"/tmp", "is a folder: name a regular file"},        {pipe, "is a pipe: name a regular file"},
      {"/dev/zero", "is a device: name a regular file"},   {"/proc/self/mem", "cannot be read: Input/output error"},
      {large, "is larger than 1G, the most that is read"},
  };
  for (const auto& [path, why] : cases) {
    EXPECT_EQ(read_routes(path).error().message, path + ": " + why);
    EXPECT_EQ(read_updates(path).error().message, path + ": " + why);
  }
  std::remove(pipe.c_str());
}

TEST_F(RouteFile, AMessageRepeatsNoBinaryOfTheFile) {
  std::string binary = "\x1b]0;x\a\x1b[2J";
  for (int c = 0; c < 256; ++c) binary.append(300, static_cast<char>(c == '#' || c == '|' ? 'x' : c));
  const std::string path = write("binary.txt", binary + "\nBGP4MP|" + binary + "|A\n");
  for (const Error& error : {read_routes(path).error(), read_updates(path).error()}) {
    EXPECT_LT(error.message.size(), 11 * (path.size() + 120));
    for (const unsigned char c : error.message) {
      EXPECT_TRUE(c == '\n' || (c >= ' ' && c <= '~')) << unsigned{c} << " in " << error.message;
    }
  }
}

TEST_F(RouteFile, ReadsUpdates) {
  const auto list =
      read_updates(write("updates.txt",
                         "BGP4MP|1171158060|A|195.66.224.39|3561|196.44.98.0/23|3561 3491|IGP|195.66.224.39|0|"
                         "0||NAG||\n"
                         "BGP4MP|1470931200|STATE|2001:7f8:54::188|59689|3|2\n"
                         "BGP4MP|1470931200|W|2001:7f8:54:5::7|8218|2001:df0:bd::/48\n"));
  ASSERT_TRUE(list) << list.error().message;
  ASSERT_EQ(list->routes.size(), 2U);
  EXPECT_EQ(list->routes[0].prefix.str(), "196.44.98.0/23");
  EXPECT_EQ(list->next_hops[list->routes[0].next_hop], "195.66.224.39");
  EXPECT_EQ(list->routes[1].prefix.str(), "2001:df0:bd::/48");
  EXPECT_EQ(list->routes[1].next_hop, no_route);
  EXPECT_EQ(list->routes[0].seconds, 1171158060);
  const auto bad = read_updates(write("bad.txt", "BGP4MP|noon|W|2001:7f8:54:5::7|8218|2001:df0:bd::/48\n"));
  ASSERT_FALSE(bad);
  EXPECT_NE(bad.error().message.find("bad.txt:1: 'noon' is not a time in seconds"), std::string::npos);
}

TEST_F(RouteFile, WrongUpdatesNameFileAndLine) {
  struct Case {
    const char* text;
    const char* expected;
  };
  for (const auto& [text, expected] : {
           Case{"TABLE_DUMP|1|A|1.1.1.1|1|1.0.0.0/8\n", ":1: 'TABLE_DUMP' where bgpdump -m writes BGP4MP"},
           Case{"BGP4MP|1|X|1.1.1.1|1|1.0.0.0/8\n", ":1: 'X' is not A, W or STATE"},
           Case{"BGP4MP|1|W|1.1.1.1|1|\n", ":1: '' is not an IPv4 or IPv6 address"},
           Case{"BGP4MP|1|A|1.1.1.1|1|1.0.0.0/8|1|IGP\n", ":1: announces 1.0.0.0/8 without a next hop"},
       }) {
    const std::string path = write("wrong.txt", text);
    const auto list = read_updates(path);
    ASSERT_FALSE(list) << text;
    EXPECT_EQ(list.error().message, path + expected);
  }
}

TEST(MakeRoutes, AreDistinctRepeatableAndSpreadAsInTheInternet) {
  const RouteList list = make_routes(30'000, 10'000, 7);
  ASSERT_EQ(list.routes.size(), 40'000U);
  std::set<packet::IpPrefix> distinct;
  std::map<std::pair<int, int>, int> by_length;
  for (const RouteLine& line : list.routes) {
    distinct.insert(line.prefix);
    EXPECT_EQ(packet::IpPrefix::of(line.prefix.address, line.prefix.length), line.prefix);
    EXPECT_TRUE(line.next_hop >= 1 && line.next_hop < list.next_hops.size());
    ++by_length[{line.prefix.address.family, line.prefix.length}];
  }
  EXPECT_EQ(distinct.size(), 40'000U);
  EXPECT_NEAR((by_length[{4, 24}]) / 30'000.0, 0.55, 0.02);
  EXPECT_NEAR((by_length[{4, 22}]) / 30'000.0, 0.11, 0.02);
  EXPECT_NEAR((by_length[{6, 48}]) / 10'000.0, 0.46, 0.03);
  EXPECT_NEAR((by_length[{6, 32}]) / 10'000.0, 0.25, 0.03);
  EXPECT_TRUE(std::ranges::none_of(list.routes, [](const RouteLine& line) {
    return line.prefix.address.family == 4 && line.prefix.address.bytes[0] == 127;
  })) << "nobody announces loopback addresses, and the router refuses them";
  const RouteList again = make_routes(30'000, 10'000, 7);
  const RouteList other = make_routes(30'000, 10'000, 8);
  EXPECT_EQ(again.routes[12'345].prefix, list.routes[12'345].prefix);
  EXPECT_NE(other.routes[12'345].prefix, list.routes[12'345].prefix);
}

}  // namespace
}  // namespace sluice::lookup
