#include "media/rtsp/reader.h"

#include <algorithm>
#include <array>

#include "media/text.h"

namespace sluice::media::rtsp {

namespace {

constexpr std::size_t frame_head = 4;

// A server that takes a fold for a header of its own would find another length, session or transport than this reader.
constexpr std::array unfolded = {"Content-Length", "CSeq", "Session", "Transport"};

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
  if (line.ends_with('\r')) {
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

// "1.0" of "RTSP/1.0"; "" of anything else.
std::string_view version_of(std::string_view protocol) {
  if (!protocol.starts_with("RTSP/")) {
    return {};
  }
  protocol.remove_prefix(5);
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
    while (scanned_ == 0 && !rest().empty() && (rest().front() == '\r' || rest().front() == '\n')) {
      ++at_;
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
  while (true) {
    const std::size_t end = text.find('\n', scanned_);
    const std::size_t seen = std::min(end, text.size());
    // Of two limits the one that bytes reach first, so that it is the same however they come.
    const bool line_first = line_ + limits_.line_bytes < limits_.header_bytes;
    const bool headers_end = seen > limits_.header_bytes;
    if (without_end(text.substr(line_, seen - line_)).size() > limits_.line_bytes && (line_first || !headers_end)) {
      fail(Problem::line_too_long, text.substr(0, line_));
      return 0;
    }
    if (headers_end) {
      fail(Problem::headers_too_long, text.substr(0, line_));
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
  if (const Problem problem = read_start(take_line(head)); problem != Problem::none) {
    return problem;
  }
  while (true) {
    const std::string_view begin = head;
    std::size_t size = take_line(head).size();
    if (without_end(begin.substr(0, size)).empty()) {
      const Problem problem = check_session();
      return problem == Problem::none ? read_content_length() : problem;
    }
    while (!head.empty() && is_blank(head.front())) {
      size += take_line(head).size();
    }
    if (without_end(begin.substr(0, size)).size() > limits_.line_bytes) {
      return Problem::line_too_long;
    }
    if (current_.headers_.size() == limits_.headers) {
      return Problem::too_many_headers;
    }
    if (const Problem problem = read_header(begin.substr(0, size)); problem != Problem::none) {
      return problem;
    }
  }
}

Problem Reader::read_start(std::string_view raw) {
  std::string_view line = without_end(raw);
  current_.start_.assign(line).append("\r\n");
  if (has_control_characters(line)) {
    return Problem::bad_start_line;
  }
  const std::string_view first = take_until(line, ' ');
  const std::string_view second = take_until(line, ' ');
  if (first.starts_with("HTTP/") || line.starts_with("HTTP/")) {
    return Problem::not_rtsp;
  }
  if (const std::string_view version = version_of(first); !version.empty()) {
    const auto status = number<unsigned>(second, 999);
    if (!status || *status < 100 || second.size() != 3) {
      return Problem::bad_start_line;
    }
    current_.status_ = *status;
    current_.version_ = version;
    return Problem::none;
  }
  const std::string_view version = version_of(line);
  if (!is_token(first) || second.empty() || second.find('\t') != std::string_view::npos || version.empty()) {
    return Problem::bad_start_line;
  }
  current_.method_ = first;
  current_.uri_ = second;
  current_.version_ = version;
  return Problem::none;
}

Problem Reader::read_header(std::string_view raw) {
  std::string_view text = raw;
  std::string_view first = without_end(take_line(text));
  const bool has_colon = first.find(':') != std::string_view::npos;
  const std::string_view name = take_until(first, ':');
  if (!has_colon || !is_token(name) || has_control_characters(first)) {
    return Problem::bad_header;
  }
  const bool folded = !text.empty();
  if (folded && std::ranges::any_of(unfolded, [name](const char* one) { return same_name(name, one); })) {
    return Problem::bad_header;
  }
  Message::Header header{{}, std::string(name), SecretText(trim(first))};
  while (!text.empty()) {
    const std::string_view fold = without_end(take_line(text));
    if (has_control_characters(fold)) {
      return Problem::bad_header;
    }
    const std::string_view more = trim(fold);
    header.value.append(header.value.empty() || more.empty() ? "" : " ").append(more);
  }
  if (folded) {
    header.raw.append(name).append(": ").append(header.value.view()).append("\r\n");
  } else {
    header.raw.append(without_end(raw)).append("\r\n");
  }
  current_.headers_.push_back(std::move(header));
  return Problem::none;
}

// Whose it is, for this reader by the first one and for another perhaps by the last.
Problem Reader::check_session() const {
  const auto first = current_.header("Session");
  for (const Message::Header& header : current_.headers_) {
    if (same_name(header.name, "Session") && header.value.view() != *first) {
      return Problem::bad_header;
    }
  }
  return Problem::none;
}

Problem Reader::read_content_length() {
  body_bytes_.reset();
  std::size_t size = 0;
  bool seen = false;
  for (const Message::Header& header : current_.headers_) {
    if (!same_name(header.name, "Content-Length")) {
      continue;
    }
    const auto value = number<std::size_t>(header.value.view());
    if (!value || (seen && *value != size)) {
      return Problem::bad_content_length;
    }
    size = *value;
    seen = true;
  }
  if (size > limits_.body_bytes) {
    return Problem::body_too_long;
  }
  if (seen) {
    // Some take "010" for eight.
    const std::string one = std::to_string(size);
    if (current_.header_count("Content-Length") > 1 || current_.header("Content-Length") != one) {
      current_.set_header("Content-Length", one);
    }
  }
  body_bytes_ = size;
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
