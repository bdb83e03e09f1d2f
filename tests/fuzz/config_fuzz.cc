// Any text as a configuration file: it is accepted, or refused with lines that a user can act on. The corpus holds
// TOML.
#include <string>
#include <string_view>

#include "control/config.h"
#include "require.h"

using sluice::control::Config;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const Config config = Config::from_text(text, "fuzz.toml");
  for (const std::string& line : config.diagnostics().lines) {
    REQUIRE(line.starts_with("fuzz.toml"));
    REQUIRE(line.find('\n') == std::string::npos);
  }
  REQUIRE(config.ok() == config.diagnostics().lines.empty());
  if (config.ok()) {
    REQUIRE(!config.engine.ports.empty());
    REQUIRE(config.engine.deadline.count() > 0);
    REQUIRE(config.engine.chain.size() == 1);
  }
  // The same text gives the same answer.
  REQUIRE(Config::from_text(text, "fuzz.toml").diagnostics().lines == config.diagnostics().lines);
  return 0;
}
