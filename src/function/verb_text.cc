#include "function/verb_text.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/file.h"
#include "packet/ip_address.h"

namespace sluice::function {

Expected<std::string> read_section_file(const std::string& path) {
  // More than the API takes, which says itself how much that is.
  constexpr std::size_t largest = 64 << 10;
  if (path == "-") return read_descriptor(STDIN_FILENO, "standard input", largest);
  const int fd = open(path.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return make_error(path + ": " + std::strerror(errno));
  auto text = read_descriptor(fd, path, largest);
  close(fd);
  return text;
}

tl::expected<std::string, engine::VerbRefusal> address_query(const std::string& address) {
  if (address.empty()) return "";
  if (const auto parsed = packet::IpAddress::parse(address); !parsed) {
    return engine::refuse_verb(engine::VerbRefusal::Kind::input, address + ": " + parsed.error().message);
  }
  return "&address=" + address;
}

engine::VerbRequest change_request(std::string path, std::string body) {
  return {.path = std::move(path), .change = true, .body = std::move(body), .print = print_change};
}

std::string more_text(std::size_t shown, std::uint64_t count, const std::string& what) {
  if (count <= shown) return "";
  return std::to_string(shown) + " of " + std::to_string(count) + " " + what + "; --limit for more\n";
}

}  // namespace sluice::function
