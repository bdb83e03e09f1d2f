// --api ADDRESS and --socket PATH, as ctl and top have them.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "control/api_client.h"

namespace sluice::cli {

struct ApiPlace {
  std::string address, socket;  // --api, --socket
};

std::shared_ptr<ApiPlace> add_api_options(CLI::App& command);

// Says on stderr what is wrong with the address when there is nothing. From here on SIGINT and SIGTERM, which main()
// holds back for a gateway's control thread, end the program as usual.
std::optional<control::ApiClient> open_api(const ApiPlace& place);

}  // namespace sluice::cli
