// Any bytes as ClassBench filters, as a ClassBench trace, as [[acl.rule]] and [[acl.set]], and as an entry of a set:
// accepted, or refused with lines that name the file. Accepted ones pass check(), and their tables keep to a limit.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/acl/acl_settings.h"
#include "lookup/acl/classbench.h"
#include "lookup/acl/set_tables.h"
#include "lookup/acl/tables.h"
#include "require.h"

using namespace sluice;
using namespace sluice::lookup::acl;

namespace {

// A file of this process, gone with it.
class File {
 public:
  File() { REQUIRE(mkstemp(path_.data()) >= 0); }
  ~File() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::string& write(std::string_view text) const {
    const int file = open(path_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    REQUIRE(file >= 0);
    REQUIRE(::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(file);
    return path_;
  }

 private:
  std::string path_ = (std::filesystem::temp_directory_path() / "acl-rules-fuzz-XXXXXX").string();
};

void check_error(const Error& error, const std::string& path) {
  std::istringstream lines(error.message);
  unsigned count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    REQUIRE(line.starts_with(path + ":"));
  }
  REQUIRE(count >= 1 && count <= 11);
}

void check_rules(const std::vector<AclRule>& rules) {
  REQUIRE(check(rules));
  const auto tables = Tables::build(rules, {.max_bytes = 1U << 20});
  REQUIRE(!tables || tables->bytes() <= (1U << 20) + 4096);
}

// Tags are those that the plan gives out.
void check_sets(const RuleBook& book) {
  const SetTables tables = SetTables::build(book.sets, book.plan);
  unsigned all = 0;
  for (const TagPlan::Use& use : book.plan.uses()) all |= use.bit;
  for (const std::uint8_t fill : {0x00, 0x0a, 0xff}) {
    Key4 key4;
    Key6 key6;
    std::memset(&key4, fill, sizeof key4);
    std::memset(&key6, fill, sizeof key6);
    REQUIRE((tables.tags(key4) & ~all) == 0 && (tables.tags(key6) & ~all) == 0);
  }
}

// As entries of a set, one a line: what is read is written so that it is read as the same.
void check_entries(std::string_view bytes) {
  for (const SetType type : {SetType::addresses, SetType::ports}) {
    const auto entry = parse_set_entry(type, bytes.substr(0, bytes.find('\n')));
    if (!entry) continue;
    REQUIRE(entry->first <= entry->last);
    const auto again = parse_set_entry(type, entry->str());
    REQUIRE(again && *again == *entry);
    REQUIRE(type == SetType::ports || prefixes_of(*entry).size() <= 254);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const File file;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string& path = file.write(bytes);
  const auto filters = read_classbench(path);
  filters ? check_rules(*filters) : check_error(filters.error(), path);
  const auto trace = read_classbench_trace(path);
  if (!trace) {
    check_error(trace.error(), path);
  }
  Diagnostics diagnostics;
  if (auto settings = Settings::from_text(bytes, "fuzz.toml", diagnostics)) {
    Settings acl = settings->section("acl");
    RuleBook book;
    read_rules(acl, {.ports = {"lan", "wan"}}, book);
    for (const std::string& line : diagnostics.lines) {
      REQUIRE(line.starts_with("fuzz.toml"));
      REQUIRE(line.find('\n') == std::string::npos);
    }
    if (diagnostics.ok()) {
      check_rules(book.rules);
      check_sets(book);
    }
  }
  check_entries(bytes);
  return 0;
}
