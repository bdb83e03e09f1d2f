#include "cli/api_option.h"

#include <cstdio>

#include "cli/completion.h"
#include "cli/signals.h"
#include "control/listen.h"

namespace sluice::cli {

std::shared_ptr<ApiPlace> add_api_options(CLI::App& command) {
  auto place = std::make_shared<ApiPlace>();
  place->address = control::default_listen;
  command.add_option("--api", place->address, "where the gateway's API listens by TCP ([api] listen)")
      ->type_name("ADDRESS:PORT")
      ->capture_default_str();
  complete_with_files(
      command.add_option(
          "--socket", place->socket,
          "the gateway's unix socket ([api] socket), for everything; without it reads go to --api, changes to "
          "the socket that the gateway there names"))
      ->type_name("PATH");
  return place;
}

std::optional<control::ApiClient> open_api(const ApiPlace& place) {
  end_on_signals();
  auto parsed = control::parse_listen(place.address);
  if (parsed) return control::ApiClient(std::move(*parsed), place.socket);
  std::fprintf(stderr, "sluice: --api %s: %s\n", place.address.c_str(), parsed.error().message.c_str());
  return std::nullopt;
}

}  // namespace sluice::cli
