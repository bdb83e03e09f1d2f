#include "bench/techniques/dfa.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace sluice::match {
namespace {

struct Node {
  std::array<std::int32_t, 256> child;
  bool ends = false;
  Node() { child.fill(-1); }
};

// A trie whose nodes are numbered in the order in which they are made.
struct Trie {
  std::vector<Node> nodes{1};

  void add(std::string_view bytes) {
    std::size_t at = 0;
    for (const char c : bytes) {
      const std::uint8_t byte = fold(static_cast<std::uint8_t>(c));
      if (nodes[at].child[byte] < 0) {
        nodes[at].child[byte] = static_cast<std::int32_t>(nodes.size());
        nodes.emplace_back();
      }
      at = static_cast<std::size_t>(nodes[at].child[byte]);
    }
    nodes[at].ends = true;
  }
};

}  // namespace

Expected<Dfa> Dfa::make(std::span<const Pattern> patterns, std::size_t depth) {
  Dfa dfa;
  Trie trie;
  for (const Pattern& pattern : patterns) {
    if (pattern.bytes.empty()) return make_error("an empty pattern matches everywhere");
    trie.add(std::string_view(pattern.bytes).substr(0, depth));
    dfa.depth_ = std::max(dfa.depth_, std::min(depth, pattern.bytes.size()));
    if (trie.nodes.size() > most_states) {
      return make_error("the patterns need more than " + std::to_string(most_states) + " states, of 1 KiB each");
    }
  }
  // Breadth first: the failure state of a state is done before the state itself.
  const std::size_t count = trie.nodes.size();
  std::vector<std::uint32_t> node{0}, number(count, 0), fail(count, 0);  // by number, by node, by number
  node.reserve(count);
  dfa.next_.resize(count * 256);
  for (std::size_t s = 0; s < node.size(); ++s) {
    Node& here = trie.nodes[node[s]];
    const std::uint32_t* const back = s == 0 ? nullptr : &dfa.next_[fail[s] * std::size_t{256}];
    for (unsigned byte = 0; byte < 256; ++byte) {
      const unsigned as = fold(static_cast<std::uint8_t>(byte));
      if (here.child[as] < 0) {
        dfa.next_[s * 256 + byte] = back == nullptr ? 0 : back[as];
        continue;
      }
      const auto child = static_cast<std::uint32_t>(here.child[as]);
      if (as == byte) {
        number[child] = static_cast<std::uint32_t>(node.size());
        node.push_back(child);
        const std::uint32_t behind = back == nullptr ? 0 : back[as];
        fail[number[child]] = behind & ~accepts;
        trie.nodes[child].ends |= (behind & accepts) != 0;
      }
    }
    for (unsigned byte = 0; byte < 256; ++byte) {
      const std::int32_t child = here.child[fold(static_cast<std::uint8_t>(byte))];
      if (child < 0) continue;
      const auto to = static_cast<std::uint32_t>(child);
      dfa.next_[s * 256 + byte] = number[to] | (trie.nodes[to].ends ? accepts : 0);
    }
  }
  dfa.fail_ = std::move(fail);
  return dfa;
}

std::uint32_t Dfa::count(std::string_view text) const {
  std::uint32_t state = 0, ends = 0;
  for (const char c : text) {
    const std::uint32_t entry = next_[state * std::size_t{256} + static_cast<std::uint8_t>(c)];
    state = entry & ~accepts;
    ends += entry >> 31;
  }
  return ends;
}

}  // namespace sluice::match
