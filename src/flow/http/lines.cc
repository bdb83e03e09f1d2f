// First lines and headers: where a line ends, which go together, what the fields are.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "flow/http/connection.h"
#include "flow/http/text.h"

namespace sluice::flow::http {
namespace {

std::string_view bytes_of(const Field& field) {
  return {reinterpret_cast<const char*>(&field), sizeof field};
}

bool is_field_name(std::string_view header, std::size_t colon) {
  return header.empty() ||
         (colon != 0 && colon != std::string_view::npos && std::ranges::all_of(header.substr(0, colon), is_token));
}

}  // namespace

// The next line that is whole, and what stands before the byte that follows, where that decides. False: more is needed.
bool Parser::next_line(Side& side, Direction direction, Line& line) {
  const std::string_view pending = side.pending.view();
  if (pending.empty()) {
    return false;
  }
  const bool found = direction == Direction::to_server ? request_line_end(side, pending, line)
                                                       : response_line_end(side, pending, line);
  if (!found && side.closed) {
    line = {pending, pending, false, false};
    return true;
  }
  return found;
}

// LF ends a line; a CR before it belongs to the end.
bool Parser::request_line_end(Side& side, std::string_view pending, Line& line) {
  const std::size_t end = pending.find('\n', side.scanned);
  if (end == std::string_view::npos) {
    side.scanned = static_cast<std::uint32_t>(pending.size());
    return false;
  }
  const bool crlf = end != 0 && pending[end - 1] == '\r';
  line = {pending.substr(0, end - (crlf ? 1 : 0)), pending.substr(0, end + 1), crlf, end == (crlf ? 1U : 0U)};
  if (line.whole.size() == 2 && is_folding(line.text.empty() ? 'x' : line.text[0])) {
    if (pending.size() == 2 && !side.closed) {
      side.scanned = static_cast<std::uint32_t>(end);
      return false;
    }
    line.ends_headers = pending.size() > 2 && pending[2] != '\n';
  }
  return true;
}

// CR LF, LF, LF CR or a CR alone. See connection.h.
bool Parser::response_line_end(Side& side, std::string_view pending, Line& line) {
  const auto more_at = [&](std::size_t at) { return at >= pending.size() && !side.closed; };
  for (std::size_t at = side.scanned; at < pending.size(); ++at) {
    const char c = pending[at];
    if (c != '\r' && c != '\n') {
      continue;
    }
    side.scanned = static_cast<std::uint32_t>(at);
    const bool lone_lf = c == '\n';
    if (lone_lf && at == 0) {
      line = {{}, pending.substr(0, 1), false, true};
      return true;
    }
    if (more_at(at + 1)) {
      return false;
    }
    const char next = at + 1 < pending.size() ? pending[at + 1] : 'x';
    if (lone_lf) {
      const bool lf_cr = next == '\r';
      line = {pending.substr(0, at), pending.substr(0, at + (lf_cr ? 2 : 1)), false, false};
      const bool blank = at == 1 && (pending[0] == ' ' || pending[0] == '\t');
      line.ends_headers = blank && !lf_cr && at + 1 < pending.size() && next != '\n';
      return true;
    }
    if (next == '\n') {
      std::size_t end = at + 2;
      if (at == 0 && side.after_lf_cr) {  // LF CR CR LF CR LF: two line ends
        if (more_at(end) || (pending.substr(end, 1) == "\r" && more_at(end + 1))) {
          return false;
        }
        end += pending.substr(end, 2) == "\r\n" ? 2 : 0;
      }
      line = {pending.substr(0, at), pending.substr(0, end), true, at == 0};
      return true;
    }
    if (next == '\r') {
      continue;
    }
    line = {pending.substr(0, at), pending.substr(0, at + 1), false, false};
    return true;
  }
  side.scanned = static_cast<std::uint32_t>(pending.size());
  return false;
}

bool Parser::keep_raw(Connection& connection, Message& message, std::string_view whole) {
  if (message.raw.size() + whole.size() > settings_.headers_limit) {
    stop(connection, StopReason::header_too_long, Limit::headers);
    return false;
  }
  if (!message.raw.append(pool_, whole)) {
    stop(connection, StopReason::no_memory);
    return false;
  }
  return true;
}

// Whether the line goes on with the header before it.
bool Parser::continues(const Side& side, Direction direction, std::string_view line) {
  if (line.empty() || !is_folding(line[0]) || !side.have_header) {
    return false;
  }
  // What has been gathered is looked through at most twice: the first line with a colon gives it one, or ends it.
  const bool own_header =
      direction == Direction::to_client && side.current->response_version().starts_with("HTTP/1.1") &&
      line.find(':') != std::string_view::npos && side.header.view().find(':') != std::string_view::npos;
  return !own_header;
}

void Parser::header_line(Connection& connection, Direction direction, const Line& line) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  Message& message = direction == Direction::to_server ? side.current->request : side.current->response;
  const bool trailer = side.phase == Phase::trailer_lines;
  side.after_lf_cr = line.whole.ends_with("\n\r");
  message.flags.bare_line_end = message.flags.bare_line_end || !line.crlf;
  side.framing.line(line.crlf);
  if (direction == Direction::to_server && line.ends_headers && !line.text.empty()) {
    exceed(connection, Limit::framing);  // to most servers a blank alone goes on with the header before it
  }
  if (trailer && !side.has_trailers) {
    if (line.ends_headers) {
      drop_pending(side, line.whole.size());
      end_body(connection, direction);
      return;
    }
    if (!begin_trailers(side, message)) {
      stop(connection, StopReason::no_memory);
      return;
    }
  }
  if (!keep_raw(connection, message, line.whole)) {
    return;
  }
  bool kept = true;
  if (!line.ends_headers && !line.text.empty()) {
    if (continues(side, direction, line.text)) {
      message.flags.folded = side.header_folded = true;
      side.framing.fold(line.text);
    } else {
      kept = add_field(side, message);
      side.have_header = true;
    }
    kept = kept && side.header.append(pool_, line.text);
  }
  const bool ends = line.ends_headers;
  drop_pending(side, line.whole.size());
  if (!kept) {
    stop(connection, StopReason::no_memory);
  } else if (ends) {
    trailer ? end_trailers(connection, direction) : end_headers(connection, direction);
  }
}

// The header that `side` has gathered becomes a field; without a colon or a name it is none. False: no memory.
bool Parser::add_field(Side& side, Message& message) {
  side.have_header = false;
  const std::string_view header = side.header.view();
  const std::size_t colon = header.find(':');
  const std::string_view name = trim(header.substr(0, colon));
  side.framing.other_lines = side.framing.other_lines || !is_field_name(header, colon);
  bool kept = true;
  if (colon != std::string_view::npos && !name.empty()) {
    const std::string_view value = trim(header.substr(colon + 1));
    if (side.phase != Phase::trailer_lines) {
      side.framing.field(header.substr(0, colon), header.substr(colon + 1), side.header_folded);
    }
    if (side.fields.size() / sizeof(Field) >= settings_.max_headers) {
      message.flags.fields_truncated = true;
    } else {
      const auto at = static_cast<std::uint32_t>(side.text.size());
      const Field field{at, static_cast<std::uint32_t>(name.size()), at + static_cast<std::uint32_t>(name.size()),
                        static_cast<std::uint32_t>(value.size())};
      kept =
          side.text.append(pool_, name) && side.text.append(pool_, value) && side.fields.append(pool_, bytes_of(field));
    }
  }
  side.header.cut(0);
  side.header_folded = false;
  return kept;
}

// The fields in `side`, into merged_: each but the first of a name hangs on the one before it. Names are not compared
// each with each, however many there are, or how much they are alike.
void Parser::chain_names(const Side& side, std::size_t count) {
  const std::size_t mask = std::bit_ceil(2 * count + 1) - 1;
  std::fill_n(first_of_name_.begin(), mask + 1, 0);
  const auto name = [&](std::size_t i) { return side.text.view(merged_[i].found.name_at, merged_[i].found.name_size); };
  for (std::size_t i = 0; i < count; ++i) {
    Merged& field = merged_[i];
    std::memcpy(&field.found, side.fields.view(i * sizeof(Field), sizeof(Field)).data(), sizeof(Field));
    field.name = field_name_of(name(i));
    const bool known = field.name != FieldName::other;
    field.hash = known ? static_cast<std::uint64_t>(field.name) : name_hash(name(i), seed_);
    field.next = 0;
    field.last = static_cast<std::uint32_t>(i);
    field.first = true;
    for (std::size_t at = field.hash & mask;; at = (at + 1) & mask) {
      std::uint32_t& place = first_of_name_[at];
      if (place == 0) {
        place = static_cast<std::uint32_t>(i + 1);
        break;
      }
      Merged& first = merged_[place - 1];
      if (first.hash == field.hash && first.name == field.name && (known || equal_names(name(place - 1), name(i)))) {
        merged_[first.last].next = static_cast<std::uint32_t>(i + 1);
        first.last = static_cast<std::uint32_t>(i);
        field.first = false;
        break;
      }
    }
  }
}

// From the fields in `side` to those of the message: merged, the text of cookies behind that of the others. False: no
// memory.
bool Parser::merge_fields(Side& side, Message& message, bool request) {
  const std::size_t count = side.fields.size() / sizeof(Field);
  chain_names(side, count);
  const auto name = [&](const Merged& field) { return side.text.view(field.found.name_at, field.found.name_size); };
  const auto value = [&](const Merged& field) { return side.text.view(field.found.value_at, field.found.value_size); };
  const FieldName cookie = request ? FieldName::cookie : FieldName::set_cookie;
  Buffer& text = message.fields_text;
  bool kept = true;
  for (const bool cookies : {false, true}) {
    for (std::size_t i = 0; i < count && kept; ++i) {
      Merged& first = merged_[i];
      if (!first.first || (first.name == cookie) != cookies) {
        continue;
      }
      Field& field = first.made;
      field = {static_cast<std::uint32_t>(text.size()), first.found.name_size, 0, 0};
      kept = text.append(pool_, name(first)) && text.append(pool_, ": ");
      field.value_at = static_cast<std::uint32_t>(text.size());
      kept = kept && text.append(pool_, value(first));
      const bool one_counts = first.name == FieldName::content_length;  // the first
      for (std::uint32_t next = first.next; next != 0 && kept && !one_counts; next = merged_[next - 1].next) {
        kept = text.append(pool_, ", ") && text.append(pool_, value(merged_[next - 1]));
      }
      field.value_size = static_cast<std::uint32_t>(text.size()) - field.value_at;
      kept = kept && text.append(pool_, "\r\n");
    }
    message.plain_size = cookies ? message.plain_size : static_cast<std::uint32_t>(text.size());
  }
  std::uint16_t left = 0;
  std::array<std::uint16_t, known_field_names + 1> known{};  // the last one is of all others
  for (std::size_t i = 0; i < count && kept; ++i) {
    if (!merged_[i].first) continue;
    kept = message.fields.append(pool_, bytes_of(merged_[i].made));
    known[static_cast<std::size_t>(merged_[i].name)] = ++left;
  }
  if (kept) std::copy_n(known.begin(), known_field_names, message.known.begin());
  side.text.clear(pool_);
  side.fields.clear(pool_);
  side.header.clear(pool_);
  return kept;
}

void Parser::end_headers(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  const bool request = direction == Direction::to_server;
  Message& message = request ? side.current->request : side.current->response;
  message.headers_size = static_cast<std::uint32_t>(message.raw.size()) - message.headers_at;
  message.headers_done = true;
  side.after_lf_cr = false;
  if (!add_field(side, message) || !merge_fields(side, message, request)) {
    stop(connection, StopReason::no_memory);
    return;
  }
  const bool truncated = message.flags.fields_truncated;
  const bool unclear = request && side.framing.is_unclear(side.current->version());
  counters_.fields_truncated += truncated ? 1 : 0;
  if (request) {
    request_headers(connection);
  } else {
    response_headers(connection);
  }
  if (truncated) {
    exceed(connection, Limit::fields);
  } else if (unclear) {
    exceed(connection, Limit::framing);
  }
}

// The message keeps its headers until all trailers have come, and are merged with them. False: no memory.
bool Parser::begin_trailers(Side& side, const Message& message) {
  side.has_trailers = true;
  bool kept = true;
  for (std::size_t i = 0; i < message.field_count() && kept; ++i) {
    const Field of = message.field_at(i);
    const auto at = static_cast<std::uint32_t>(side.text.size());
    const Field field{at, of.name_size, at + of.name_size, of.value_size};
    kept = side.text.append(pool_, message.field_name(i)) && side.text.append(pool_, message.field_value(i)) &&
           side.fields.append(pool_, bytes_of(field));
  }
  return kept;
}

void Parser::end_trailers(Connection& connection, Direction direction) {
  Side& side = connection.sides[static_cast<unsigned>(direction)];
  const bool request = direction == Direction::to_server;
  Message& message = request ? side.current->request : side.current->response;
  const bool truncated_before = message.flags.fields_truncated;
  side.has_trailers = false;
  side.after_lf_cr = false;
  message.headers_size = static_cast<std::uint32_t>(message.raw.size()) - message.headers_at;
  message.fields_text.cut(0);
  message.fields.cut(0);
  message.known = {};
  message.plain_size = 0;
  if (!add_field(side, message) || !merge_fields(side, message, request)) {
    stop(connection, StopReason::no_memory);
    return;
  }
  const bool truncated = message.flags.fields_truncated && !truncated_before;
  const bool unclear = request && side.framing.is_unclear(side.current->version());
  counters_.fields_truncated += truncated ? 1 : 0;
  event(connection, request ? Event::request_trailers : Event::response_trailers, *side.current);
  end_body(connection, direction);
  if (truncated) {
    exceed(connection, Limit::fields);
  } else if (unclear) {
    exceed(connection, Limit::framing);
  }
}

}  // namespace sluice::flow::http
