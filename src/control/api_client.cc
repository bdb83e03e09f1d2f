#include "control/api_client.h"

#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <nlohmann/json.hpp>

#include "base/quote.h"
#include "control/api.h"
#include "control/api_socket.h"

namespace sluice::control {
namespace {

constexpr const char* probe_path = "/api/v1/socket";
constexpr std::chrono::seconds connect_timeout{2}, probe_timeout{3}, between_probes{1};
constexpr std::chrono::seconds read_timeout{30};    // of one that has just shown that it runs
constexpr std::chrono::minutes change_timeout{30};  // a reload of a big table
constexpr uid_t first_ordinary_user = 1000;         // login.defs' UID_MIN

// One end of the API: an address, or a socket's path.
struct Place {
  const ListenAddress& address;
  std::string socket;
  std::string str() const { return socket.empty() ? address.str() : socket; }
};

httplib::Client client(const Place& place, std::chrono::seconds timeout) {
  httplib::Client client =
      place.socket.empty() ? httplib::Client(place.address.host, place.address.port) : httplib::Client(place.socket);
  if (!place.socket.empty()) client.set_address_family(AF_UNIX);
  client.set_connection_timeout(connect_timeout);
  client.set_read_timeout(timeout);
  // httplib names an IPv6 host without the brackets that RFC 9110 asks for.
  client.set_default_headers({{"Host", place.socket.empty() ? place.address.str() : "localhost"}});
  return client;
}

tl::unexpected<Error> not_there(const Place& place) {
  if (!place.socket.empty()) {
    const auto fd = connect_to_socket(place.socket);
    if (!fd) return tl::unexpected(fd.error());
    close(*fd);
  }
  return make_error("no answer from " + place.str() +
                    ": is sluice running? Its API was expected there ([api] listen in its configuration; --api ADDRESS "
                    "for another)");
}

tl::unexpected<Error> stands_still(const Place& place) {
  return make_error(place.str() + " takes connections and does not answer within " +
                    std::to_string(probe_timeout.count()) +
                    " s: is sluice stopped (SIGSTOP, a debugger), kept from its CPU, or held up by others' connections "
                    "(then --socket PATH of its [api] socket)?");
}

Expected<std::string> read(const Place& place, const httplib::Result& result) {
  if (!result) {
    if (result.error() == httplib::Error::Connection) return not_there(place);
    return make_error("the answer from " + place.str() +
                      " did not arrive in time, or was cut off: is it stopped, or busy with something long?");
  }
  const std::string server = result->get_header_value("Server");
  if (!server.starts_with(server_product)) {
    return make_error("what answers at " + place.str() + " is not sluice but " +
                      (server.empty() ? "a server without a name" : in_quotes(server)) +
                      ": give --api the address of sluice's API ([api] listen in its configuration)");
  }
  if (result->status == 200) return result->body;
  const auto body = nlohmann::json::parse(result->body, nullptr, false);
  if (body.is_object() && body.contains("error") && body["error"].is_string())
    return make_error(body["error"].get<std::string>());
  return make_error(place.str() + " answered with HTTP status " + std::to_string(result->status) + " and no word why");
}

// What the gateway answers at once if it runs at all.
Expected<std::string> probe(const Place& place) {
  const auto result = client(place, probe_timeout).Get(probe_path);
  if (!result && result.error() != httplib::Error::Connection) return stands_still(place);
  return read(place, result);
}

// Nobody gets keys because they took the address of a gateway that does not run.
Expected<void> check_owner(const ListenAddress& named_by, const std::string& socket) {
  const auto fd = connect_to_socket(socket);
  if (!fd) return tl::unexpected(fd.error());
  const auto owner = peer_of(*fd);
  close(*fd);
  if (owner && (owner->uid < first_ordinary_user || owner->uid == geteuid())) return {};
  return make_error("the socket " + socket + ", which " + named_by.str() +
                    " names for changes, is an ordinary user's: nothing was sent (--socket " + socket +
                    " if it is the gateway's)");
}

}  // namespace

Expected<std::string> ApiClient::get(const std::string& path) const {
  const Place place{address_, socket_};
  if (auto running = probe(place); !running) return running;
  return read(place, client(place, read_timeout).Get(path));
}

// The gateway of this network namespace needs not be asked: who holds all connections to its TCP port keeps nobody from
// changing it.
Expected<std::string> ApiClient::find_socket() const {
  if (address_.loopback) {
    const std::string usual = default_socket_path(address_.port);
    if (access(usual.c_str(), W_OK) == 0 && check_owner(address_, usual)) return usual;
  }
  auto answer = probe({address_, {}});
  if (!answer) return answer;
  const auto described = nlohmann::json::parse(*answer, nullptr, false);
  const std::string socket = described.is_object() ? described.value("socket", "") : "";
  if (socket.empty()) return socket;
  if (const auto safe = check_owner(address_, socket); !safe) return tl::unexpected(safe.error());
  return socket;
}

Expected<std::string> ApiClient::changes_go_to() const {
  if (!socket_.empty()) return socket_;
  return find_socket();
}

Expected<std::string> ApiClient::post(const std::string& path, const std::string& body) const {
  auto socket = changes_go_to();
  if (!socket) return socket;
  const Place place{address_, *socket};
  if (auto running = probe(place); !running) return running;
  httplib::Client to = client(place, change_timeout);
  auto answer = std::async(std::launch::async, [&] { return to.Post(path, body, "application/toml"); });
  while (answer.wait_for(between_probes) != std::future_status::ready) {
    if (auto running = probe(place); !running && answer.wait_for(between_probes) != std::future_status::ready) {
      to.stop();
      answer.wait();
      return make_error("while it made the change: " + running.error().message);
    }
  }
  return read(place, answer.get());
}

Expected<void> ApiClient::stream(const std::string& path, const std::string& body,
                                 const std::function<bool(std::string_view)>& take) const {
  auto socket = changes_go_to();
  if (!socket) return tl::unexpected(socket.error());
  const Place place{address_, *socket};
  if (const auto running = probe(place); !running) return tl::unexpected(running.error());
  bool streams = false, left = false;
  std::string refusal;
  httplib::Request request;
  request.method = "POST";
  request.path = path;
  request.body = body;
  request.set_header("Content-Type", "application/json");
  request.response_handler = [&](const httplib::Response& response) {
    streams = response.status == 200 && response.get_header_value("Server").starts_with(server_product);
    return true;
  };
  request.content_receiver = [&](const char* bytes, std::size_t size, std::uint64_t, std::uint64_t) {
    if (!streams) {
      refusal.append(bytes, size);
      return true;
    }
    left = !take({bytes, size});
    return !left;
  };
  auto result = client(place, read_timeout).send(request);
  if (left || (result && streams)) return {};
  if (result) result->body = refusal;
  const auto answer = read(place, result);
  return answer ? make_error(place.str() + " ended the answer") : tl::unexpected(answer.error());
}

}  // namespace sluice::control
