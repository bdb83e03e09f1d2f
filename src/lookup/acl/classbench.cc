#include "lookup/acl/classbench.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "base/file.h"
#include "base/quote.h"
#include "lookup/line_mistakes.h"

namespace sluice::lookup::acl {

namespace {

constexpr std::size_t largest_file = 1U << 30;
constexpr const char* filter_form =
    "a filter is: @source/length destination/length first : last first : last protocol/mask [flags/mask]";
constexpr const char* header_form =
    "a header is: source destination source_port destination_port protocol [flags] filter, decimal numbers";

// Takes the next word off the front of `text`; empty at the end.
std::string_view take_word(std::string_view& text) {
  constexpr std::string_view blank = " \t";
  const std::size_t begin = std::min(text.find_first_not_of(blank), text.size());
  const std::size_t end = std::min(text.find_first_of(blank, begin), text.size());
  const std::string_view word = text.substr(begin, end - begin);
  text.remove_prefix(end);
  return word;
}

std::optional<std::uint32_t> number(std::string_view text, int base = 10) {
  if (base == 16 && (text.starts_with("0x") || text.starts_with("0X"))) {
    text.remove_prefix(2);
  }
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// Parsers answer what is wrong; empty: nothing.
std::string read_prefix(std::string_view text, packet::IpPrefix& out) {
  const std::size_t slash = text.find('/');
  const auto address = packet::IpAddress::parse(text.substr(0, slash));
  if (!address) {
    return address.error().message;
  }
  const auto length = slash == std::string_view::npos ? std::nullopt : number(text.substr(slash + 1));
  if (!length || *length > address->bits()) {
    return in_quotes(text) + " is not a prefix; " + filter_form;
  }
  out = packet::IpPrefix::of(*address, *length);
  return {};
}

std::string read_range(std::string_view& line, PortRange& out) {
  const std::string_view first = take_word(line);
  const std::string_view colon = take_word(line);
  const std::string_view last = take_word(line);
  const auto from = number(first);
  const auto to = number(last);
  if (!from || !to || colon != ":" || *from > *to || *to > 0xffff) {
    return in_quotes(std::string(first) + " " + std::string(colon) + " " + std::string(last)) +
           " is not a range of ports; " + filter_form;
  }
  out = {static_cast<std::uint16_t>(*from), static_cast<std::uint16_t>(*to)};
  return {};
}

// value/mask of `bits` bits, as two numbers.
std::string read_masked(std::string_view text, unsigned bits, std::uint32_t& value, std::uint32_t& mask) {
  const std::size_t slash = std::min(text.find('/'), text.size());
  const auto v = number(text.substr(0, slash), 16);
  const auto m = number(text.substr(std::min(slash + 1, text.size())), 16);
  if (!v || !m || *v >> bits != 0 || *m >> bits != 0) {
    return in_quotes(text) + " is not value/mask of " + std::to_string(bits) + " bits in hexadecimal; " + filter_form;
  }
  value = *v & *m;
  mask = *m;
  return {};
}

MaskedByte masked_byte(std::uint32_t value, std::uint32_t mask) {
  return {static_cast<std::uint8_t>(value), static_cast<std::uint8_t>(mask)};
}

std::string read_protocol_and_flags(std::string_view line, AclRule& rule) {
  std::uint32_t value = 0;
  std::uint32_t mask = 0;
  if (std::string wrong = read_masked(take_word(line), 8, value, mask); !wrong.empty()) {
    return wrong;
  }
  rule.protocol = masked_byte(value, mask);
  const std::string_view flags = take_word(line);
  if (flags.empty()) {
    return {};
  }
  if (std::string wrong = read_masked(flags, 16, value, mask); !wrong.empty()) {
    return wrong;
  }
  if ((mask & 0xff) != 0) {
    return in_quotes(flags) + " asks for bits that are neither TCP flags nor an ICMP type: only the upper byte may";
  }
  rule.flags = masked_byte(value >> 8, mask >> 8);
  const std::string_view more = take_word(line);
  return more.empty() ? std::string() : in_quotes(more) + " is too much; " + filter_form;
}

std::string read_filter(std::string_view line, std::vector<AclRule>& rules, std::uint32_t at) {
  AclRule rule;
  rule.line = at;
  std::string_view source = take_word(line);
  if (!source.starts_with('@')) {
    return in_quotes(source) + " does not begin with @; " + filter_form;
  }
  source.remove_prefix(1);
  std::string wrong = read_prefix(source, rule.source);
  wrong = wrong.empty() ? read_prefix(take_word(line), rule.destination) : wrong;
  if (wrong.empty() && rule.source.address.family != rule.destination.address.family) {
    wrong = "source and destination are not of one family";
  }
  wrong = wrong.empty() ? read_range(line, rule.source_port) : wrong;
  wrong = wrong.empty() ? read_range(line, rule.destination_port) : wrong;
  wrong = wrong.empty() ? read_protocol_and_flags(line, rule) : wrong;
  if (wrong.empty()) {
    rules.push_back(rule);
  }
  return wrong;
}

void set_bytes(std::uint8_t* to, std::uint32_t value, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    to[i] = static_cast<std::uint8_t>(value >> 8 * (count - 1 - i));
  }
}

std::string read_header(std::string_view line, std::vector<TraceHeader>& headers) {
  std::vector<std::uint32_t> column;
  for (std::string_view word = take_word(line); !word.empty(); word = take_word(line)) {
    const auto value = number(word);
    if (!value || column.size() == 7) {
      return in_quotes(word) + (value ? " is too much; " : " is not a number of 32 bits; ") + header_form;
    }
    column.push_back(*value);
  }
  if (column.size() < 6) {
    return std::to_string(column.size()) + " numbers; " + header_form;
  }
  if (column[2] > 0xffff || column[3] > 0xffff || column[4] > 0xff) {
    return std::string("a port above 65535 or a protocol above 255; ") + header_form;
  }
  TraceHeader header{};
  set_bytes(header.key.source, column[0], 4);
  set_bytes(header.key.destination, column[1], 4);
  set_bytes(header.key.source_port, column[2], 2);
  set_bytes(header.key.destination_port, column[3], 2);
  header.key.protocol = static_cast<std::uint8_t>(column[4]);
  header.key.flags = static_cast<std::uint8_t>(column.size() == 7 ? column[5] >> 24 : 0);
  header.filter = column.back();
  headers.push_back(header);
  return {};
}

// Calls `read(line, number)` for each line that says something; what it returns is a mistake.
template <typename Read>
Expected<void> for_each_line(const std::string& path, const Read& read) {
  const auto text = read_regular_file(path, largest_file);
  if (!text) {
    return tl::unexpected(text.error());
  }
  LineMistakes mistakes(path);
  std::string_view left = *text;
  for (std::uint32_t at = 1; !left.empty(); ++at) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    std::string_view line = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (line.ends_with('\r')) {
      line.remove_suffix(1);
    }
    std::string_view ahead = line;
    const std::string_view first = take_word(ahead);
    if (first.empty() || first.starts_with('#')) {
      continue;
    }
    if (const std::string wrong = read(line, at); !wrong.empty()) {
      mistakes.add(at, wrong);
    }
  }
  return mistakes.result();
}

}  // namespace

Expected<std::vector<AclRule>> read_classbench(const std::string& path) {
  std::vector<AclRule> rules;
  auto done =
      for_each_line(path, [&](std::string_view line, std::uint32_t at) { return read_filter(line, rules, at); });
  if (!done) {
    return tl::unexpected(done.error());
  }
  return rules;
}

Expected<std::vector<TraceHeader>> read_classbench_trace(const std::string& path) {
  std::vector<TraceHeader> headers;
  auto done = for_each_line(path, [&](std::string_view line, std::uint32_t) { return read_header(line, headers); });
  if (!done) {
    return tl::unexpected(done.error());
  }
  return headers;
}

}  // namespace sluice::lookup::acl
