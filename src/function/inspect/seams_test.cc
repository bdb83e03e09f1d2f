// However a stream is cut, and whoever searches it, the same rules hold as when all of it comes in one segment: made-up
// rules of several contents on made-up streams.
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "function/inspect/inspection.h"
#include "match/automaton/key_scan.h"
#include "packet/builder.h"
#include "packet/headers.h"

namespace sluice::function {
namespace {

using packet::Bytes;
using packet::PacketBuilder;
using Random = std::mt19937;
using Sids = std::set<std::uint32_t>;

enum class Search : std::uint8_t { core, device, either };  // either: another one for each segment, by chance

struct Piece {
  std::size_t at, size;
  bool push = false;
  std::uint8_t ttl = 64;
};

std::size_t pick(Random& random, std::size_t count) {
  return random() % count;
}

// Of few letters, so that parts of contents are everywhere.
std::string word(Random& random) {
  std::string text;
  const std::size_t size = pick(random, 8) == 0 ? 1 : 2 + pick(random, 14);
  while (text.size() < size) text += "abcABC|-"[pick(random, 8) == 0 ? 6 + pick(random, 2) : pick(random, 6)];
  return text;
}

std::string quoted(const std::string& text) {
  std::string out;
  for (const char c : text) out += c == '|' ? std::string("|7C|") : std::string(1, c);
  return '"' + out + '"';
}

// What a piece of the stream may be refused for, whatever its payload is: by its packet, where the rule is of streams.
std::string header_options(Random& random) {
  switch (pick(random, 8)) {
    case 0:
      return "flow:only_stream; flags:PA; ";
    case 1:
      return "flow:only_stream; dsize:>" + std::to_string(pick(random, 250)) + "; ";
    case 2:
      return "flow:only_stream; ttl:>60; ";
    case 3:
      return "stream_size:client,>," + std::to_string(pick(random, 2000)) + "; ";
    case 4:
      return "flowbits:isset,first; ";
    case 5:
      return "flowbits:isnotset,second; ";
    case 6:
      return pick(random, 2) == 0 ? "flowbits:set,first; " : "flowbits:unset,first; ";
    default:
      return pick(random, 2) == 0 ? "flowbits:toggle,second; " : "";
  }
}

// Contents without absolute places and without negation: what holds in a part of a stream, holds in the whole. But
// `headers`: rules have options that are about the packet or the flow.
std::string rules_of(Random& random, const std::vector<std::string>& words, std::size_t count, bool headers = false) {
  std::string rules;
  for (std::size_t r = 0; r < count; ++r) {
    rules += "alert tcp any any -> any 80 (";
    const std::size_t contents = 1 + pick(random, 3);
    for (std::size_t c = 0; c < contents; ++c) {
      const std::string& text = words[pick(random, words.size())];
      rules += "content:" + quoted(text) + "; ";
      if (pick(random, 3) == 0) rules += "nocase; ";
      if (c != 0 && pick(random, 2) == 0)
        rules += "distance:" + std::to_string(pick(random, 30)) + "; ";
      else if (c != 0 && pick(random, 3) == 0)
        rules += "within:" + std::to_string(text.size() + pick(random, 200)) + "; ";
    }
    if (headers) rules += header_options(random);
    rules += "sid:" + std::to_string(r + 1) + ";)\n";
  }
  return rules;
}

class Seams : public testing::Test, public AlertSink {
 protected:
  void use(const std::string& text) {
    auto set = match::read_rules_text(text, "test.rules");
    ASSERT_TRUE(set) << set.error().message;
    ASSERT_TRUE(set->refused.empty()) << set->refused[0].message;
    auto rules = InspectionRules::make(std::move(*set));
    ASSERT_TRUE(rules) << rules.error().message;
    rules_ = std::move(*rules);
    search_ = std::make_unique<InspectionSearch>(rules_);
  }
  void alert(const Alert& alert) override {
    const std::uint32_t sid = rules_->detector().rules().rules[alert.rule].sid;
    reported_.insert(sid);
    each_.insert({now_ - began_, sid});
  }

  void feed(Inspection& inspection, const PacketBuilder& builder, bool by_device) {
    const Bytes bytes = builder.build();
    const std::string_view frame{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    const match::PacketFacts facts = match::facts_of(frame);
    std::vector<std::uint32_t> keys;
    KeyHits hits;
    if (by_device) {
      match::scan_keys(rules_->gram_table().view(), facts.payload, 0, rules_->detector().classes().class_of(facts),
                       keys);
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      hits = {rules_->generation(), keys.data(), static_cast<std::uint32_t>(keys.size()),
              inspection.brief_of(frame).updates_flow_only};
    }
    inspection.frame(frame, now_ += 1000, hits);
  }
  PacketBuilder segment(bool to_server, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledged) {
    PacketBuilder builder;
    to_server ? builder.ipv4("10.0.0.1", "10.0.0.2").tcp(4000, 80) : builder.ipv4("10.0.0.2", "10.0.0.1").tcp(80, 4000);
    builder.tcp_flags(flags).tcp_sequence(sequence, acknowledged);
    return builder;
  }
  // The rules that hold, as reported of a connection in which `text` comes in these pieces.
  Sids reported_in(const std::string& text, const std::vector<Piece>& pieces, Search search, unsigned seed) {
    InspectionSettings settings;
    settings.conversations.flows.capacity = 16;
    settings.conversations.extras = 4;
    settings.conversations.http_connections = 2;
    settings.conversations.http_transactions = 4;
    settings.conversations.stream_bytes = settings.conversations.http_bytes = 1 << 20;
    Inspection inspection(std::move(search_), settings, *this);
    Random random(seed);
    began_ = now_;
    each_.clear();
    feed(inspection, segment(true, packet::tcp_syn, 999, 0), false);
    feed(inspection, segment(false, packet::tcp_syn | packet::tcp_ack, 4999, 1000), false);
    feed(inspection, segment(true, packet::tcp_ack, 1000, 5000), false);
    for (const Piece& piece : pieces) {
      const std::string part = text.substr(piece.at, piece.size);
      const bool by_device = search == Search::device || (search == Search::either && random() % 2 == 0);
      const auto sequence = static_cast<std::uint32_t>(1000 + piece.at);
      const auto flags = static_cast<std::uint8_t>(packet::tcp_ack | (piece.push ? packet::tcp_psh : 0));
      feed(inspection, segment(true, flags, sequence, 5000).ttl(piece.ttl).payload(Bytes(part.begin(), part.end())),
           by_device);
    }
    EXPECT_EQ(inspection.counters().left, 0U);
    EXPECT_EQ(inspection.conversations().stream_counters().gaps, 0U);
    search_ = inspection.exchange(std::make_unique<InspectionSearch>(rules_));
    return std::exchange(reported_, {});
  }

  std::shared_ptr<InspectionRules> rules_;
  std::shared_ptr<InspectionSearch> search_;
  Sids reported_;
  std::multiset<std::pair<std::uint64_t, std::uint32_t>> each_;  // when, and the rule, of the last connection
  std::uint64_t now_ = 0, began_ = 0;
};

std::vector<Piece> cut(Random& random, std::size_t size, bool in_order) {
  std::vector<Piece> pieces;
  const std::size_t most = 1 + pick(random, pick(random, 4) == 0 ? 600 : 40);
  for (std::size_t at = 0; at < size;) {
    const std::size_t count = std::min(1 + pick(random, most), size - at);
    pieces.push_back({at, count});
    at += count;
  }
  for (std::size_t p = 0; !in_order && p < pieces.size(); ++p) {
    std::swap(pieces[p], pieces[std::min(p + pick(random, 4), pieces.size() - 1)]);
  }
  return pieces;
}

TEST_F(Seams, ACutChangesNoRuleThatHolds) {
  Random random(7);
  std::size_t held = 0, did_not = 0;
  for (int set = 0; set < 12; ++set) {
    std::vector<std::string> words;
    while (words.size() < 24) words.push_back(word(random));
    const std::size_t count = 4 + pick(random, 40);
    use(rules_of(random, words, count));
    for (int stream = 0; stream < 12; ++stream) {
      std::string text;
      const std::size_t size = 20 + pick(random, 1300);
      while (text.size() < size) {
        text += pick(random, 3) == 0 ? words[pick(random, words.size())] : std::string(pick(random, 30), 'x');
      }
      const Sids whole = reported_in(text, {{0, text.size()}}, Search::core, 0);
      held += whole.size();
      did_not += count - whole.size();
      for (const Search search : {Search::core, Search::device, Search::either}) {
        for (const bool in_order : {true, false}) {
          const auto seed = static_cast<unsigned>(random());
          Random cuts(seed);
          ASSERT_EQ(reported_in(text, cut(cuts, text.size(), in_order), search, seed), whole)
              << "set " << set << ", stream " << stream << ", search " << static_cast<int>(search) << ", in order "
              << in_order;
        }
      }
    }
  }
  EXPECT_GT(held, 300U);
  EXPECT_GT(did_not, 300U);
}

// A pattern cut in two, of which the first piece has what a device knows it by, and does not let its rule hold.
TEST_F(Seams, ARuleWaitsForItsPatternWhateverRefusesThePieceBefore) {
  const std::string pattern = "USER images PASS images SYST", alert = "alert tcp any any -> any 80 (content:";
  const std::string of_pattern = alert + '"' + pattern + "\"; ";
  struct Case {
    const char* name;
    std::string rules;
  };
  const Case cases[] = {
      {"nothing", of_pattern + "sid:1;)"},
      {"without case", of_pattern + "nocase; sid:1;)"},
      {"flags", of_pattern + "flow:only_stream; flags:PA; sid:1;)"},
      {"dsize", of_pattern + "flow:only_stream; dsize:<17; sid:1;)"},
      {"ttl", of_pattern + "flow:only_stream; ttl:32; sid:1;)"},
      {"stream_size", of_pattern + "stream_size:client,>,30; sid:1;)"},
      {"flowbits", of_pattern + "flowbits:isset,b; sid:1;)\n" + alert + "\"USER\"; flowbits:set,b; sid:2;)"},
      {"flowbits of one piece",
       alert + "\"zzzz\"; flowbits:set,b; sid:2;)\n" + of_pattern + "flowbits:isset,b; sid:1;)"},
      {"a rule of pass", of_pattern + "sid:1;)\npass tcp-pkt any any -> any 80 (content:\"USER\"; sid:2;)"},
      {"more than are kept", [&] {
         std::string rules;
         for (int sid = 1; sid <= 20; ++sid)
           rules += of_pattern + "flow:only_stream; flags:PA; sid:" + std::to_string(sid) + ";)\n";
         return rules;
       }()}};
  const std::string text = "xxxx" + pattern + "zzzz";
  for (const Case& c : cases) {
    use(c.rules);
    for (const std::size_t at : {std::size_t{20}, std::size_t{22}, std::size_t{29}, std::size_t{31}}) {
      // Of three pieces the one in the middle has no end of the pattern, unless it is the one.
      for (const std::size_t middle : {std::size_t{0}, std::size_t{1}, std::size_t{2}}) {
        std::vector<Piece> pieces = {{0, at}};
        if (middle != 0) pieces.push_back({at, middle});
        pieces.push_back({at + middle, text.size() - at - middle});
        if (middle != 0 && at + middle >= 4 + pattern.size()) continue;
        pieces.back().push = true;
        pieces.back().ttl = 32;
        const Sids by_core = reported_in(text, pieces, Search::core, 0);
        const auto each_by_core = each_;
        EXPECT_TRUE(by_core.contains(1)) << c.name << " " << at << " " << middle;
        for (unsigned seed = 0; seed < 4; ++seed) {
          reported_in(text, pieces, seed == 0 ? Search::device : Search::either, seed);
          EXPECT_EQ(each_, each_by_core) << c.name << " " << at << " " << middle << " " << seed;
        }
      }
    }
  }
}

// A rule that has held is known for as long as four others have not (flow/carried.h). Its pattern comes anew behind
// theirs, and is cut.
TEST_F(Seams, ARuleThatHasHeldWaitsForItsPatternWhateverHoldsMeanwhile) {
  const std::string pattern = "USER images PASS images SYST";
  const std::string others[] = {"first of others", "second of others", "third of others", "fourth of others",
                                "fifth of others"};
  std::string rules = "alert tcp any any -> any 80 (content:\"" + pattern + "\"; sid:1;)\n";
  for (std::size_t o = 0; o < std::size(others); ++o) {
    rules += "alert tcp any any -> any 80 (content:\"" + others[o] + "\"; sid:" + std::to_string(2 + o) + ";)\n";
  }
  use(rules);
  for (std::size_t count = 0; count <= std::size(others); ++count) {
    std::string text = "xxxx" + pattern + "zzzz";
    const std::size_t first = text.size();
    for (std::size_t o = 0; o < count; ++o) text += others[o] + "--";
    const std::size_t begins = text.size();
    text += pattern + "zzzz";
    for (std::size_t part = 1; part < pattern.size(); ++part) {
      const std::size_t at = begins + part;
      // The others come with the beginning, or in a piece of their own.
      for (const bool together : {true, false}) {
        std::vector<Piece> pieces = {{0, first}};
        if (together) {
          pieces.push_back({first, at - first});
        } else {
          if (count != 0) pieces.push_back({first, begins - first});
          pieces.push_back({begins, part});
        }
        pieces.push_back({at, text.size() - at});
        reported_in(text, pieces, Search::core, 0);
        const auto by_core = each_;
        EXPECT_EQ(by_core.size(), 2 + count);
        for (unsigned seed = 0; seed < 4; ++seed) {
          reported_in(text, pieces, seed == 0 ? Search::device : Search::either, seed);
          EXPECT_EQ(each_, by_core) << count << " others, cut at " << part << ", " << together << " " << seed;
        }
      }
    }
  }
}

// Where more rules begin than are kept, no rule is reported again of what the window has had for long.
TEST_F(Seams, ManyRulesThatBeginMakeNoOtherHoldTwice) {
  const std::string pattern = "USER images PASS images SYST";
  std::string rules, before;
  for (int sid = 1; sid <= 6; ++sid) {
    const std::string other = std::string(8, static_cast<char>('a' + sid)) + "-of-others";
    rules += "alert tcp any any -> any 80 (content:" + quoted(other) + "; sid:" + std::to_string(sid) + ";)\n";
    before += other + "  ";
  }
  for (int sid = 11; sid <= 20; ++sid) {
    rules += "alert tcp any any -> any 80 (content:" + quoted(pattern) + "; sid:" + std::to_string(sid) + ";)\n";
  }
  use(rules);
  const std::string text = before + pattern + "zzzz";
  for (std::size_t part = 1; part < pattern.size(); ++part) {
    const std::size_t at = before.size() + part;
    const std::vector<Piece> pieces = {
        {0, before.size()}, {before.size(), part}, {at, 1}, {at + 1, text.size() - at - 1}};
    reported_in(text, pieces, Search::core, 0);
    const auto by_core = each_;
    EXPECT_EQ(by_core.size(), 16U);
    for (unsigned seed = 0; seed < 4; ++seed) {
      reported_in(text, pieces, seed == 0 ? Search::device : Search::either, seed);
      EXPECT_EQ(each_, by_core) << "cut at " << part << ", " << seed;
    }
  }
}

// More rules hold with each piece than are known to have held, and many of their patterns are cut.
TEST_F(Seams, RulesOfOneContentHoldAsOftenWhoeverSearches) {
  Random random(13);
  std::size_t held = 0;
  for (int set = 0; set < 6; ++set) {
    std::vector<std::string> words;
    std::string rules;
    while (words.size() < 40) {
      std::string text;
      for (const std::size_t size = 12 + pick(random, 30); text.size() < size;) {
        text += static_cast<char>('a' + pick(random, 26));
      }
      words.push_back(text);
      rules += "alert tcp any any -> any 80 (content:\"" + text + "\"; sid:" + std::to_string(words.size()) + ";)\n";
    }
    use(rules);
    for (int stream = 0; stream < 12; ++stream) {
      std::string text;
      while (text.size() < 4000) text += words[pick(random, words.size())];
      std::vector<Piece> pieces;
      for (std::size_t at = 0; at < text.size(); at += pieces.back().size) {
        pieces.push_back({at, std::min(20 + pick(random, 500), text.size() - at)});
      }
      reported_in(text, pieces, Search::core, 0);
      const auto by_core = each_;
      held += by_core.size();
      for (const Search search : {Search::device, Search::either}) {
        reported_in(text, pieces, search, static_cast<unsigned>(random()));
        ASSERT_EQ(each_, by_core) << "set " << set << ", stream " << stream << ", search " << static_cast<int>(search);
      }
    }
  }
  EXPECT_GT(held, 2000U);
}

// A rule holds anew when its pattern comes anew, whoever searches, and whatever of the packet's header and the flow's
// bits refuses it before. The pieces are long enough for a pattern to be in one of them or two, and the rules so few
// that all that are open are known.
class SeamsOften : public Seams, public testing::WithParamInterface<bool> {};

TEST_P(SeamsOften, ARuleHoldsAsOftenWhoeverSearches) {
  Random random(11);
  std::size_t held = 0;
  for (int set = 0; set < 60; ++set) {
    std::vector<std::string> words;
    while (words.size() < 24) {
      if (std::string made = word(random); made.size() > 3) words.push_back(made);
    }
    const std::string rules = rules_of(random, words, 1 + pick(random, 8), GetParam());
    use(rules);
    for (int stream = 0; stream < 12; ++stream) {
      std::string text;
      while (text.size() < 2000) {
        text += pick(random, 3) == 0 ? words[pick(random, words.size())] : std::string(pick(random, 30), 'x');
      }
      std::vector<Piece> pieces;
      for (std::size_t at = 0; at < text.size(); at += pieces.back().size) {
        const auto ttl = static_cast<std::uint8_t>(pick(random, 2) == 0 ? 64 : 32);
        pieces.push_back({at, std::min(20 + pick(random, 300), text.size() - at), pick(random, 2) == 0, ttl});
      }
      reported_in(text, pieces, Search::core, 0);
      const auto by_core = each_;
      held += by_core.size();
      for (const Search search : {Search::device, Search::either}) {
        reported_in(text, pieces, search, static_cast<unsigned>(random()));
        ASSERT_EQ(each_, by_core) << "set " << set << ", stream " << stream << ", search " << static_cast<int>(search)
                                  << "\n"
                                  << rules;
      }
    }
  }
  EXPECT_GT(held, 2000U);
}
INSTANTIATE_TEST_SUITE_P(options_of_headers, SeamsOften, testing::Bool());

}  // namespace
}  // namespace sluice::function
