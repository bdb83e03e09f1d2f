#include "packet/reason.h"

#include <array>
#include <cstdio>
#include <cstdlib>

#include "base/name.h"
#include "base/quote.h"

namespace sluice::packet {
namespace {

struct Entry {
  std::string_view name;
  std::string_view text;
  DroppedBy by = DroppedBy::fault;
};

struct Table {
  std::array<Entry, max_reasons> entries{Entry{"none", "nothing is wrong"}};
  unsigned count = 1;
};

Table& table() {
  static Table instance;
  return instance;
}

ReasonTrial* trial = nullptr;

}  // namespace

Reason register_reason(std::string_view name, std::string_view text, DroppedBy by) {
  Table& t = table();
  std::string mistake = is_name(name) ? "" : "reason " + in_quotes(name) + ": " + std::string(name_rule);
  for (unsigned i = 0; i < t.count; ++i) {
    const Entry& entry = t.entries[i];
    if (entry.name != name) continue;
    if (trial != nullptr && entry.text == text && entry.by == by) return static_cast<Reason>(i);
    mistake = "reason '" + std::string(name) + "' is registered twice";
  }
  if (mistake.empty() && t.count == max_reasons) {
    mistake = "the program and its plug-ins have more than " + std::to_string(max_reasons) + " reasons for drops: " +
              (trial != nullptr ? "load fewer plug-ins, or let the plug-in count several drops under one reason"
                                : "raise max_reasons in packet/reason.h");
  }
  if (mistake.empty()) {
    t.entries[t.count] = {name, text, by};
    return static_cast<Reason>(t.count++);
  }
  if (trial == nullptr) {
    std::fprintf(stderr, "%s\n", mistake.c_str());
    std::abort();
  }
  if (trial->mistake_.empty()) trial->mistake_ = mistake;
  return no_reason;
}

ReasonTrial::ReasonTrial() : count_(table().count) {
  trial = this;
}

ReasonTrial::~ReasonTrial() {
  trial = nullptr;
  if (!keeps_) table().count = count_;
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
bool is_on_purpose(Reason reason) {
  return reason < table().count && table().entries[reason].by == DroppedBy::purpose;
}

}  // namespace sluice::packet
