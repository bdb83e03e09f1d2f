#include "media/srtp/suite.h"

#include "media/text.h"

namespace sluice::srtp {

std::optional<Suite> suite_named(std::string_view name) {
  for (const SuiteFacts& suite : suites) {
    if (media::same_name(suite.name, name)) {
      return suite.suite;
    }
  }
  return std::nullopt;
}

}  // namespace sluice::srtp
