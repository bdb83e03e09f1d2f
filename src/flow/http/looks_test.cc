#include "flow/http/looks.h"

#include <gtest/gtest.h>

#include <string>
#include <tuple>

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
                        {"FOO bar", Looks::unlikely, false},
                        {"FOO bar\r\n", Looks::other, false},
                        {"FOO bar HTTP/1.1", Looks::unlikely, false},
                        {"FOO bar HTTP/1.1\r\n", Looks::http, true},
                        {"FOO  /bar hTTp/1.0 \n", Looks::http, true},
                        {"FOO ftp://bar HTTP/1.1\r\n", Looks::http, true},
                        {"FOO bar HTTP/\r\n", Looks::other, false},
                        {"FOO bar HTTP/1.1 no\r\n", Looks::other, false},
                        {"HTTP/1.1\r\n", Looks::other, true},
                        {"G(T / HTTP/1.1\r\n", Looks::http, true},
                        {"G(T /\r\n", Looks::other, false},
                        {"\v\fGET /", Looks::http, true},
                        {"GET\v/", Looks::http, true},
                        {"FOO\nHTTP/1.1\r\n", Looks::other, false},
                        {"FOO\r\n/ HTTP/1.1\r\n", Looks::other, false},
                        {"GET\x1c/\x1cHTTP/1.1\r\n", Looks::http, true},
                        {"\xa0GET / HTTP/1.1\r\n", Looks::http, true},
                        {"FOO *bar", Looks::unlikely, false},
                        {"FOO *bar\r\n", Looks::other, false},
                        {"PRI * HTTP/2.0", Looks::http, false},
                        {"G", Looks::open, false},
                        {"\r\n", Looks::open, false},
                        {"FOO htt", Looks::open, false},
                        {"HTTP/1.1 200 ok\n", Looks::other, true},
                        {"\n HTTP/1.1\n", Looks::other, true},
                        {"HTTP", Looks::open, false},
                        {"\x16\x03\x01", Looks::unlikely, false},
                        {"\x16\x03\x01\n", Looks::other, false},
                        {std::string(16'384, 'A'), Looks::open, false},
                        {std::string(16'382, 'A') + " /", Looks::http, true},
                        {std::string(16'384, '('), Looks::unlikely, false},
                        {std::string(16'385, '('), Looks::other, false},
                        {std::string(16'385, 'A'), Looks::other, false},
                        {std::string(16'384, 'A') + " / HTTP/1.1\n", Looks::other, false},
                        {std::string(16'384, '(') + " HTTP/1.1\n", Looks::other, false}}) {
    Word word;
    EXPECT_EQ(looks_like_request(c.bytes, word), c.request) << c.bytes;
    EXPECT_EQ(looks_like_http(c.bytes), c.http) << c.bytes;
    Word grown;
    Looks looks = Looks::open;
    const auto waits = [&] { return looks == Looks::open || looks == Looks::unlikely; };
    for (std::size_t size = 1; size <= c.bytes.size() && waits(); ++size) {
      looks = looks_like_request(c.bytes.substr(0, size), grown);
    }
    EXPECT_EQ(looks, c.request) << c.bytes << ", a byte at a time";
  }
}

TEST(HttpLooks, ProxyHeaders) {
  const std::string v2("\0\r\nQUIT\n\x21\x11\0\3abc", 15);
  for (const auto& [bytes, looks, size] :
       {std::tuple{std::string("PROXY TCP4 1.2.3.4 5.6.7.8 9 10\r\nGET"), Looks::http, 33U},
        {"PROXY UNKNOWN\r\n", Looks::http, 15U},
        {"PROXY TCP4 1.2.3.4", Looks::other, 0U},
        {"PROXY /x\r\n", Looks::other, 0U},
        {v2 + "GET", Looks::http, 15U},
        {v2.substr(0, 14), Looks::open, 15U},
        {v2.substr(0, 11), Looks::open, 0U},
        {v2.substr(0, 3), Looks::open, 0U},
        {std::string("\0x", 2), Looks::other, 0U}}) {
    const ProxyHeader header = proxy_header(bytes);
    EXPECT_EQ(header.looks, looks) << bytes;
    EXPECT_EQ(header.size, size) << bytes;
  }
}

}  // namespace
}  // namespace sluice::flow::http
