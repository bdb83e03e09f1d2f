#include "flow/http/looks.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::flow::http {
namespace {

TEST(HttpLooks, FirstBytes) {
  struct Case {
    std::string bytes;
    Looks request;
    bool http;
  };
  for (const Case& c : {Case{"GET / HTTP/1.1", Looks::http, true},
                        {"\r\n \tGET\t/", Looks::http, true},
                        {"PROPPATCH x", Looks::http, true},
                        {"FOO /", Looks::http, true},
                        {"FOO * ", Looks::http, true},
                        {"FOO hTTp", Looks::http, true},
                        {"FOO bar", Looks::other, false},
                        {"FOO *bar", Looks::other, false},
                        {"PRI * HTTP/2.0", Looks::http, false},
                        {"G", Looks::open, false},
                        {"\r\n", Looks::open, false},
                        {"FOO htt", Looks::open, false},
                        {"HTTP/1.1 200 ok", Looks::other, true},
                        {"\n HTTP/1.1", Looks::other, true},
                        {"HTTP", Looks::open, false},
                        {"\x16\x03\x01", Looks::other, false},
                        {std::string(2'000, 'A') + " /", Looks::http, true},
                        {std::string(2'001, 'A') + " /", Looks::other, false}}) {
    Word word;
    EXPECT_EQ(looks_like_request(c.bytes, word), c.request) << c.bytes;
    EXPECT_EQ(looks_like_http(c.bytes), c.http) << c.bytes;
    Word grown;
    Looks looks = Looks::open;
    for (std::size_t size = 1; size <= c.bytes.size() && looks == Looks::open; ++size) {
      looks = looks_like_request(c.bytes.substr(0, size), grown);
    }
    EXPECT_EQ(looks, c.request) << c.bytes << ", a byte at a time";
  }
}

}  // namespace
}  // namespace sluice::flow::http
