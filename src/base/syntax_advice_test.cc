// With what toml++ itself says of each text.
#include <gtest/gtest.h>

#include <string>

#include "base/settings.h"

namespace sluice {
namespace {

// Of the one mistake in `text`, from the line's number on; empty: it is fine.
std::string refusal(const std::string& text) {
  Diagnostics diagnostics;
  const auto settings = Settings::from_text(text, "r.toml", diagnostics);
  return settings ? "" : settings.error().message.substr(std::string("r.toml:").size());
}

TEST(SyntaxAdvice, SaysWhatToWriteWhereTheCauseIsCommon) {
  struct Case {
    const char* text;
    const char* line;
    const char* advice;  // the end of the message
  };
  const Case cases[] = {
      {"[engine]\ndevice = auto\n", "2:", ": a text goes in quotes: device = \"auto\""},
      {"[[port]]\n  name = lan  # the inner one\n", "2:", ": a text goes in quotes: name = \"lan\""},
      {"deadline = 10ms\n", "1:", ": a text goes in quotes: deadline = \"10ms\""},
      {"size = 512M", "1:", ": a text goes in quotes: size = \"512M\""},
      {"listen = 127.0.0.1:9230\n", "1:", ": a text goes in quotes: listen = \"127.0.0.1:9230\""},
      {"table = /tmp/routes.txt\n", "1:", ": a text goes in quotes: table = \"/tmp/routes.txt\""},
      {"device = net_pcap0,rx_pcap=a\n", "1:", ": a text goes in quotes: device = \"net_pcap0,rx_pcap=a\""},
      {"device = 0000:3b:00.0\n", "1:", ": a text goes in quotes: device = \"0000:3b:00.0\""},
      {"mac = 02:00:00:00:00:01\n", "1:", ": a text goes in quotes: mac = \"02:00:00:00:00:01\""},
      {"prefix = 10.0.0.0/8\n", "1:", ": a text goes in quotes: prefix = \"10.0.0.0/8\""},
      {"deadline = 1.5s\n", "1:", ": a text goes in quotes: deadline = \"1.5s\""},
      {"device = auto,\n", "1:", ": a text goes in quotes: device = \"auto\""},
      {"name = tap0\n", "1:", ": a text goes in quotes: name = \"tap0\""},  // begins as true does
      {"name = e\n", "1:", ": a text goes in quotes: name = \"e\""},
      {"kernel = tru\n", "1:", ": write true or false"},
      {"kernel = fals\n", "1:", ": write true or false"},
      {"kernel = fal\n", "1:", ": write true or false"},
      {"kernel = ture # now\n", "1:", ": write true or false"},
      {"kernel = TRUE,\n", "1:", ": write true or false"},
      {"cores = 1, 2\n", "1:", ": a list goes in [ ]"},
      {"cores = 2,3,\n", "1:", ": a list goes in [ ]"},
      {"batch = 5,\n", "1:", ": nothing goes behind a value: take the , away"},
      {"share = -1_0.5,\n", "1:", ": nothing goes behind a value: take the , away"},
      {"kernel = true;\n", "1:", ": nothing goes behind a value: take the ; away"},
      {"kernel = True\n", "1:", ": write true or false"},
      {"kernel = yes\n", "1:", ": write true or false"},
      {"batch = 5;\n", "1:", ": nothing goes behind a value: take the ; away"},
      {"batch = \nmtu = 3\n", "1:", ": a value goes behind the ="},
      {"name = \"lan\nmtu = 3\n", "1:", ": the text has no \" at its end"},
      {"name \"lan\"\n", "1:", ": write key = value"},
      {"batch: 5\n", "1:", ": write key = value"},
      {"[engine\nbatch = 5\n", "1:", ": the section's name ends with ]"},
      {"[engine]\nbatch = 5\nbatch = 6\n", "3:", ": a key is there once: keep one"},
      {"[port]\nname = \"a\"\n[ port ] # b\nname = \"b\"\n",
       "3:", ": there may be several of it: write [[port]] each time"},
      {"[acl.rule]\n[[acl.rule]]\n", "2:", ": there may be several of it: write [[acl.rule]] each time"},
      {"[engine]\nbatch = 5\n[engine]\nmtu = 6\n", "3:", ": a section is there once: put its keys together"},
  };
  for (const Case& c : cases) {
    const std::string said = refusal(c.text);
    EXPECT_TRUE(said.starts_with(c.line)) << c.text << said;
    EXPECT_TRUE(said.ends_with(c.advice)) << c.text << said;
  }
}

// What toml++ says is all there is to say: in quotes it would be refused again, and so would 05 without its comma.
TEST(SyntaxAdvice, LeavesANumberADateOrAListThatIsWrongToTheReader) {
  struct Case {
    const char* text;
    const char* end;  // of toml++'s own words
  };
  const Case cases[] = {
      {"batch = 99999999999999999999\n", "'99999999999999999999' is not representable in 64 bits"},
      {"batch = 99999999999999999999,\n", "'99999999999999999999' is not representable in 64 bits"},
      {"batch = 007\n", "leading zeroes are prohibited"},
      {"batch = 05,\n", "leading zeroes are prohibited"},
      {"cores = 05, 6\n", "leading zeroes are prohibited"},
      {"batch = 1__0\n", "underscores may only follow digits"},
      {"batch = 1__0,\n", "underscores may only follow digits"},
      {"x = 1.,\n", "expected decimal digit, saw ','"},
      {"x = 1. \n", "expected decimal digit, saw ' '"},
      {"x = 0xfg\n", "expected digit, saw 'g'"},
      {"x = 1e5x\n", "expected decimal digit, saw 'x'"},
      {"x = 10.5.6\n", "expected decimal digit or exponent, saw '.'"},
      {"x = 5 6\n", "expected a comment or whitespace, saw '6'"},
      {"x = 2024-13-01\n", "expected month between 1 and 12 (inclusive), saw 13"},
      {"x = 10:99:00.5\n", "expected minute between 0 and 59 (inclusive), saw 99"},
      {"batch = 5]\n", "expected a comment or whitespace, saw ']'"},
      {"batch = 5,,\n", "expected a comment or whitespace, saw ','"},
      {"a.b. = 3\n", "expected bare key starting character or string delimiter, saw '='"},
      {"  a.b. = lan\n", "expected bare key starting character or string delimiter, saw '='"},
  };
  for (const Case& c : cases) {
    const std::string said = refusal(c.text);
    EXPECT_TRUE(said.ends_with(c.end)) << c.text << said;
  }
}

TEST(SyntaxAdvice, SaysNothingOfWhatItDoesNotKnow) {
  for (const char* text : {"a = [1, , 2]\n", "a = \"\\q\"\n", "a = {b = 1,}\n", "= 3\n", "\x80 = 1\n"}) {
    const std::string said = refusal(text);
    EXPECT_NE(said, "") << text;
    EXPECT_EQ(said.find("quotes"), std::string::npos) << said;
  }
}

}  // namespace
}  // namespace sluice
