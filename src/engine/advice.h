// The trait of an element's type that has more to say of its section than what is wrong with it.
//
// Thread-safety: the control thread. Sentences are for people, and name no key.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/section_view.h"

namespace sluice::engine {

class Advice {
 public:
  static constexpr std::string_view trait_name = "advice";
  enum class Occasion : std::uint8_t {
    check,  // `sluice check`, on which nothing else of the element's is said; the gateway's host may be another one
    start,
  };
  // What is no mistake and will surprise all the same, a sentence each. The element is in the chain, and the file is
  // right.
  virtual std::vector<std::string> notes(SectionView& /*view*/, Occasion /*occasion*/) const { return {}; }
  // For what a start would be refused on this host now, a sentence each. Likewise.
  virtual std::vector<std::string> lacks(SectionView& /*view*/) const { return {}; }
  // Names of ports that the element keeps for itself: no frame that comes in by one goes on to other elements.
  virtual std::vector<std::string> keeps_ports(Settings& /*section*/) const { return {}; }
  // Another element that a chain with this section has to have, for a proposal; empty: none. The element need not be in
  // the chain.
  virtual std::string_view wants_in_chain(Settings& /*section*/) const { return {}; }

 protected:
  ~Advice() = default;
};

}  // namespace sluice::engine
