// Explicit mode: which server, and which ports.
#include "function/srtp/rtsp/server_choice.h"

#include <gtest/gtest.h>

#include <set>
#include <tuple>

#include "function/srtp/rtsp/media_ports.h"

namespace sluice::function::rtsp {
namespace {

function::RtspServer server(const char* address, std::string name = "", std::string path = "") {
  return {*packet::IpAddress::parse(address), 554, std::move(name), std::move(path)};
}

TEST(ServerChoice, TheFirstThatTheUriMeets) {
  function::RtspOptions options;
  options.upstream = {server("10.0.0.1", "door.example"), server("10.0.0.2", "", "/yard"),
                      server("10.0.0.3", "door2.example", "/yard/a"), server("2001:db8::1"), server("10.0.0.4")};
  const std::pair<const char*, const char*> cases[] = {
      {"rtsp://door.example/film", "10.0.0.1"},
      {"rtsp://DOOR.example:8554/film", "10.0.0.1"},
      {"rtsp://me:pw@door.example/a", "10.0.0.1"},
      {"rtsp://10.1.0.1/yard", "10.0.0.2"},
      {"rtsp://10.1.0.1:554/yard/", "10.0.0.2"},
      {"rtsp://h/yard/a?b=c", "10.0.0.2"},
      {"rtsp://h/yard?b=c", "10.0.0.2"},
      {"rtsp://h/yards", "10.0.0.4"},
      {"rtsp://door2.example/yard/a", "10.0.0.2"},
      {"rtsp://h", "10.0.0.4"},
      {"*", "10.0.0.4"},
      {"", "10.0.0.4"},
      {"rtsp://other.door.example/", "10.0.0.4"},
  };
  for (const auto& [uri, address] : cases) {
    const auto* const found = server_for(options, 4, uri);
    ASSERT_NE(found, nullptr) << uri;
    EXPECT_EQ(found->address.str(), address) << uri;
  }
  EXPECT_EQ(server_for(options, 6, "rtsp://door.example/film")->address.str(), "2001:db8::1");
  EXPECT_TRUE(has_one_server(options, 6));
  EXPECT_FALSE(has_one_server(options, 4));
  options.upstream.pop_back();
  EXPECT_EQ(server_for(options, 4, "rtsp://h/elsewhere"), nullptr);
}

TEST(ServerChoice, ByAnAddressThatClientsWriteWithAPortOrWithout) {
  function::RtspOptions options;
  options.upstream = {server("2001:db8::1", "[2001:db8:1::7]"), server("2001:db8::2", "2001:db8:1::8"),
                      server("10.0.0.1", "10.1.0.7")};
  const std::tuple<int, const char*, const char*> cases[] = {
      {6, "rtsp://[2001:db8:1::7]/film", "2001:db8::1"},   {6, "rtsp://[2001:db8:1::7]:8554/film", "2001:db8::1"},
      {6, "rtsp://[2001:DB8:1:0::8]/film", "2001:db8::2"}, {4, "rtsp://10.1.0.7/film", "10.0.0.1"},
      {4, "rtsp://10.1.0.7:8554/film", "10.0.0.1"},
  };
  for (const auto& [family, uri, address] : cases) {
    const auto* const found = server_for(options, family, uri);
    ASSERT_NE(found, nullptr) << uri;
    EXPECT_EQ(found->address.str(), address) << uri;
  }
  for (const char* const other : {"rtsp://[2001:db8:1::9]/film", "rtsp://[2001:db8:1::]/film", "rtsp:///film", "*"}) {
    EXPECT_EQ(server_for(options, 6, other), nullptr) << other;
  }
}

TEST(ServerChoice, ByTheFirstRequestOnceItIsWhole) {
  const std::string text = "OPTIONS rtsp://h:554/film RTSP/1.0\r\nCSeq: 7\r\n\r\n";
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_FALSE(first_request(text.substr(0, size))) << size;
  for (const std::string& more : {std::string(), text, std::string("x")}) {
    const auto request = first_request(text + more);
    ASSERT_TRUE(request);
    EXPECT_EQ(request->uri, "rtsp://h:554/film");
    EXPECT_EQ(request->cseq, "7");
  }
  const std::pair<const char*, std::string_view> cases[] = {
      {"GET / HTTP/1.1\r\n\r\n", "not_rtsp: line 1, this is HTTP"},
      {"\x16\3\1", "not_rtsp: this is TLS"},
      {"\1\2\3\r\n\r\n", "bad_start_line: line 1"},
      {"RTSP/1.0 200 OK\r\nCSeq: 7\r\n\r\n", ""},
  };
  for (const auto& [unreadable, problem] : cases) {
    const auto request = first_request(unreadable);
    ASSERT_TRUE(request) << unreadable;
    EXPECT_EQ(request->uri, "");
    EXPECT_EQ(std::string_view(request->problem).substr(0, problem.size()), problem);
    EXPECT_EQ(request->problem.empty(), problem.empty());
  }
}

TEST(MediaPorts, ArePairsAndComeBackLast) {
  MediaPorts ports(20000, 20006);  // three pairs, and one that has no partner
  std::set<unsigned> taken;
  for (unsigned i = 0; i < 3; ++i) {
    const auto pair = ports.take();
    ASSERT_TRUE(pair);
    EXPECT_EQ(pair->rtp % 2, 0);
    EXPECT_EQ(pair->rtcp, pair->rtp + 1);
    EXPECT_TRUE(taken.insert(pair->rtp).second);
  }
  EXPECT_EQ(taken, (std::set<unsigned>{20000, 20002, 20004}));
  EXPECT_FALSE(ports.take());
  EXPECT_TRUE(ports.worth_reporting());
  EXPECT_FALSE(ports.worth_reporting());
  ports.give_back({20004, 20005});
  ports.give_back({20002, 20003});
  EXPECT_EQ(ports.used(), 1U);
  EXPECT_TRUE(ports.worth_reporting());
  EXPECT_EQ(ports.take()->rtp, 20002);
  ports.give_back({20002, 20003});
  EXPECT_EQ(ports.take()->rtp, 20004) << "and not the one that has just come back";
}

TEST(MediaPorts, ToTheVeryLast) {
  MediaPorts ports(65534, 65535);
  EXPECT_EQ(ports.take(), (MediaPorts::Pair{65534, 65535}));
  EXPECT_FALSE(ports.take());
}

}  // namespace
}  // namespace sluice::function::rtsp
