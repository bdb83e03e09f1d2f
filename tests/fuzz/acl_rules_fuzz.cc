// Any bytes as ClassBench filters, as a ClassBench trace and as [[acl.rule]]: accepted, or refused with lines that name
// the file. Accepted ones pass check(), and their tables keep to a limit.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/settings.h"
#include "lookup/acl/acl_rule.h"
#include "lookup/acl/acl_settings.h"
#include "lookup/acl/classbench.h"
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
    const auto rules = read_rules(acl);
    for (const std::string& line : diagnostics.lines) {
      REQUIRE(line.starts_with("fuzz.toml"));
      REQUIRE(line.find('\n') == std::string::npos);
    }
    if (diagnostics.ok()) {
      check_rules(rules);
    }
  }
  return 0;
}
