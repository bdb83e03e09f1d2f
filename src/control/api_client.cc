#include "control/api_client.h"

#include <httplib.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/quote.h"
#include "control/api.h"

namespace sluice::control {
namespace {

Expected<std::string> read(const ListenAddress& address, const httplib::Result& result) {
  if (!result) {
    if (result.error() == httplib::Error::Connection) {
      return make_error("no answer from " + address.str() +
                        ": is sluice running? Its API was expected there ([api] listen in its "
                        "configuration; --api ADDRESS for another)");
    }
    return make_error("the answer from " + address.str() +
                      " did not arrive in time, or was cut off: is it stopped, or busy with something long?");
  }
  const std::string server = result->get_header_value("Server");
  if (!server.starts_with(server_product)) {
    return make_error("what answers at " + address.str() + " is not sluice but " +
                      (server.empty() ? "a server without a name" : in_quotes(server)) +
                      ": give --api the address of sluice's API ([api] listen in its configuration)");
  }
  if (result->status == 200) return result->body;
  const auto body = nlohmann::json::parse(result->body, nullptr, false);
  if (body.is_object() && body.contains("error") && body["error"].is_string())
    return make_error(body["error"].get<std::string>());
  return make_error(address.str() + " answered with HTTP status " + std::to_string(result->status) +
                    " and no word why");
}

constexpr std::chrono::seconds read_timeout{30};
constexpr std::chrono::minutes change_timeout{30};  // a reload of a big table

httplib::Client client(const ListenAddress& address, std::chrono::seconds timeout) {
  httplib::Client client(address.host, address.port);
  client.set_connection_timeout(std::chrono::seconds(2));
  client.set_read_timeout(timeout);
  // httplib names an IPv6 host without the brackets that RFC 9110 asks for.
  client.set_default_headers({{"Host", address.str()}});
  return client;
}

}  // namespace

Expected<std::string> ApiClient::get(const std::string& path) const {
  return read(address_, client(address_, read_timeout).Get(path));
}

Expected<std::string> ApiClient::post(const std::string& path, const std::string& body) const {
  return read(address_, client(address_, change_timeout).Post(path, body, "application/toml"));
}

}  // namespace sluice::control
