#include "control/listen.h"

#include <gtest/gtest.h>

namespace sluice::control {
namespace {

TEST(Listen, ReadsAddresses) {
  struct Case {
    const char* text;
    const char* host;
    int port;
    bool loopback;
  };
  for (const Case& c : {Case{"127.0.0.1:9230", "127.0.0.1", 9230, true},
                        {"127.9.9.9:0", "127.9.9.9", 0, true},
                        {"[::1]:80", "::1", 80, true},
                        {"localhost:1", "localhost", 1, true},
                        {"0.0.0.0:65535", "0.0.0.0", 65535, false},
                        {"192.0.2.1:80", "192.0.2.1", 80, false},
                        {"[::]:80", "::", 80, false},
                        {"[2001:db8::1]:80", "2001:db8::1", 80, false},
                        {"[::ffff:192.0.2.1]:80", "::ffff:192.0.2.1", 80, false}}) {
    const auto address = parse_listen(c.text);
    ASSERT_TRUE(address) << c.text;
    EXPECT_EQ(address->host, c.host);
    EXPECT_EQ(address->port, c.port);
    EXPECT_EQ(address->loopback, c.loopback) << c.text;
    EXPECT_EQ(address->str(), c.text);
  }
}

TEST(Listen, RefusesEverythingElse) {
  for (const char* text :
       {"", ":", ":80", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:-1", "127.0.0.1:65536", "127.0.0.1:80 ",
        "::1:80", "[::1]", "[127.0.0.1]:80", "[]:80", "example.com:80", "127.0.0.1:80:90", "127.1:80"}) {
    EXPECT_FALSE(parse_listen(text)) << text;
  }
}

}  // namespace
}  // namespace sluice::control
