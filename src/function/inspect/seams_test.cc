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

// Contents without absolute places and without negation: what holds in a part of a stream, holds in the whole.
std::string rules_of(Random& random, const std::vector<std::string>& words, std::size_t count) {
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
    told_.insert(sid);
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
              inspection.brief_of(frame).quiet};
    }
    inspection.frame(frame, now_ += 1000, hits);
  }
  PacketBuilder segment(bool to_server, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledged) {
    PacketBuilder builder;
    to_server ? builder.ipv4("10.0.0.1", "10.0.0.2").tcp(4000, 80) : builder.ipv4("10.0.0.2", "10.0.0.1").tcp(80, 4000);
    builder.tcp_flags(flags).tcp_sequence(sequence, acknowledged);
    return builder;
  }
  // The rules that hold, told of a connection in which `text` comes in these pieces.
  Sids told_of(const std::string& text, const std::vector<Piece>& pieces, Search search, unsigned seed) {
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
      feed(inspection, segment(true, packet::tcp_ack, sequence, 5000).payload(Bytes(part.begin(), part.end())),
           by_device);
    }
    EXPECT_EQ(inspection.counters().left, 0U);
    EXPECT_EQ(inspection.conversations().stream_counters().gaps, 0U);
    search_ = inspection.exchange(std::make_unique<InspectionSearch>(rules_));
    return std::exchange(told_, {});
  }

  std::shared_ptr<InspectionRules> rules_;
  std::unique_ptr<InspectionSearch> search_;
  Sids told_;
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

TEST_F(Seams, a_cut_changes_no_rule_that_holds) {
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
      const Sids whole = told_of(text, {{0, text.size()}}, Search::core, 0);
      held += whole.size();
      did_not += count - whole.size();
      for (const Search search : {Search::core, Search::device, Search::either}) {
        for (const bool in_order : {true, false}) {
          const auto seed = static_cast<unsigned>(random());
          Random cuts(seed);
          ASSERT_EQ(told_of(text, cut(cuts, text.size(), in_order), search, seed), whole)
              << "set " << set << ", stream " << stream << ", search " << static_cast<int>(search) << ", in order "
              << in_order;
        }
      }
    }
  }
  EXPECT_GT(held, 300U);
  EXPECT_GT(did_not, 300U);
}

// A rule holds anew when its pattern comes anew, whoever searches. The pieces are long enough for a pattern to be in
// one of them or two, and the rules so few that all that are open are known.
TEST_F(Seams, a_rule_holds_as_often_whoever_searches) {
  Random random(11);
  std::size_t held = 0;
  for (int set = 0; set < 40; ++set) {
    std::vector<std::string> words;
    while (words.size() < 24) {
      if (std::string made = word(random); made.size() > 3) words.push_back(made);
    }
    use(rules_of(random, words, 1 + pick(random, 8)));
    for (int stream = 0; stream < 12; ++stream) {
      std::string text;
      while (text.size() < 2000) {
        text += pick(random, 3) == 0 ? words[pick(random, words.size())] : std::string(pick(random, 30), 'x');
      }
      std::vector<Piece> pieces;
      for (std::size_t at = 0; at < text.size(); at += pieces.back().size) {
        pieces.push_back({at, std::min(20 + pick(random, 300), text.size() - at)});
      }
      told_of(text, pieces, Search::core, 0);
      const auto by_core = each_;
      held += by_core.size();
      for (const Search search : {Search::device, Search::either}) {
        told_of(text, pieces, search, static_cast<unsigned>(random()));
        ASSERT_EQ(each_, by_core) << "set " << set << ", stream " << stream << ", search " << static_cast<int>(search);
      }
    }
  }
  EXPECT_GT(held, 2000U);
}

}  // namespace
}  // namespace sluice::function
