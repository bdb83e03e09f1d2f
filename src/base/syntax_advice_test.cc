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
      {"kernel = True\n", "1:", ": write true or false"},
      {"kernel = yes\n", "1:", ": write true or false"},
      {"batch = 5;\n", "1:", ": nothing goes behind a value: take the ; away"},
      {"batch = \nmtu = 3\n", "1:", ": a value goes behind the ="},
      {"name = \"lan\nmtu = 3\n", "1:", ": the text has no \" at its end"},
      {"name \"lan\"\n", "1:", ": write key = value"},
      {"batch: 5\n", "1:", ": write key = value"},
      {"[engine\nbatch = 5\n", "1:", ": the section's name ends with ]"},
      {"[engine]\nbatch = 5\nbatch = 6\n", "3:", ": a key is there once: keep one"},
      {"[engine]\nbatch = 5\n[engine]\nmtu = 6\n", "3:", ": a section is there once: put its keys together"},
  };
  for (const Case& c : cases) {
    const std::string said = refusal(c.text);
    EXPECT_TRUE(said.starts_with(c.line)) << c.text << said;
    EXPECT_TRUE(said.ends_with(c.advice)) << c.text << said;
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
