#include "lookup/route_file.h"

#include <lzma.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/file.h"
#include "base/quote.h"
#include "lookup/line_mistakes.h"

namespace sluice::lookup {

namespace {

constexpr std::size_t largest_text = 1U << 30;
constexpr std::uint64_t largest_window = 256U << 20;  // bytes to unpack with; `xz -9` asks for 65 MB
constexpr std::string_view xz_magic(
    "\xfd"
    "7zXZ\0",
    6);
constexpr std::size_t lines_between_looks = 1024;

Expected<std::string> unpack_xz(const std::string& path, const std::string& packed) {
  lzma_stream stream = LZMA_STREAM_INIT;
  if (lzma_stream_decoder(&stream, largest_window, 0) != LZMA_OK) {
    return make_error(path + ": no memory to unpack it");
  }
  std::string text;
  stream.next_in = reinterpret_cast<const std::uint8_t*>(packed.data());
  stream.avail_in = packed.size();
  lzma_ret state = LZMA_OK;
  while (state == LZMA_OK && text.size() < largest_text) {
    const std::size_t had = text.size();
    text.resize(had + (4U << 20));
    stream.next_out = reinterpret_cast<std::uint8_t*>(text.data() + had);
    stream.avail_out = text.size() - had;
    state = lzma_code(&stream, LZMA_FINISH);
    text.resize(text.size() - stream.avail_out);
  }
  lzma_end(&stream);
  if (state == LZMA_OK) {
    return make_error(path + ": more than 1 GiB when unpacked, which no route list is");
  }
  if (state == LZMA_MEMLIMIT_ERROR) {
    return make_error(path + ": needs more than " + std::to_string(largest_window >> 20) +
                      " MB to unpack: pack it with xz -9 or less");
  }
  if (state != LZMA_STREAM_END) {
    return make_error(path + ": not a whole .xz file");
  }
  return text;
}

Expected<std::string> read_text(const std::string& path) {
  auto text = read_regular_file(path, largest_text);
  return text && (text->starts_with(xz_magic) || path.ends_with(".xz")) ? unpack_xz(path, *text) : text;
}

// Next hops as written -> their index in the list.
class Names {
 public:
  Names(RouteList& list, const NextHopCheck& check) : list_(list), check_(check), judged_(1) {}
  NextHopId id_of(std::string_view text) {
    if (text.empty()) {
      return no_route;
    }
    const auto [at, is_new] = ids_.try_emplace(std::string(text), static_cast<NextHopId>(list_.next_hops.size()));
    if (is_new) {
      list_.next_hops.emplace_back(text);
      judged_.emplace_back();
    }
    return at->second;
  }
  // What a line is: where next hops are checked, each must have one.
  const char* form() const { return check_ ? "each line is \"prefix gateway\"" : "a line is: prefix [next_hop]"; }
  // For a prefix of this family; empty: nothing.
  const std::string& wrong_with(NextHopId id, int family) {
    std::optional<std::string>& judged = judged_[id][family == 6];
    if (!judged) {
      judged = check_ ? check_(list_.next_hops[id], family) : std::string();
    }
    return *judged;
  }

 private:
  RouteList& list_;
  const NextHopCheck& check_;
  std::unordered_map<std::string, NextHopId> ids_;
  std::vector<std::array<std::optional<std::string>, 2>> judged_;  // by id, for IPv4 and IPv6 prefixes
};

// Calls `line(text, number)` for each line; a message that it returns is a mistake.
template <typename Line>
Expected<void> for_each_line(const std::string& path, std::string_view text, const ReadProgress& progress,
                             const Line& line) {
  LineMistakes mistakes(path);
  for (std::size_t number = 1; !text.empty(); ++number) {
    if (progress && number % lines_between_looks == 0 && !progress(number)) {
      return make_error(path + ": interrupted while it was read");
    }
    const std::size_t end = text.find('\n');
    std::string_view one = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (one.ends_with('\r')) {
      one.remove_suffix(1);
    }
    if (const std::string wrong = line(one, static_cast<std::uint32_t>(number)); !wrong.empty()) {
      mistakes.add(number, wrong);
    }
  }
  return mistakes.result();
}

// Takes the next word off the front of `text`; empty at the end.
std::string_view take_word(std::string_view& text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  const std::size_t end = std::min(text.find_first_of(" \t", begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

std::string_view take_field(std::string_view& text) {
  const std::size_t end = text.find('|');
  const std::string_view field = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return field;
}

std::string read_route(std::string_view line, std::uint32_t number, RouteList& list, Names& names) {
  line = line.substr(0, line.find('#'));
  const std::string_view prefix = take_word(line);
  const std::string_view next_hop = take_word(line);
  if (prefix.empty()) {
    return {};
  }
  if (const std::string_view more = take_word(line); !more.empty()) {
    return in_quotes(more) + " is too much; " + names.form();
  }
  const auto parsed = packet::IpPrefix::parse(prefix);
  if (!parsed) {
    return parsed.error().message;
  }
  const NextHopId id = names.id_of(next_hop);
  list.routes.push_back({*parsed, id, 0, number});
  return names.wrong_with(id, parsed->address.family);
}

// BGP4MP|time|A|peer|AS|prefix|path|origin|next hop|…   BGP4MP|time|W|peer|AS|prefix
std::string read_update(std::string_view line, std::uint32_t number, RouteList& list, Names& names) {
  std::string_view field[9];
  for (std::string_view& f : field) {
    f = take_field(line);
  }
  if (field[0] != "BGP4MP") {
    return in_quotes(field[0]) + " where bgpdump -m writes BGP4MP";
  }
  if (field[2] == "STATE") {
    return {};
  }
  const bool announce = field[2] == "A";
  if (!announce && field[2] != "W") {
    return in_quotes(field[2]) + " is not A, W or STATE";
  }
  double seconds = 0;
  const char* const end = field[1].data() + field[1].size();
  if (const auto [stop, ec] = std::from_chars(field[1].data(), end, seconds); ec != std::errc() || stop != end) {
    return in_quotes(field[1]) + " is not a time in seconds";
  }
  const auto parsed = packet::IpPrefix::parse(field[5]);
  if (!parsed) {
    return parsed.error().message;
  }
  if (announce && field[8].empty()) {
    return "announces " + parsed->str() + " without a next hop";
  }
  list.routes.push_back({*parsed, announce ? names.id_of(field[8]) : no_route, seconds, number});
  return {};
}

template <typename Read>
Expected<RouteList> read_list(const std::string& path, const NextHopCheck& check, const ReadProgress& progress,
                              const Read& read) {
  auto text = read_text(path);
  if (!text) {
    return tl::unexpected(text.error());
  }
  RouteList list;
  Names names(list, check);
  auto ok = for_each_line(path, *text, progress,
                          [&](std::string_view line, std::uint32_t number) { return read(line, number, list, names); });
  if (!ok) {
    return tl::unexpected(ok.error());
  }
  return list;
}

}  // namespace

Expected<RouteList> read_routes(const std::string& path, const NextHopCheck& check, const ReadProgress& progress) {
  return read_list(path, check, progress, read_route);
}

Expected<RouteList> read_updates(const std::string& path) {
  return read_list(path, {}, {}, read_update);
}

}  // namespace sluice::lookup
