#include "packet/reason.h"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace sluice::packet {
namespace {

struct Entry {
  std::string_view name;
  std::string_view text;
};

struct Table {
  std::array<Entry, max_reasons> entries{Entry{"none", "nothing is wrong"}};
  unsigned count = 1;
};

Table& table() {
  static Table instance;
  return instance;
}

}  // namespace

Reason register_reason(std::string_view name, std::string_view text) {
  Table& t = table();
  for (unsigned i = 0; i < t.count; ++i) {
    if (t.entries[i].name == name) {
      std::fprintf(stderr, "reason '%.*s' is registered twice\n", static_cast<int>(name.size()), name.data());
      std::abort();
    }
  }
  if (t.count == max_reasons) {
    std::fprintf(stderr, "more than %u reasons: raise max_reasons in packet/reason.h\n", max_reasons);
    std::abort();
  }
  t.entries[t.count] = {name, text};
  return static_cast<Reason>(t.count++);
}

unsigned reason_count() {
  return table().count;
}
std::string_view reason_name(Reason reason) {
  return reason < table().count ? table().entries[reason].name : "unknown";
}
std::string_view reason_text(Reason reason) {
  return reason < table().count ? table().entries[reason].text : "unknown";
}

}  // namespace sluice::packet
