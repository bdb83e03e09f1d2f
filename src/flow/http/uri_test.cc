#include "flow/http/uri.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::flow::http {
namespace {

std::string normal(std::string_view uri) {
  std::string out(uri.size(), '#');
  out.resize(normalise_uri(uri, out.data()));
  return out;
}

TEST(Uri, Normalised) {
  struct Case {
    std::string_view raw, wanted;
  };
  for (const Case& c : {
           Case{"/", "/"},
           {"", ""},
           {"/a/b.html", "/a/b.html"},
           {"/%61%62", "/ab"},
           {"/%6", "/%6"},
           {"/%zz%6", "/%zz%6"},
           {"/%2561", "/%61"},  // once, not twice
           {"/a//b///c", "/a/b/c"},
           {"/a/./b", "/a/b"},
           {"/a/../b", "/b"},
           {"/a/b/../../c", "/c"},
           {"/../../etc/passwd", "/etc/passwd"},
           {"/a/%2e%2e/b", "/b"},
           {"/a/%2e%2e%2fb", "/b"},
           {"/a\\..\\b", "/b"},
           {"/a%5c%5cb", "/a/b"},
           {"/a/.", "/a"},
           {"/a/..", ""},
           {"/a/./", "/a"},
           {"/a/b/../", "/a"},
           {"/./.", ""},
           {"/a/", "/a/"},
           {"a/../b", "/b"},
           {"/a/...", "/a/..."},
           {"/.hidden", "/.hidden"},
           {"../x", "x"},
           {"./x", "x"},
           {"*", "*"},
           {"/%u0061%u00e9", "/a"},  // the beginning of UTF-8
           {"/%u0061%u00e9x", "/a?x"},
           {"/%uff0e%uff0e/%u4e00", "/?"},
           {"/%u00", "/%u00"},
           {"/%u2215%u2216x%u0141", "/xL"},
           // UTF-8 of a path is a byte a character, as in code page 1252, behind the slashes and before the dots.
           {"/%c0%afa%c0%aeb", "//a.b"},
           {"/x/%c0%ae%c0%ae/b", "/b"},
           {"/%c1%9cx", "/\\x"},
           {"/\xc3\xbc", "/\xfc"},
           {"/caf%c3%a9/%e2%88%95%ef%bc%ae", "/caf\xe9//N"},
           {"/%e0%80%af%f0%80%80%af", "///"},
           {"/%ff%80a",
            "/?\x3f"
            "a"},
           {"/%e4%b8%80%f0%9f%98%80", "/?\x3f"},
           {"/%ed%a0%80", "/?\x3f\x3f"},
           {"/%e2%88a", "/?a"},
           {"/a%e2%88", "/a"},
           {std::string_view("/a%00b"), std::string_view("/a\0b", 4)},
           {"/A%20B", "/A B"},
           {"http://Host/x", "/x"},
           {"http://user@host:80/x?y", "/x?y"},
           {"http://host", ""},
           {"http://host?q=1", "?q=1"},
           {"http:///x", "/x"},
           {"http:/x/y", "/x/y"},
           {"http://h\\x/y", "/y"},
           {"//host/x", "/host/x"},
           {"h:80", "80"},
           {"a/b?c:/d", "/d"},
           {"/x?http://host/y", "/x?http://host/y"},
           {"/x#frag", "/x#frag"},
           {"/a/../b?c#d/../%65%20?", "/b?c#d/../e ?"},
           {"/x?q=%41%2f%2F%7e//../%zz", "/x?q=A//~//../%zz"},
           // Of a query and a fragment each %XX, as Suricata 7.0.10 has it, and nothing else.
           {"/a?x=%3C%27%22%20%2F", "/a?x=<'\" /"},
           {"/a?x=a+b%2b", "/a?x=a+b+"},
           {"/a?x=%2525", "/a?x=%25"},  // once
           {"/a?x=%u003c%uff1c%U003c%u00", "/a?x=%u003c%uff1c%U003c%u00"},
           {"/a?x=%&y=%3&z=%zz%4", "/a?x=%&y=%3&z=%zz%4"},
           {std::string_view("/a?x=%00b"), std::string_view("/a?x=\0b", 7)},
           {"/a?x=%c0%af%ff", "/a?x=\xc0\xaf\xff"},
           {"/a?x=\\..\\b//c/../d%5c", "/a?x=\\..\\b//c/../d\\"},
           {"/a?x=%0d%0a", "/a?x=\r\n"},
           {"/a?x=%3F%23f#%3c%27", "/a?x=?#f#<'"},
           {"/a#f%3c", "/a#f<"},
           {"/a?x%u0041#%u0041%U002f%uff0f%ue0%u1234%c3%a9", "/a?x%u0041#A//%ue0?\xc3\xa9"},
           {"/a?", "/a?"},
           {"/a%3fb?c", "/a?b?c"},
           {"?x=%3c", "?x=<"},
           {"http://host/a?x=%3c", "/a?x=<"},
           {"/a/../b?c/../d", "/b?c/../d"},
       }) {
    EXPECT_EQ(normal(c.raw), c.wanted) << c.raw;
  }
}

TEST(Uri, Hosts) {
  EXPECT_EQ(host_of_uri("http://user:pw@Example.com:8080/x"), "Example.com");
  EXPECT_EQ(host_of_uri("/x"), "");
  EXPECT_EQ(host_of_uri("/x://y"), "");
  EXPECT_EQ(host_of_authority("[2001:db8::1]:80"), "[2001:db8::1]");
  EXPECT_EQ(host_of_authority("a.b:443"), "a.b");
  EXPECT_EQ(host_of_authority(""), "");
}

// Never longer than the URI, whatever is in it.
TEST(Uri, FitsInItsOwnLength) {
  std::uint32_t random = 1;
  constexpr std::string_view letters = "/.%\\?#uc0af2eE:@a\xc0\xaf";
  for (int i = 0; i < 50'000; ++i) {
    std::string uri;
    for (std::uint32_t n = i % 40; n > 0; --n) {
      random = random * 1664525 + 1013904223;
      uri += letters[(random >> 16) % letters.size()];
    }
    std::string out(uri.size() + 1, '\x7f');
    ASSERT_LE(normalise_uri(uri, out.data()), uri.size());
    ASSERT_EQ(out.back(), '\x7f') << uri;
  }
}

}  // namespace
}  // namespace sluice::flow::http
