// One direction of an RTSP connection, cut into messages and interleaved frames as its bytes come, in pieces of any
// size.
//
// Taken: RTSP/1.x and 2.x start lines, LF with any CRs in front as ends of lines, folded headers, lines of blanks alone
// among them, blanks before a colon, empty lines and NULs in front of a message (RFC 2326 section 4.1 allows what HTTP
// does), bodies of Content-Length bytes. A body ends nowhere else: RTSP has no other way. Lines that are no header are
// left out of the message and counted there. Message::text() writes what was read in one way (message.h), and a
// Content-Length must be beyond doubt. Refused, each under a name: see Problem. After an error the reader takes nothing
// more: nobody can say where the next message begins. Thread-safety: none. Memory: at most a message's limits together.
// Cost: linear in the bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <variant>

#include "media/rtsp/message.h"

namespace sluice::media::rtsp {

struct ReaderLimits {
  std::size_t line_bytes = 8U << 10;     // the start line, or one header with its folds
  std::size_t header_bytes = 64U << 10;  // all of them
  std::size_t headers = 128;             // lines that are none included
  std::size_t body_bytes = 256U << 10;
};

enum class Problem : std::uint8_t {
  none,
  bad_start_line,      // no request line and no status line
  not_rtsp,            // HTTP (a tunnel), TLS or another protocol
  bad_header,          // a CR or NUL within a line, any control character in CSeq, Session or Transport, two of Session
                       // that differ
  bad_content_length,  // not a number, two that differ, no colon; of a request a fold or a blank before the colon
  line_too_long,
  headers_too_long,
  too_many_headers,
  body_too_long,
};
inline constexpr unsigned problems = 9;
const char* problem_name(Problem problem);
// The answer to a request with it: 400, 413 (body), 414 (the start line), 431 (headers) or 505 (not RTSP).
unsigned problem_status(Problem problem);

// '$', a channel, a length of two bytes and so many bytes (RFC 2326 section 10.12).
struct Frame {
  std::uint8_t channel = 0;
  SecretText bytes;  // with the four bytes before
};

class Reader {
 public:
  using Item = std::variant<std::monostate, Message, Frame>;

  explicit Reader(ReaderLimits limits = {}) : limits_(limits) {}

  void append(std::string_view bytes);
  // The next whole item; monostate: more bytes are needed, or problem() says why there will be none.
  Item next();
  Problem problem() const { return problem_; }
  // Which line it was and what was wrong, for a log: "bad_header: line 3, 'Session': ...". Without values of headers.
  std::string problem_text() const;
  // CSeq of the message that could not be read, for an answer; "" when none stands before what was wrong, or, of a
  // message whose headers are whole, among them.
  std::string_view failed_cseq() const { return failed_cseq_; }
  // Bytes of an item that is not whole yet.
  std::size_t pending() const { return buffer_.size() - at_; }

 private:
  // `seen`: where CSeq may be.
  Item fail(Problem problem, std::string_view seen);
  Item take_frame();
  Item take_message();
  // Where the headers end; 0: not yet, or a problem.
  std::size_t find_headers_end();
  Problem read_headers(std::string_view head);
  Problem read_start(std::string_view raw);
  Problem read_status(std::string_view line);
  Problem read_header(std::string_view raw);
  Problem read_content_length();
  Problem check_session();
  Problem leave_out(const char* what);
  // `problem`, with what to say of it.
  Problem wrong(Problem problem, std::string what);
  std::string_view rest() const { return buffer_.view().substr(at_); }

  ReaderLimits limits_;
  SecretText buffer_;
  std::size_t at_ = 0;       // bytes of buffer_ that are done with
  std::size_t scanned_ = 0;  // behind at_: looked at for the end of the headers
  std::size_t line_ = 0;     // behind at_: where the line begins that is being scanned
  Message current_;
  std::optional<std::size_t> body_bytes_;  // current_'s headers are read
  std::size_t line_number_ = 0;            // of the message, from 1: that is being read
  Problem problem_ = Problem::none;
  std::string what_;  // of a problem
  std::string failed_cseq_;
};

}  // namespace sluice::media::rtsp
