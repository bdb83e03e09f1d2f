// RTSP messages (RFC 2326; RFC 7826's too, as far as their form goes): every header keeps its place and, unless it is
// set, its bytes. What readers may take in more than one way is written in one: folds become blanks, none stand before
// a header's colon, and lines end with CRLF. Lines that are no header are left out. Content-Length is there once, a
// number without zeros in front. So the next reader sees the message that was judged, and ends it where this one did.
//
// Thread-safety: none. Cost: control path.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "media/secret.h"

namespace sluice::media::rtsp {

class Message {
 public:
  // An own response or request, with no headers.
  static Message response(unsigned status, std::string_view reason);
  static Message request(std::string_view method, std::string_view uri);

  bool is_request() const { return status_ == 0; }
  std::string_view method() const { return method_; }  // of a request, as it was written; methods have a case
  std::string_view uri() const { return uri_; }
  void set_uri(std::string_view uri);
  unsigned status() const { return status_; }            // of a response, 100 to 999; 0: a request
  std::string_view version() const { return version_; }  // "1.0"

  // The value of the first header of that name, without its folds (a fold becomes one blank).
  std::optional<std::string_view> header(std::string_view name) const;
  std::size_t header_count(std::string_view name) const;
  std::vector<std::string_view> values(std::string_view name) const;
  // All values of that name, joined by ", " (RFC 2326 section 4.2 by way of RFC 2068).
  std::optional<SecretText> joined(std::string_view name) const;
  // In the place of the first of that name, others of that name go; or behind the last header.
  void set_header(std::string_view name, std::string_view value);
  std::size_t remove_header(std::string_view name);

  // Lines among the headers that were none, and what the first of them was: "line 4: ...".
  std::size_t lines_left_out() const { return lines_left_out_; }
  std::string_view first_left_out() const { return first_left_out_; }

  std::string_view body() const { return body_.view(); }
  // And Content-Length with it; an empty body takes the header away.
  void set_body(std::string_view body);

  SecretText text() const;

 private:
  friend class Reader;
  struct Header {
    SecretText raw;  // "Name: value\r\n", unfolded
    std::string name;
    SecretText value;  // trimmed, unfolded
  };
  std::string start_;  // with CRLF
  std::string method_;
  std::string uri_;
  std::string version_ = "1.0";
  unsigned status_ = 0;
  std::vector<Header> headers_;
  std::size_t lines_left_out_ = 0;
  std::string first_left_out_;
  SecretText body_;
};

}  // namespace sluice::media::rtsp
