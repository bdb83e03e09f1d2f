// Any bytes as a route file, as an update file, and, when they begin as .xz does, packed: accepted, or refused with one
// line that names the file. What is accepted says the same when it is written down and read again.
#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <set>
#include <sstream>
#include <string>
#include <string_view>

#include "lookup/route_file.h"
#include "require.h"

using namespace sluice;
using lookup::RouteLine;
using lookup::RouteList;

namespace {

constexpr std::string_view xz_magic(
    "\xfd"
    "7zXZ\0",
    6);

// A folder of this process, gone with it.
class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "route-file-fuzz-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = name;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string write(const std::string& name, std::string_view text) const {
    std::string path = path_ / name;
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    REQUIRE(file >= 0);
    REQUIRE(::write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size()));
    close(file);
    return path;
  }

 private:
  std::filesystem::path path_;
};

// Ten mistakes at most, a line each, and one that counts the others.
void check_error(const Error& error, const std::string& path) {
  std::istringstream lines(error.message);
  unsigned count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    REQUIRE(line.starts_with(path + ":"));
  }
  REQUIRE(count >= 1 && count <= 11);
}

void check_list(const RouteList& list) {
  REQUIRE(!list.next_hops.empty() && list.next_hops[0].empty());
  REQUIRE(std::set<std::string>(list.next_hops.begin(), list.next_hops.end()).size() == list.next_hops.size());
  for (const RouteLine& route : list.routes) {
    REQUIRE(route.next_hop < list.next_hops.size());
    const auto again = packet::IpPrefix::parse(route.prefix.str());
    REQUIRE(again && *again == route.prefix);
  }
}

void check_round_trip(const Folder& folder, const RouteList& list) {
  std::string text;
  for (const RouteLine& route : list.routes) {
    text += route.prefix.str() + " " + list.next_hops[route.next_hop] + "\n";
  }
  const auto again = lookup::read_routes(folder.write("again", text));
  REQUIRE(again);
  REQUIRE(again->next_hops == list.next_hops);
  REQUIRE(again->routes.size() == list.routes.size());
  for (std::size_t i = 0; i < list.routes.size(); ++i) {
    REQUIRE(again->routes[i].prefix == list.routes[i].prefix);
    REQUIRE(again->routes[i].next_hop == list.routes[i].next_hop);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Folder folder;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::string path = folder.write(bytes.starts_with(xz_magic) ? "routes.xz" : "routes", bytes);
  const auto routes = lookup::read_routes(path);
  const auto updates = lookup::read_updates(path);
  if (routes) {
    check_list(*routes);
    check_round_trip(folder, *routes);
  } else {
    check_error(routes.error(), path);
  }
  if (updates) {
    check_list(*updates);
  } else {
    check_error(updates.error(), path);
  }
  return 0;
}
