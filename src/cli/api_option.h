// --api ADDRESS, as ctl and top have it.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "control/api_client.h"

namespace sluice::cli {

std::shared_ptr<std::string> add_api_option(CLI::App& command);

// Says on stderr what is wrong with the address when there is nothing. From here on SIGINT and SIGTERM, which main()
// holds back for a gateway's control thread, end the program as usual.
std::optional<control::ApiClient> open_api(const std::string& address);

}  // namespace sluice::cli
