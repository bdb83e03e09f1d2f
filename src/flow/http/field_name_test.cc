#include "flow/http/field_name.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::flow::http {
namespace {

using namespace std::string_literals;

TEST(FieldNames, EachInAnyCaseAndWithNuls) {
  const std::pair<std::string, FieldName> names[] = {
      {"accept", FieldName::accept},
      {"Accept-Encoding", FieldName::accept_encoding},
      {"ACCEPT-LANGUAGE", FieldName::accept_language},
      {"Connection", FieldName::connection},
      {"content-Length", FieldName::content_length},
      {"Content-Type", FieldName::content_type},
      {"Cookie", FieldName::cookie},
      {"hOST", FieldName::host},
      {"Location", FieldName::location},
      {"Referer", FieldName::referer},
      {"Server", FieldName::server},
      {"Set-Cookie", FieldName::set_cookie},
      {"Upgrade", FieldName::upgrade},
      {"User-Agent", FieldName::user_agent},
  };
  EXPECT_EQ(std::size(names), known_field_names);
  for (const auto& [name, wanted] : names) {
    EXPECT_EQ(field_name_of(name), wanted) << name;
    EXPECT_EQ(field_name_of(name.substr(0, 3) + "\0\0"s + name.substr(3)), wanted) << name;
    EXPECT_EQ(field_name_of(name + std::string(1000, '\0')), wanted) << name;
    EXPECT_EQ(field_name_of(name + "s"), FieldName::other) << name;
    EXPECT_EQ(field_name_of(name.substr(0, name.size() - 1)), FieldName::other) << name;
    EXPECT_EQ(field_name_of("x" + name), FieldName::other) << name;
  }
}

TEST(FieldNames, OthersAreNone) {
  for (const std::string& name :
       {""s, "\0\0"s, "x"s, "~"s, "\xff"s, "Content-Encoding"s, "z-last"s, "@host"s, "[host"s}) {
    EXPECT_EQ(field_name_of(name), FieldName::other) << name;
  }
}

}  // namespace
}  // namespace sluice::flow::http
