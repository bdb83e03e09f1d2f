#include "control/api.h"

#include <httplib.h>
#include <malloc.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "base/appended_file.h"
#include "base/units.h"
#include "control/api_queries.h"
#include "control/api_socket.h"
#include "control/bounded_server.h"
#include "control/health.h"
#include "control/metrics.h"
#include "control/snapshot_json.h"
#include "media/secret.h"

namespace sluice::control {
namespace {

// By TCP, which is any user's where it takes changes, no body may be larger, whatever its route takes over the socket.
constexpr std::size_t largest_body = engine::usual_largest_body, largest_request = 65536;
// From here on what a change took is given back to the system: it is many times what stays.
constexpr std::size_t large_body = 1 << 20;
// Six bytes at most for one of the filter, as \u0022, and the other keys.
constexpr std::size_t largest_capture_request = 6 * longest_filter + 4096;
constexpr std::chrono::seconds request_time = capture_patience;
// A reload, and more that are refused meanwhile, leave some for reads, whatever captures run.
constexpr std::size_t threads = 4 + engine::FrameTap::most_sessions;
constexpr const char* json_type = "application/json";
// What is in frames is for root and the socket's group alone, whoever else may make changes.
constexpr const char* capture_path = "/api/v1/capture";

void answer_error(httplib::Response& response, int status, const std::string& message) {
  response.status = status;
  response.set_content(to_json_text(nlohmann::json{{"error", message}}) + "\n", json_type);
}

template <typename T>
void answer_json(httplib::Response& response, const T& value) {
  response.set_content(to_json_text(value) + "\n", json_type);
}

// `well` and `ill`: the two words for the status.
nlohmann::json health(const Snapshot& snapshot, const char* well, const char* ill) {
  const std::vector<Ailment> found = find_ailments(snapshot);
  if (found.empty()) return {{"status", well}};
  nlohmann::json all = nlohmann::json::array();
  for (const Ailment& one : found) all.push_back({{"name", one.check}, {"what", one.what}, {"do", one.remedy}});
  return {{"status", ill}, {"why", ailments(snapshot)}, {"ailments", std::move(all)}};
}

using Body = std::vector<char, media::WipingAllocator<char>>;

// Within `largest` bytes; most paths have no use for one. Wiped with its last copy, for there may be a key in it. A
// request without a length and without chunks has none (RFC 9112 section 6.3), where httplib by itself would wait for
// one; and it holds its own limit against a length that is said, not against what chunks bring. False: the status says
// why.
bool read_body(const httplib::Request& request, const httplib::ContentReader& body, std::size_t largest, Body& text,
               httplib::Response& response) {
  if (!request.has_header("Content-Length") && !request.has_header("Transfer-Encoding")) return true;
  bool fits = true;
  const auto take = [&](const char* bytes, std::size_t size) {
    fits = size <= largest - text.size();
    if (fits) text.insert(text.end(), bytes, bytes + size);
    return fits;
  };
  const bool whole = request.is_multipart_form_data()
                         ? body([](const httplib::MultipartFormData&) { return true; }, take)
                         : body(take);
  if (!fits) response.status = 413;
  return whole && fits;
}

// Not httplib's default, whose SO_REUSEPORT would let two gateways share an address without a word.
void set_socket_options(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
}

Expected<ListenAddress> address_of(const ApiOptions& options) {
  auto address = parse_listen(options.listen);
  if (!address) return make_error("[api] listen = \"" + options.listen + "\": " + address.error().message);
  return address;
}

// `why`: errno; 0: not known.
tl::unexpected<Error> cannot_listen(const ListenAddress& address, int why) {
  return make_error("[api] listen = \"" + address.str() +
                    "\": " + (why == 0 ? "cannot listen there" : std::strerror(why)) +
                    (why == EADDRINUSE ? " (is another sluice running?)" : ""));
}

// What bind(2) says to a socket like the API's: 0 or errno.
int try_to_bind(const addrinfo& to) {
  const int fd = socket(to.ai_family, to.ai_socktype | SOCK_CLOEXEC, to.ai_protocol);
  if (fd < 0) return errno;
  set_socket_options(fd);
  const int why = bind(fd, to.ai_addr, to.ai_addrlen) == 0 ? 0 : errno;
  close(fd);
  return why;
}

// Of all elements that there are.
void each_route(
    const std::function<void(const engine::ElementType&, const engine::ApiRoute&, const std::string& path)>& f) {
  for (const engine::ElementType& type : engine::element_types()) {
    const auto* const api = type.trait<engine::Api>();
    if (api == nullptr) continue;
    for (const engine::ApiRoute& route : api->routes())
      f(type, route, "/api/v1/" + std::string(type.name) + route.path);
  }
}

using Bodies = std::map<std::string, std::size_t, std::less<>>;

// Paths whose bodies may be larger over the socket, and how large.
Bodies larger_bodies() {
  Bodies bodies = {{capture_path, largest_capture_request}};
  each_route([&](const engine::ElementType&, const engine::ApiRoute& route, const std::string& path) {
    if (route.largest_body > largest_body) bodies[path] = route.largest_body;
  });
  return bodies;
}

// One way in: a server with its thread.
class Door {
 public:
  enum class Kind { tcp, socket };
  Door(Kind kind, const Bodies& bodies)
      : kind(kind),
        larger_(kind == Kind::socket ? bodies : Bodies()),
        server(kind == Kind::socket ? largest_request + largest_of_all() : largest_request, request_time) {
    server.new_task_queue = [] { return new httplib::ThreadPool(threads); };
    server.set_socket_options(set_socket_options);
    server.set_payload_max_length(largest_of_all());
    server.set_default_headers(
        {{"Cache-Control", "no-store"}, {"Server", std::string(server_product) + SLUICE_VERSION}});
  }
  ~Door() {
    server.stop();
    if (thread_.joinable()) thread_.join();
  }
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  // When it is bound.
  void run() {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);  // signals are for the control thread
    thread_ = std::thread([this] {
      pthread_setname_np(pthread_self(), "sluice-api");
      server.listen_after_bind();
      ended_ = true;
    });
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    while (!server.is_running() && !ended_) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // Of the body of a request for this path.
  std::size_t largest_body_of(std::string_view path) const {
    const auto larger = larger_.find(path);
    return larger == larger_.end() ? largest_body : larger->second;
  }

  const Kind kind;

 private:
  std::size_t largest_of_all() const {
    std::size_t largest = largest_body;
    for (const auto& [path, size] : larger_) largest = std::max(largest, size);
    return largest;
  }
  const Bodies larger_;

 public:
  BoundedServer server;

 private:
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

class HttpApi final : public Api {
 public:
  HttpApi(const ApiOptions& options, ListenAddress address, StatsSource& source)
      : options_(options), address_(std::move(address)), source_(source) {}

  Expected<void> run() {
    if (auto bound = address_.host.empty() ? Expected<void>() : bind_tcp(); !bound) return bound;
    if (auto bound = bind_socket(); !bound) return bound;
    add_reads();
    add_changes();
    add_routes_of_elements();
    for (Door* const door : doors()) {
      add_refusals(*door);
      door->run();
    }
    return {};
  }

  const ListenAddress& address() const override { return address_; }
  const std::string& socket() const override { return socket_path_; }

 private:
  using Handler = std::function<void(const httplib::Request&, httplib::Response&)>;
  using BodyHandler = std::function<void(const std::string&, httplib::Response&)>;

  Expected<void> bind_tcp() {
    tcp_.emplace(Door::Kind::tcp, bodies_);
    errno = 0;
    const int port = address_.port;
    const int bound = port == 0                                        ? tcp_->server.bind_to_any_port(address_.host)
                      : tcp_->server.bind_to_port(address_.host, port) ? port
                                                                       : -1;
    if (bound < 0) return cannot_listen(address_, errno);
    address_.port = bound;
    return {};
  }

  Expected<void> bind_socket() {
    const bool chosen = options_.socket == "auto";
    const std::string path =
        chosen ? (address_.host.empty() ? "" : default_socket_path(address_.port)) : options_.socket;
    if (path.empty()) return {};
    for (const std::string& dead : remove_dead_sockets()) {
      spdlog::info("api: {}, which a gateway that was killed left, is removed", dead);
    }
    auto made = ApiSocket::open(path, options_.group);
    if (!made && !(chosen && options_.group.empty())) return tl::unexpected(made.error());
    if (!made) {
      spdlog::warn("{}; without a socket this gateway takes no changes ([api] socket, read_only)",
                   made.error().message);
      return {};
    }
    socket_file_ = std::move(*made);
    socket_path_ = path;
    socket_.emplace(Door::Kind::socket, bodies_);
    socket_->server.listen_on(socket_file_->take());
    return {};
  }

  std::vector<Door*> doors() {
    std::vector<Door*> all;
    for (std::optional<Door>* const door : {&tcp_, &socket_}) {
      if (*door) all.push_back(&**door);
    }
    return all;
  }
  bool takes_changes(Door::Kind kind) const { return kind == Door::Kind::socket || !options_.read_only; }

  // One read at a time; an exception (out of memory, say) is an answer and not the end of the gateway.
  void get(const std::string& path, Handler handler) { get_at_once(path, serialised(std::move(handler))); }
  // Also while another is being answered.
  void get_at_once(const std::string& path, const Handler& handler) {
    paths_.insert("GET " + path);
    for (Door* const door : doors()) door->server.Get(path, handler);
  }
  void post(const std::string& path, BodyHandler handler, bool often = false) {
    paths_.insert("POST " + path);
    // Not serialised: a reload must not keep reads waiting.
    const auto take = [path, often, handler = std::move(handler)](
                          const httplib::Request& request, httplib::Response& response,
                          const httplib::ContentReader& body, std::size_t largest) {
      Body bytes;
      if (!read_body(request, body, largest, bytes, response)) return;
      spdlog::log(often ? spdlog::level::debug : spdlog::level::info, "api: POST {} by {}", path,
                  request.remote_addr.empty() ? "TCP" : request.remote_addr);
      const bool is_large = bytes.size() >= large_body;
      {
        const media::WipedString text(std::string(bytes.begin(), bytes.end()));
        Body().swap(bytes);
        handler(text.text(), response);
      }
      if (is_large) malloc_trim(0);
    };
    for (Door* const door : doors()) {
      const std::size_t largest = door->largest_body_of(path);
      door->server.Post(
          path, [take, largest](const httplib::Request& request, httplib::Response& response,
                                const httplib::ContentReader& body) { take(request, response, body, largest); });
    }
  }
  Handler serialised(Handler handler) {
    return [this, handler = std::move(handler)](const httplib::Request& request, httplib::Response& response) {
      const std::lock_guard lock(mutex_);
      handler(request, response);
    };
  }

  void add_reads() {
    get("/api/v1/stats", [this](const auto&, auto& response) { answer_json(response, source_.snapshot()); });
    get("/api/v1/ports", [this](const auto&, auto& response) { answer_json(response, source_.snapshot().ports); });
    get("/api/v1/routes", [this](const auto& request, auto& response) {
      const auto query = read_query(request);
      if (!query) return answer_error(response, 400, query.error().message);
      const auto table = source_.routes(*query);
      if (!table) return answer_error(response, 409, table.error().message);
      answer_json(response, *table);
    });
    get("/api/v1/neighbours", [this](const auto&, auto& response) {
      const auto neighbours = source_.neighbours();
      if (!neighbours) return answer_error(response, 409, neighbours.error().message);
      answer_json(response, *neighbours);
    });
    get("/api/v1/config",
        [this](const auto&, auto& response) { response.set_content(source_.config() + "\n", json_type); });
    get("/api/v1/functions", [this](const auto&, auto& response) {
      nlohmann::ordered_json rows = nlohmann::ordered_json::array();
      for (const FunctionRow& row : source_.functions()) {
        rows.push_back({{"name", row.name}, {"text", row.text}, {"from", row.from}});
        if (row.view.empty()) continue;
        auto view = nlohmann::ordered_json::parse(row.view, nullptr, false);
        if (view.is_discarded()) {
          return answer_error(response, 500, "function '" + row.name + "' shows of itself what is no JSON");
        }
        rows.back()["view"] = std::move(view);
      }
      response.set_content(rows.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n",
                           json_type);
    });
    get("/metrics", [this](const auto&, auto& response) {
      response.set_content(metrics_text(source_.snapshot()), std::string(metrics_content_type));
    });
    get("/healthz",
        [this](const auto&, auto& response) { answer_json(response, health(source_.snapshot(), "ok", "degraded")); });
    get("/readyz", [this](const auto&, auto& response) {
      const nlohmann::json answer = health(source_.snapshot(), "ready", "not ready");
      if (answer.contains("why")) response.status = 503;
      answer_json(response, answer);
    });
    // What a client asks first: it needs nobody, and so distinguishes a gateway that is busy from one that stands
    // still.
    get_at_once("/api/v1/socket", [this](const auto&, auto& response) {
      answer_json(response, nlohmann::json{{"socket", socket_path_}, {"read_only", options_.read_only}});
    });
  }

  void add_changes() {
    post("/api/v1/reload", [this](const auto&, auto& response) {
      const auto done = source_.reload();
      if (!done) return answer_error(response, 409, done.error().message);
      answer_json(response, nlohmann::json{{"done", *done}});
    });
    post("/api/v1/device/reset", [this](const auto& text, auto& response) {
      const auto done = source_.reset_device(text);
      if (!done) return answer_error(response, 409, done.error().message);
      answer_json(response, nlohmann::json{{"done", *done}});
    });
    post("/api/v1/reopen", [](const auto&, auto& response) {
      AppendedFile::reopen_all();
      std::string done = "logs are written to their paths from now on";
      for (const std::string& trouble : AppendedFile::troubles()) done += "; but " + trouble;
      answer_json(response, nlohmann::json{{"done", done}});
    });
    post(capture_path, [this](const auto& text, auto& response) {
      const auto request = parse_capture_request(text);
      if (!request) return answer_error(response, 400, request.error().message);
      auto opened = source_.capture(*request);
      if (!opened) return answer_error(response, 400, opened.error().message);
      stream_capture(response, std::move(*opened));
    });
    post("/api/v1/stop", [this](const auto&, auto& response) {
      source_.stop();
      answer_json(response, nlohmann::json{{"done", "stopping"}});
    });
  }

  void add_routes_of_elements() {
    const auto answer = [](const engine::ApiAnswer& said, httplib::Response& response) {
      if (said.status != 200) return answer_error(response, said.status, said.text);
      response.set_content(said.text + "\n", json_type);
    };
    each_route([&](const engine::ElementType& type, const engine::ApiRoute& route, const std::string& path) {
      const auto ask = [this, &type, &route](const engine::ApiRequest& request) {
        return source_.ask(type, route, request);
      };
      if (route.change) {
        post(
            path, [ask, answer](const auto& text, auto& response) { answer(ask({.body = text}), response); },
            route.often);
      } else {
        get(path, [ask, answer](const auto& request, auto& response) {
          answer(ask({.parameters = request.params}), response);
        });
      }
    });
  }

  // As it comes, for as long as somebody reads it.
  static void stream_capture(httplib::Response& response, std::shared_ptr<CaptureStream> stream) {
    response.set_chunked_content_provider(
        "application/x-pcapng", [stream = std::move(stream), bytes = std::string()](std::size_t, auto& sink) mutable {
          const bool more = stream->next(bytes);
          const auto began = std::chrono::steady_clock::now();
          if (!bytes.empty() && !sink.write(bytes.data(), bytes.size())) {
            if (std::chrono::steady_clock::now() - began >= capture_patience) {
              spdlog::warn("capture: a reader took nothing for {}, and is left", duration_text(capture_patience));
            }
            return false;
          }
          if (!more) sink.done();
          return true;
        });
  }

  void add_refusals(Door& door) {
    door.server.set_pre_routing_handler(
        [this, kind = door.kind](const httplib::Request& request, httplib::Response& response) {
          using Result = httplib::Server::HandlerResponse;
          const bool reads = request.method == "GET" || request.method == "HEAD";
          if (kind == Door::Kind::tcp && !options_.allow_remote && !names_loopback(request.get_header_value("Host"))) {
            answer_error(response, 403, "the Host header does not name a loopback address");
            return Result::Handled;
          }
          if (kind == Door::Kind::tcp && !reads && request.has_header("Origin")) {
            answer_error(response, 403, "changes are not accepted from web pages");
            return Result::Handled;
          }
          if (request.method == "POST" && !paths_.contains("POST " + request.path)) {  // before its body is waited for
            response.status = 404;
            return Result::Handled;
          }
          if (!reads && (!takes_changes(kind) || (kind == Door::Kind::tcp && request.path == capture_path))) {
            answer_error(response, 403, where_changes_go());
            return Result::Handled;
          }
          return Result::Unhandled;
        });
    door.server.set_error_handler(
        httplib::Server::Handler([this, &door](const httplib::Request& request, httplib::Response& response) {
          if (!response.body.empty()) return;
          answer_error(response, response.status, refusal(request, response.status, door));
        }));
    door.server.set_exception_handler(
        [](const httplib::Request&, httplib::Response& response, std::exception_ptr problem) {
          try {
            std::rethrow_exception(std::move(problem));
          } catch (const std::exception& e) {
            answer_error(response, 500, std::string("failed: ") + e.what());
          } catch (...) {
            answer_error(response, 500, "failed");
          }
        });
  }

  std::string where_changes_go() const {
    if (socket_path_.empty()) {
      return "this gateway takes no changes: it has no socket for them ([api] socket in its configuration)";
    }
    return "changes are not made by TCP but over the unix socket " + socket_path_ +
           ", which root and its group may open: sluice ctl goes there by itself, others by curl --unix-socket " +
           socket_path_;
  }

  std::string refusal(const httplib::Request& request, int status, const Door& door) const {
    switch (status) {
      case 404: {
        std::string known;
        for (const std::string& path : paths_) known.append(known.empty() ? "" : ", ").append(path);
        return "there is no " + request.method + " " + request.path + "; there are " + known;
      }
      case 413:
        return "the body is larger than " + std::to_string(door.largest_body_of(request.path)) + " bytes" +
               (door.kind == Door::Kind::tcp && bodies_.contains(request.path) && !socket_path_.empty()
                    ? "; larger ones are taken over the unix socket " + socket_path_
                    : "");
      case 414:
        return "the address is too long";
      default:
        return "the request is not valid HTTP";
    }
  }

  static bool names_loopback(const std::string& host) {
    if (host.empty()) return true;  // HTTP/1.0: no browser
    const bool has_port = host.ends_with(']') ? false : host.rfind(':') != std::string::npos;
    const auto address = parse_listen(has_port ? host : host + ":80");
    return address && address->loopback;
  }

  const ApiOptions options_;
  ListenAddress address_;
  StatsSource& source_;
  std::mutex mutex_;
  std::set<std::string> paths_;
  const Bodies bodies_ = larger_bodies();
  std::unique_ptr<ApiSocket> socket_file_;
  std::string socket_path_;
  std::optional<Door> tcp_, socket_;
};

// Of a socket that is named: one that is chosen is not worth a refusal.
Expected<void> check_socket(const ApiOptions& options) {
  if (options.socket.empty() || options.socket == "auto") return {};
  const auto made = ApiSocket::open(options.socket, options.group);
  return made ? Expected<void>() : tl::unexpected(made.error());
}

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

// None: the name is not known. Of a name it may ask a server, and wait.
Addresses resolve(const ListenAddress& address) {
  addrinfo hints{};
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  return {failed == 0 ? found : nullptr, freeaddrinfo};
}

// 0, or errno; nothing: there are no addresses.
std::optional<int> why_not_bound(const Addresses& addresses) {
  if (!addresses) return std::nullopt;
  // "localhost" has several; the API takes the first that it gets.
  int why = EADDRNOTAVAIL;
  for (const addrinfo* one = addresses.get(); one != nullptr && why != 0; one = one->ai_next) why = try_to_bind(*one);
  return why;
}

}  // namespace

Expected<void> Api::check_address(const ApiOptions& options) {
  if (auto free = check_socket(options); !free || options.listen.empty()) return free;
  const auto address = address_of(options);
  if (!address) return tl::unexpected(address.error());
  const auto why = why_not_bound(resolve(*address));
  return why == 0 ? Expected<void>() : cannot_listen(*address, why.value_or(0));
}

bool Api::await_address(const ApiOptions& options, std::chrono::milliseconds patience) {
  constexpr std::chrono::milliseconds between_looks(20);
  const auto end = std::chrono::steady_clock::now() + patience;
  const auto address = options.listen.empty() ? Expected<ListenAddress>() : address_of(options);
  if (options.listen.empty() || !address) return true;
  const Addresses addresses = resolve(*address);
  while (why_not_bound(addresses) == EADDRINUSE) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(between_looks);
  }
  return true;
}

Expected<std::unique_ptr<Api>> Api::start(const ApiOptions& options, StatsSource& source) {
  auto address = options.listen.empty() ? Expected<ListenAddress>() : address_of(options);
  if (!address) return tl::unexpected(address.error());
  auto api = std::make_unique<HttpApi>(options, std::move(*address), source);
  if (auto running = api->run(); !running) return tl::unexpected(running.error());
  return api;
}

}  // namespace sluice::control
