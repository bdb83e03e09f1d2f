// The trait of an element's type that gives advice on its section, besides mistakes.
//
// Thread-safety: called by the control thread, or by the one that reloads. Sentences are for people; they contain no
// secret key.
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
    check,  // `sluice check`, perhaps on another host than the gateway's; it prints nothing else of the element
    start,  // or a reload
  };
  // What is no mistake but may surprise, a sentence each. Called if the element is in the chain and the file has no
  // mistake.
  virtual std::vector<std::string> notes(SectionView& /*view*/, Occasion /*occasion*/) const { return {}; }
  // Why a start would be refused on this host now, a sentence each. Called under the same conditions.
  virtual std::vector<std::string> lacks(SectionView& /*view*/) const { return {}; }
  // Names of ports that the element keeps for itself: no frame that comes in by one goes on to other elements.
  virtual std::vector<std::string> keeps_ports(Settings& /*section*/) const { return {}; }
  // The name of another element that a chain needs with this section, for a proposal; empty: none. Called whether the
  // element is in the chain or not.
  virtual std::string_view wants_in_chain(Settings& /*section*/) const { return {}; }

 protected:
  ~Advice() = default;
};

}  // namespace sluice::engine
