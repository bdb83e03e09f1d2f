#include "media/rtsp/message.h"

#include <algorithm>

#include "media/text.h"

namespace sluice::media::rtsp {

Message Message::response(unsigned status, std::string_view reason) {
  Message message;
  message.status_ = status;
  message.start_ = "RTSP/1.0 " + std::to_string(status) + ' ' + std::string(reason) + "\r\n";
  return message;
}

Message Message::request(std::string_view method, std::string_view uri) {
  Message message;
  message.method_ = method;
  message.set_uri(uri);
  return message;
}

void Message::set_uri(std::string_view uri) {
  uri_ = uri;
  start_ = method_ + ' ' + uri_ + " RTSP/" + version_ + "\r\n";
}

std::optional<std::string_view> Message::header(std::string_view name) const {
  for (const Header& header : headers_) {
    if (same_name(header.name, name)) {
      return header.value.view();
    }
  }
  return std::nullopt;
}

std::size_t Message::header_count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::count_if(headers_.begin(), headers_.end(), [name](const Header& one) { return same_name(one.name, name); }));
}

std::vector<std::string_view> Message::values(std::string_view name) const {
  std::vector<std::string_view> values;
  for (const Header& header : headers_) {
    if (same_name(header.name, name)) {
      values.push_back(header.value.view());
    }
  }
  return values;
}

std::optional<SecretText> Message::joined(std::string_view name) const {
  std::optional<SecretText> all;
  for (const Header& header : headers_) {
    if (!same_name(header.name, name)) {
      continue;
    }
    if (all) {
      all->append(", ");
    } else {
      all.emplace();
    }
    all->append(header.value.view());
  }
  return all;
}

void Message::set_header(std::string_view name, std::string_view value) {
  Header header;
  header.name = name;
  header.value.append(value);
  header.raw.append(name).append(": ").append(value).append("\r\n");
  const auto is_it = [name](const Header& one) { return same_name(one.name, name); };
  const auto first = std::find_if(headers_.begin(), headers_.end(), is_it);
  if (first == headers_.end()) {
    headers_.push_back(std::move(header));
    return;
  }
  headers_.erase(std::remove_if(first + 1, headers_.end(), is_it), headers_.end());
  *std::find_if(headers_.begin(), headers_.end(), is_it) = std::move(header);
}

std::size_t Message::remove_header(std::string_view name) {
  return std::erase_if(headers_, [name](const Header& one) { return same_name(one.name, name); });
}

void Message::set_body(std::string_view body) {
  SecretText copy(body);  // `body` may be a part of the one there is
  body_ = std::move(copy);
  if (body_.empty()) {
    remove_header("Content-Length");
  } else {
    set_header("Content-Length", std::to_string(body_.size()));
  }
}

SecretText Message::text() const {
  constexpr std::string_view blank = "\r\n";
  std::size_t size = start_.size() + blank.size() + body_.size();
  for (const Header& header : headers_) {
    size += header.raw.size();
  }
  SecretText text;
  text.reserve(size);
  text.append(start_);
  for (const Header& header : headers_) {
    text.append(header.raw.view());
  }
  return text.append(blank).append(body_.view());
}

}  // namespace sluice::media::rtsp
