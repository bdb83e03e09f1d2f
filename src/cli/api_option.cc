#include "cli/api_option.h"

#include <cstdio>

#include "cli/signals.h"
#include "control/listen.h"

namespace sluice::cli {

std::shared_ptr<std::string> add_api_option(CLI::App& command) {
  auto address = std::make_shared<std::string>(control::default_listen);
  command.add_option("--api", *address, "where the gateway's API listens ([api] listen)")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  return address;
}

std::optional<control::ApiClient> open_api(const std::string& address) {
  end_on_signals();
  auto parsed = control::parse_listen(address);
  if (parsed) return control::ApiClient(std::move(*parsed));
  std::fprintf(stderr, "sluice: --api %s: %s\n", address.c_str(), parsed.error().message.c_str());
  return std::nullopt;
}

}  // namespace sluice::cli
