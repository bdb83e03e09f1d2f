#include "bench/techniques/techniques.h"

namespace sluice::match {

const char* name_of(Technique technique) {
  switch (technique) {
    case Technique::base:
      return "base";
    case Technique::prefetch:
      return "prefetch";
    case Technique::remap_each:
      return "remap_each";
    case Technique::cites_naive:
      return "cites_naive";
    case Technique::cites:
      return "cites";
    case Technique::cites_prefetch:
      return "cites_prefetch";
    case Technique::sorted:
      return "sorted";
    case Technique::segments:
      return "segments";
    case Technique::segments_hot:
      return "segments_hot";
    case Technique::segments_staged:
      return "segments_staged";
    case Technique::segments_pairs:
      return "segments_pairs";
  }
  return "?";
}

}  // namespace sluice::match
