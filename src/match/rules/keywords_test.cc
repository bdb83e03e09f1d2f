// The table of keywords: each name once, and documented. Runs in the repository's root, as ctest has it.
#include "match/rules/keywords.h"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "match/rules/buffer.h"

namespace sluice::match {
namespace {

TEST(Keywords, AreThereOnceAndAreEitherReadOrRefused) {
  std::set<std::string_view> names;
  for (const BufferName& buffer : buffer_names()) EXPECT_TRUE(names.insert(buffer.name).second) << buffer.name;
  for (const Keyword& keyword : keywords()) {
    EXPECT_TRUE(names.insert(keyword.name).second) << keyword.name;
    EXPECT_NE(keyword.parse == nullptr, keyword.why.empty()) << keyword.name;
    EXPECT_EQ(find_keyword(keyword.name), &keyword);
  }
  EXPECT_EQ(find_keyword("nobody-knows-it"), nullptr);
}

TEST(Keywords, AreInTheDocumentation) {
  std::ifstream file("docs/rules.md");
  std::stringstream text;
  text << file.rdbuf();
  ASSERT_FALSE(text.str().empty()) << "docs/rules.md is not there: run this in the repository's root";
  for (const Keyword& keyword : keywords()) {
    EXPECT_NE(text.str().find("`" + std::string(keyword.name) + "`"), std::string::npos) << keyword.name;
    EXPECT_NE(text.str().find(keyword.why), std::string::npos) << keyword.why;
  }
}

TEST(Keywords, OfAFamilyAreRefusedTogether) {
  EXPECT_EQ(family_refusal("tls.cert_subject"), "TLS records are not parsed");
  EXPECT_TRUE(family_refusal("content").empty());
}

}  // namespace
}  // namespace sluice::match
