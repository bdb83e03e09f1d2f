#include "media/rtsp/reader.h"

#include <algorithm>
#include <array>

#include "base/quote.h"
#include "media/text.h"

namespace sluice::media::rtsp {

namespace {

constexpr std::size_t frame_head = 4;
constexpr std::string_view protocol_name = "RTSP/";

constexpr std::string_view length_name = "Content-Length";
constexpr char tls_handshake = 0x16;  // the first octet of TLS (RFC 8446 section 5.1)
// Headers without which a message means something else: they are not left out.
constexpr std::array weighty = {length_name, std::string_view("Session"), std::string_view("Transport"),
                                std::string_view("CSeq")};
constexpr std::size_t weighty_of_answers = 3;  // an answer's CSeq is its request's

struct ProblemFacts {
  const char* name;
  unsigned status;
};

constexpr std::array<ProblemFacts, problems> table = {{
    {"none", 0},
    {"bad_start_line", 400},
    {"not_rtsp", 505},
    {"bad_header", 400},
    {"bad_content_length", 400},
    {"line_too_long", 414},
    {"headers_too_long", 431},
    {"too_many_headers", 431},
    {"body_too_long", 413},
}};

// The first line with its end; `text` becomes what follows.
std::string_view take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end == std::string_view::npos ? end : end + 1);
  text.remove_prefix(line.size());
  return line;
}

std::string_view without_end(std::string_view line) {
  if (line.ends_with('\n')) {
    line.remove_suffix(1);
  }
  while (line.ends_with('\r')) {
    line.remove_suffix(1);
  }
  return line;
}

bool has_control_characters(std::string_view text) {
  return std::any_of(text.begin(), text.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return (byte < 0x20 && c != '\t') || byte == 0x7f;
  });
}

// Whether a line that is no header may be meant to say how long the body is: "Content-Length 5", "content length: 5".
bool seems_length(std::string_view line) {
  constexpr std::size_t word = 7;
  line = trim(line);
  return same_name(line.substr(0, word), length_name.substr(0, word)) &&
         same_name(line.substr(std::min(line.size(), word + 1), length_name.size() - word - 1),
                   length_name.substr(word + 1));
}

// "5" of "5", "5;" and "5, 5".
std::optional<std::size_t> length_of(std::string_view value) {
  std::optional<std::size_t> length;
  value = trim(value.ends_with(';') ? value.substr(0, value.size() - 1) : value);
  do {
    const auto one = number<std::size_t>(trim(take_until(value, ',')));
    if (!one || (length && *length != *one)) {
      return std::nullopt;
    }
    length = one;
  } while (!value.empty());
  return length;
}

constexpr std::string_view decimals = "0123456789";

// Of an answer also "+5", "5 bytes", "5.0" and "5;x=y": it is written as the number that all players take it for.
std::optional<std::size_t> answered_length_of(std::string_view value) {
  if (const auto length = length_of(value)) {
    return length;
  }
  value.remove_prefix(value.starts_with('+') ? 1 : 0);
  const std::string_view digits = value.substr(0, value.find_first_not_of(decimals));
  value.remove_prefix(digits.size());
  if (value.starts_with(".")) {
    value.remove_prefix(std::min(value.size(), value.find_first_not_of('0', 1)));
  }
  const bool has_more = value.find_first_of("0123456789,") != std::string_view::npos;
  const bool ends = value.empty() || value.front() == ';' || (is_blank(value.front()) && !has_more);
  return ends ? number<std::size_t>(digits) : std::nullopt;
}

// A CR that ends no line.
bool has_lone_cr(std::string_view lines) {
  while (!lines.empty()) {
    if (without_end(take_line(lines)).find('\r') != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

// "1.0" of "RTSP/1.0"; "" of anything else.
std::string_view version_of(std::string_view protocol) {
  if (!protocol.starts_with(protocol_name)) {
    return {};
  }
  protocol.remove_prefix(protocol_name.size());
  std::string_view minor = protocol;
  const std::string_view major = take_until(minor, '.');
  return number<unsigned>(major, 99) && number<unsigned>(minor, 99) ? protocol : std::string_view{};
}

// The CSeq of a message that cannot be read, as far as it has one before its headers end.
std::string_view cseq_of(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = without_end(take_line(text));
    if (line.empty()) {
      return {};
    }
    if (same_name(trim(take_until(line, ':')), "CSeq") && number<std::uint64_t>(trim(line))) {
      return trim(line);
    }
  }
  return {};
}

}  // namespace

const char* problem_name(Problem problem) {
  return table[static_cast<std::size_t>(problem)].name;
}

unsigned problem_status(Problem problem) {
  return table[static_cast<std::size_t>(problem)].status;
}

std::string Reader::problem_text() const {
  return problem_name(problem_) + (what_.empty() ? std::string() : ": " + what_);
}

Problem Reader::wrong(Problem problem, std::string what) {
  what_ = (line_number_ == 0 ? std::string() : "line " + std::to_string(line_number_) + ", ") + std::move(what);
  return problem;
}

Problem Reader::leave_out(const char* what) {
  if (current_.lines_left_out_++ == 0) {
    current_.first_left_out_ = "line " + std::to_string(line_number_) + ": " + what;
  }
  return Problem::none;
}

void Reader::append(std::string_view bytes) {
  if (problem_ != Problem::none) {
    return;
  }
  if (at_ > 0) {
    buffer_.consume(at_);
    at_ = 0;
  }
  buffer_.append(bytes);
}

Reader::Item Reader::next() {
  if (problem_ != Problem::none) {
    return {};
  }
  if (!body_bytes_) {
    // Some servers count no NUL that they send behind a body.
    while (scanned_ == 0 && !rest().empty() && std::string_view("\r\n\0", 3).find(rest().front()) != rest().npos) {
      ++at_;
    }
    if (scanned_ == 0 && rest().starts_with(tls_handshake)) {
      line_number_ = 0;
      return fail(wrong(Problem::not_rtsp, "this is TLS: RTSP over TLS (rtsps) is not spoken"), {});
    }
    if (rest().starts_with('$')) {
      return take_frame();
    }
    const std::size_t end = find_headers_end();
    if (end == 0) {
      return {};
    }
    if (const Problem problem = read_headers(rest().substr(0, end)); problem != Problem::none) {
      return fail(problem, rest().substr(0, end));
    }
    at_ += end;
    scanned_ = line_ = 0;
  }
  return take_message();
}

Reader::Item Reader::fail(Problem problem, std::string_view seen) {
  problem_ = problem;
  failed_cseq_ = cseq_of(seen);
  buffer_.clear();
  at_ = 0;
  return {};
}

Reader::Item Reader::take_frame() {
  const std::string_view bytes = rest();
  if (bytes.size() < frame_head) {
    return {};
  }
  const auto at = [bytes](std::size_t i) { return static_cast<std::uint8_t>(bytes[i]); };
  const std::size_t size = frame_head + at(2) * 256U + at(3);
  if (bytes.size() < size) {
    return {};
  }
  Frame frame{at(1), SecretText(bytes.substr(0, size))};
  at_ += size;
  return frame;
}

std::size_t Reader::find_headers_end() {
  const std::string_view text = rest();
  const auto number_of = [text](std::size_t at) {
    return 1 + static_cast<std::size_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  };
  while (true) {
    const std::size_t end = text.find('\n', scanned_);
    const std::size_t seen = std::min(end, text.size());
    // Of two limits the one that bytes reach first, so that it is the same however they come.
    const bool line_first = line_ + limits_.line_bytes < limits_.header_bytes;
    const bool headers_end = seen > limits_.header_bytes;
    if (without_end(text.substr(line_, seen - line_)).size() > limits_.line_bytes && (line_first || !headers_end)) {
      line_number_ = number_of(line_);
      fail(wrong(Problem::line_too_long, "over " + std::to_string(limits_.line_bytes) + " bytes"),
           text.substr(0, line_));
      return 0;
    }
    if (headers_end) {
      line_number_ = number_of(line_);
      fail(wrong(Problem::headers_too_long, "over " + std::to_string(limits_.header_bytes) + " bytes of headers"),
           text.substr(0, line_));
      return 0;
    }
    if (end == std::string_view::npos) {
      scanned_ = text.size();
      return 0;
    }
    const bool empty = without_end(text.substr(line_, end + 1 - line_)).empty();
    scanned_ = line_ = end + 1;
    if (empty) {
      return line_;
    }
  }
}

Problem Reader::read_headers(std::string_view head) {
  current_ = Message();
  line_number_ = 1;
  if (const Problem problem = read_start(take_line(head)); problem != Problem::none) {
    return problem;
  }
  std::size_t lines = 1;  // that the header before had
  while (true) {
    line_number_ += lines;
    lines = 1;
    const std::string_view begin = head;
    std::size_t size = take_line(head).size();
    if (without_end(begin.substr(0, size)).empty()) {
      const Problem problem = check_session();
      return problem == Problem::none ? read_content_length() : problem;
    }
    for (; !head.empty() && is_blank(head.front()); ++lines) {
      size += take_line(head).size();
    }
    if (without_end(begin.substr(0, size)).size() > limits_.line_bytes) {
      return wrong(Problem::line_too_long, "over " + std::to_string(limits_.line_bytes) + " bytes, folds included");
    }
    if (current_.headers_.size() + current_.lines_left_out_ == limits_.headers) {
      return wrong(Problem::too_many_headers, "over " + std::to_string(limits_.headers) + " headers");
    }
    if (const Problem problem = read_header(begin.substr(0, size)); problem != Problem::none) {
      return problem;
    }
  }
}

Problem Reader::read_start(std::string_view raw) {
  std::string_view line = without_end(raw);
  current_.start_.assign(line).append("\r\n");
  const auto bad = [this](const char* what) { return wrong(Problem::bad_start_line, what); };
  if (trim(line).starts_with(protocol_name)) {
    return read_status(trim(line));
  }
  if (has_control_characters(line)) {
    return bad("it has a control character");
  }
  const std::string_view first = take_until(line, ' ');
  if (first.starts_with("HTTP/") || line.substr(line.rfind(' ') + 1).starts_with("HTTP/")) {
    return wrong(Problem::not_rtsp, "this is HTTP: RTSP tunnelled in HTTP is not spoken");
  }
  const std::string_view second = take_until(line, ' ');
  const std::string_view version = version_of(line);
  if (!is_token(first) || second.empty() || second.find('\t') != std::string_view::npos || version.empty()) {
    return bad("it is neither METHOD URI RTSP/1.0 nor RTSP/1.0 STATUS");
  }
  current_.method_ = first;
  current_.uri_ = second;
  current_.version_ = version;
  return Problem::none;
}

// "RTSP/1.0 200 OK", and what players take for it: "RTSP/1 200", "RTSP/1.0: 200OK", with tabs. A reason with control
// characters goes.
Problem Reader::read_status(std::string_view line) {
  line.remove_prefix(protocol_name.size());
  std::string version(line.substr(0, line.find_first_not_of("0123456789.")));
  line.remove_prefix(std::min(line.size(), line.find_first_of(" \t")));
  if (version.find('.') == version.npos) {
    version += ".0";
  }
  line = trim(line);
  const std::string_view code = line.substr(0, line.find_first_not_of(decimals));
  const auto status = number<unsigned>(code, 999);
  if (version_of(std::string(protocol_name) + version).empty() || !status || *status < 100 || code.size() != 3) {
    return wrong(Problem::bad_start_line, "it has no status of three digits");
  }
  const std::string_view reason = trim(line.substr(code.size()));
  current_.start_ = std::string(protocol_name).append(version).append(" ").append(code);
  if (!reason.empty() && !has_control_characters(reason)) {
    current_.start_.append(" ").append(reason);
  }
  current_.start_.append("\r\n");
  current_.status_ = *status;
  current_.version_ = std::move(version);
  return Problem::none;
}

Problem Reader::read_header(std::string_view raw) {
  std::string_view text = raw;
  std::string_view first = without_end(take_line(text));
  // Some readers end a line at a CR, and some a text at a NUL: they would see other headers.
  const bool has_nul = current_.is_request() && without_end(raw).find('\0') != std::string_view::npos;
  if (has_nul || has_lone_cr(raw)) {
    return wrong(Problem::bad_header, "a CR or NUL within it");
  }
  const std::string_view line = first;
  const bool has_colon = first.find(':') != std::string_view::npos;
  const bool is_fold = is_blank(first.front());
  const std::string_view before = take_until(first, ':');
  const std::string_view name = trim(before);
  // Of requests as HTTP has it (RFC 9112 sections 5.1 and 5.2): whoever wrote it may read it in another way.
  const bool is_request_length = same_name(name, length_name) && current_.is_request();
  if (!has_colon || is_fold || !is_token(name) || (is_request_length && name.size() != before.size())) {
    if (seems_length(line)) {
      return wrong(Problem::bad_content_length, "a Content-Length that not all readers would take for one");
    }
    return leave_out(!has_colon ? "no colon"
                     : is_fold  ? "a fold of no header"
                                : "no name of a header before the colon");
  }
  Message::Header header{{}, std::string(name), SecretText(trim(first))};
  const bool folded = !text.empty();
  bool is_odd = has_control_characters(first);
  while (!text.empty()) {
    const std::string_view fold = without_end(take_line(text));
    const std::string_view more = trim(fold);
    is_odd = is_odd || has_control_characters(fold);
    if (is_request_length && !more.empty()) {
      return wrong(Problem::bad_content_length, "a folded Content-Length");
    }
    header.value.append(header.value.empty() || more.empty() ? "" : " ").append(more);
  }
  if (is_odd) {
    const auto end = current_.is_request() ? weighty.end() : weighty.begin() + weighty_of_answers;
    const bool is_weighty =
        std::any_of(weighty.begin(), end, [name](std::string_view one) { return same_name(name, one); });
    return is_weighty ? wrong(Problem::bad_header, in_quotes(name) + ": a control character")
                      : leave_out("a control character");
  }
  if (folded || name.size() != before.size()) {
    header.raw.append(name).append(": ").append(header.value.view()).append("\r\n");
  } else {
    header.raw.append(without_end(raw)).append("\r\n");
  }
  current_.headers_.push_back(std::move(header));
  return Problem::none;
}

// Whose it is, for this reader by the first one and for another perhaps by the last.
Problem Reader::check_session() {
  std::optional<std::string_view> session;
  for (const Message::Header& header : current_.headers_) {
    if (!same_name(header.name, "Session")) {
      continue;
    }
    std::string_view value = header.value.view();
    const std::string_view one = trim(take_until(value, ';'));
    if (session && *session != one) {
      return wrong(Problem::bad_header, "two of Session that differ");
    }
    session = one;
  }
  return Problem::none;
}

Problem Reader::read_content_length() {
  body_bytes_.reset();
  std::optional<std::size_t> size;
  for (const Message::Header& header : current_.headers_) {
    if (!same_name(header.name, length_name)) {
      continue;
    }
    const std::string_view written = header.value.view();
    const auto value = current_.is_request() ? length_of(written) : answered_length_of(written);
    if (!value) {
      return wrong(Problem::bad_content_length, "Content-Length: no number");
    }
    if (size && *value != *size) {
      return wrong(Problem::bad_content_length, "two of Content-Length that differ");
    }
    size = value;
  }
  if (size > limits_.body_bytes) {
    return wrong(Problem::body_too_long,
                 "Content-Length: " + std::to_string(*size) + ", over " + std::to_string(limits_.body_bytes));
  }
  if (size) {
    // Some take "010" for eight.
    const std::string one = std::to_string(*size);
    if (current_.header_count(length_name) > 1 || current_.header(length_name) != one) {
      current_.set_header(length_name, one);
    }
  }
  body_bytes_ = size.value_or(0);
  return Problem::none;
}

Reader::Item Reader::take_message() {
  if (rest().size() < *body_bytes_) {
    return {};
  }
  current_.body_.append(rest().substr(0, *body_bytes_));
  at_ += *body_bytes_;
  body_bytes_.reset();
  return std::move(current_);
}

}  // namespace sluice::media::rtsp
