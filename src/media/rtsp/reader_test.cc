#include "media/rtsp/reader.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace sluice::media::rtsp {
namespace {

// All items as one text, cut into pieces of `piece` bytes: what must not depend on the pieces.
struct Read {
  std::vector<Message> messages;
  std::vector<std::string> frames;
  Problem problem = Problem::none;
  std::string failed_cseq;
};

Read read(std::string_view text, std::size_t piece = std::string::npos, ReaderLimits limits = {}) {
  Reader reader(limits);
  Read out;
  while (!text.empty()) {
    reader.append(text.substr(0, piece));
    text.remove_prefix(std::min(piece, text.size()));
    while (true) {
      Reader::Item item = reader.next();
      if (auto* const message = std::get_if<Message>(&item)) {
        out.messages.push_back(std::move(*message));
      } else if (const auto* const frame = std::get_if<Frame>(&item)) {
        out.frames.push_back(std::to_string(frame->channel) + ':' + std::string(frame->bytes.view().substr(4)));
      } else {
        break;
      }
    }
  }
  out.problem = reader.problem();
  out.failed_cseq = reader.failed_cseq();
  return out;
}

const std::string options = "OPTIONS rtsp://h/a RTSP/1.0\r\nCSeq: 1\r\nUser-Agent: x\r\n\r\n";
const std::string answer = "RTSP/1.0 200 OK\r\nCSeq:  2 \r\nContent-length:5\r\nX: a\r\n\tb\r\n  c\r\n\r\nhello";
const std::string unfolded_answer = "RTSP/1.0 200 OK\r\nCSeq:  2 \r\nContent-length:5\r\nX: a b c\r\n\r\nhello";

TEST(Reader, SplitAndPipelinedMessages) {
  const std::string text = "\r\n\n" + options + options +
                           std::string(
                               "$\1\0\3"
                               "abc$\2\0\0",
                               11) +
                           answer + options;
  for (std::size_t piece = 1; piece < text.size() + 1; ++piece) {
    const Read all = read(text, piece);
    ASSERT_EQ(all.problem, Problem::none) << problem_name(all.problem);
    ASSERT_EQ(all.messages.size(), 4U) << piece;
    EXPECT_EQ(all.messages[0].text().view(), options);
    EXPECT_EQ(all.messages[2].text().view(), unfolded_answer);
    EXPECT_EQ(all.messages[3].text().view(), options);
    EXPECT_EQ(all.frames, (std::vector<std::string>{"1:abc", "2:"}));
  }
}

TEST(Reader, TakesMessagesApart) {
  const Read requests = read(options);
  const Message& request = requests.messages.at(0);
  EXPECT_TRUE(request.is_request());
  EXPECT_EQ(request.method(), "OPTIONS");
  EXPECT_EQ(request.uri(), "rtsp://h/a");
  EXPECT_EQ(request.version(), "1.0");
  EXPECT_EQ(request.header("cseq"), "1");
  const Read responses = read(answer);
  const Message& response = responses.messages.at(0);
  EXPECT_FALSE(response.is_request());
  EXPECT_EQ(response.status(), 200U);
  EXPECT_EQ(response.header("CSEQ"), "2");
  EXPECT_EQ(response.header("x"), "a b c");
  EXPECT_EQ(response.body(), "hello");
  EXPECT_FALSE(response.header("Y"));
  EXPECT_EQ(read("RTSP/2.0 404 \n\n").messages.at(0).status(), 404U) << "LF alone, an empty reason";
  EXPECT_EQ(read("RTSP/1.0 200\r\n\r\n").messages.at(0).status(), 200U) << "no reason";
}

TEST(Message, Changes) {
  Message message = read("SETUP rtsp://h/a RTSP/1.0\nA:1\r\ntransport:  old\nB: 2\nTransport: c\n\n").messages.at(0);
  EXPECT_EQ(message.joined("Transport")->view(), "old, c");
  EXPECT_EQ(message.header_count("Transport"), 2U);
  message.set_header("Transport", "new");
  EXPECT_EQ(message.text().view(), "SETUP rtsp://h/a RTSP/1.0\r\nA:1\r\nTransport: new\r\nB: 2\r\n\r\n");
  message.set_uri("rtsp://g/a");
  message.set_body("12");
  EXPECT_EQ(message.remove_header("a"), 1U);
  EXPECT_EQ(message.text().view(),
            "SETUP rtsp://g/a RTSP/1.0\r\nTransport: new\r\nB: 2\r\nContent-Length: 2\r\n\r\n12");
  message.set_body("");
  EXPECT_EQ(message.text().view(), "SETUP rtsp://g/a RTSP/1.0\r\nTransport: new\r\nB: 2\r\n\r\n");
  EXPECT_EQ(Message::response(453, "Not Enough Bandwidth").text().view(), "RTSP/1.0 453 Not Enough Bandwidth\r\n\r\n");
  EXPECT_EQ(Message::request("TEARDOWN", "*").text().view(), "TEARDOWN * RTSP/1.0\r\n\r\n");
}

// What another reader may take in another way than this one is written in the one way that was judged.
TEST(Message, IsWrittenInOneWay) {
  const std::string start = "SET_PARAMETER rtsp://h/a RTSP/1.0\r\n";
  struct Case {
    std::string text, written;
  };
  for (const Case& one : {
           Case{"A: 1\r\n", "A: 1\r\n"},
           Case{"A:1  \n", "A:1  \r\n"},
           Case{"A:\r\n 1\r\n", "A: 1\r\n"},
           Case{"A: 1\r\n \t\r\nB: 2\r\n", "A: 1\r\nB: 2\r\n"},
           Case{"A: 1\n\tContent-Length: 2\n", "A: 1 Content-Length: 2\r\n"},
           Case{"a: 1\r\n Transport: x\r\n", "a: 1 Transport: x\r\n"},
           Case{"Content-length:0\r\n", "Content-length:0\r\n"},
           Case{"Content-length:000\r\nA:\r\n", "Content-Length: 0\r\nA:\r\n"},
           Case{"Content-Length: 0\r\nA:\r\ncontent-length: 0\r\n", "Content-Length: 0\r\nA:\r\n"},
           Case{"Session: a\r\nsession:a\r\n", "Session: a\r\nsession:a\r\n"},
       }) {
    for (const char* const end : {"\r\n", "\n"}) {
      EXPECT_EQ(read(start + one.text + end).messages.at(0).text().view(), start + one.written + "\r\n") << one.text;
    }
  }
  EXPECT_EQ(read("OPTIONS * RTSP/1.0\n\n").messages.at(0).text().view(), "OPTIONS * RTSP/1.0\r\n\r\n");
  EXPECT_EQ(read("RTSP/1.0 200\n\n").messages.at(0).text().view(), "RTSP/1.0 200\r\n\r\n");
  EXPECT_EQ(read(start + "Content-Length: 010\r\n\r\n0123456789").messages.at(0).text().view(),
            start + "Content-Length: 10\r\n\r\n0123456789");
}

TEST(Reader, RefusesByName) {
  struct Case {
    std::string text;
    Problem problem;
    std::string_view cseq = "";
  };
  const std::string start = "OPTIONS * RTSP/1.0\r\n";
  for (const Case& one : {
           Case{"GET /x HTTP/1.1\r\nCSeq: 3\r\n\r\n", Problem::not_rtsp, "3"},
           Case{"HTTP/1.1 200 OK\r\n\r\n", Problem::not_rtsp},
           Case{"nonsense\r\n\r\n", Problem::bad_start_line},
           Case{"OPTIONS * RTSP/1\r\n\r\n", Problem::bad_start_line},
           Case{"OPTIONS * RTSP/1.0 \r\n\r\n", Problem::bad_start_line},
           Case{"OPTIONS  * RTSP/1.0\r\n\r\n", Problem::bad_start_line},
           Case{"OPT(IONS * RTSP/1.0\r\n\r\n", Problem::bad_start_line},
           Case{"RTSP/1.0 99 x\r\n\r\n", Problem::bad_start_line},
           Case{"RTSP/1.0 1000 x\r\n\r\n", Problem::bad_start_line},
           Case{std::string("OPTIONS a\0b RTSP/1.0\r\n\r\n", 24), Problem::bad_start_line},
           Case{start + "A: b\rc\r\n\r\n", Problem::bad_header},
           Case{start + "CSeq: 9\r\nContent-Length:\r\n 12\r\n\r\n", Problem::bad_content_length, "9"},
           Case{start + "content-length: 1\n\t2\n\n", Problem::bad_content_length},
           Case{start + "Session: a\r\nSession: b\r\n\r\n", Problem::bad_header},
           Case{start + "Content-Length\t: 1\r\n\r\n", Problem::bad_content_length},
           Case{start + "Content-Length 1\r\n\r\n", Problem::bad_content_length},
           Case{start + "content length: 1\r\n\r\n", Problem::bad_content_length},
           Case{start + "Content-Length: 5, 6\r\n\r\n", Problem::bad_content_length},
           Case{start + "Session: a\x01\r\n\r\n", Problem::bad_header},
           Case{start + "Transport: a\r\n b\x7f\r\n\r\n", Problem::bad_header},
           Case{start + "A: b\rSession: c\r\n\r\n", Problem::bad_header},
           Case{"\x16\x03\x01", Problem::not_rtsp},
           Case{start + std::string("A: \0\r\n\r\n", 8), Problem::bad_header},
           Case{start + std::string("A\0: b\r\n\r\n", 9), Problem::bad_header},
           Case{"OPTIONS *\tRTSP/1.0\r\n\r\n", Problem::bad_start_line},
           Case{"OPTIONS *\rRTSP/1.0\r\n\r\n", Problem::bad_start_line},
           Case{start + "Content-Length: +5\r\n\r\n", Problem::bad_content_length},
           Case{start + "Content-Length: 0x5\r\n\r\n", Problem::bad_content_length},
           Case{start + "Content-Length: 5 5\r\n\r\n", Problem::bad_content_length},
           Case{start + "Content-Length: 18446744073709551621\r\n\r\n", Problem::bad_content_length},
           Case{start + "Content-Length: x\r\n\r\n", Problem::bad_content_length},
           Case{start + "Content-Length: -1\r\n\r\n", Problem::bad_content_length},
           Case{start + "Content-Length:\r\n\r\n", Problem::bad_content_length},
           Case{start + "Content-Length: 1\r\ncontent-length: 2\r\n\r\n", Problem::bad_content_length},
           Case{start + "CSeq: 4\r\nContent-Length: 33\r\n\r\n", Problem::body_too_long, "4"},
           Case{start + "A: " + std::string(100, 'a') + "\r\n\r\n", Problem::line_too_long},
           Case{start + std::string(200, 'a'), Problem::line_too_long},
           Case{start + "CSeq: 5\r\n" + std::string(101, 'a') + "\r\nCSeq: 6\r\n\r\n", Problem::line_too_long, "5"},
           Case{start + "1: " + std::string(95, 'a') + "\r\n2: " + std::string(200, 'a') + "\r\n\r\n",
                Problem::headers_too_long},
           Case{start + "A: " + std::string(50, 'a') + "\r\n " + std::string(50, 'a') + "\r\n\r\n",
                Problem::line_too_long},
           Case{start + "1:\r\n2:\r\n3:\r\n4:\r\n5:\r\n\r\n", Problem::too_many_headers},
           Case{start + "1: " + std::string(90, 'a') + "\r\n2: " + std::string(90, 'a') + "\r\n\r\n",
                Problem::headers_too_long},
       }) {
    const ReaderLimits limits{100, 200, 4, 32};
    for (const std::size_t piece : {std::string::npos, std::size_t{1}}) {
      const Read all = read(one.text + options, piece, limits);
      EXPECT_STREQ(problem_name(all.problem), problem_name(one.problem)) << one.text;
      EXPECT_TRUE(all.messages.empty()) << one.text;
      EXPECT_EQ(all.failed_cseq, one.cseq) << one.text;
      EXPECT_GE(problem_status(one.problem), 400U);
    }
  }
  EXPECT_EQ(read(start + "Content-Length: 2\r\nContent-Length: 2\r\n\r\nab").messages.at(0).body(), "ab");
}

// A line that is no header goes, and is counted; the rest is as it would be without it.
TEST(Reader, LeavesOutWhatIsNoHeader) {
  struct Case {
    std::string text, written;
    std::size_t left_out;
    std::string_view first = "";
  };
  const std::string start = "RTSP/1.0 200 OK\r\n";
  for (const Case& one : {
           Case{"no colon\r\nCSeq: 9\r\n", "CSeq: 9\r\n", 1, "line 2: no colon"},
           Case{"CSeq : 9\r\n", "CSeq: 9\r\n", 0},
           Case{"Session\t:  a;timeout=60\r\n \r\nRTP-Info: x\r\n", "Session: a;timeout=60\r\nRTP-Info: x\r\n", 0},
           Case{" folded: first\r\nA: b\r\n", "A: b\r\n", 1, "line 2: a fold of no header"},
           Case{"A: b\r\n: no name\r\nno colon\r\n C: d\r\n", "A: b\r\n", 2,
                "line 3: no name of a header before the colon"},
           Case{"A B: c\r\n", "", 1, "line 2: no name of a header before the colon"},
           Case{"A: b\r\n c\x01\r\nB: 1\r\n", "B: 1\r\n", 1, "line 2: a control character"},
           Case{"Content-Length: 0\r\n \r\n", "Content-Length: 0\r\n", 0},
           Case{"CSeq:\r\n 9\r\n", "CSeq: 9\r\n", 0},
           Case{"SESSION: a\r\n ;timeout=5\r\n", "SESSION: a ;timeout=5\r\n", 0},
           Case{"Transport: a,\r\n b\r\n", "Transport: a, b\r\n", 0},
           Case{"A: b\r\r\n", "A: b\r\n", 0},
           Case{"Content-Length: 0, 0\r\n", "Content-Length: 0\r\n", 0},
           Case{"Content-Length: 0;\r\n", "Content-Length: 0\r\n", 0},
           Case{"Content-Length : 0\r\n", "Content-Length: 0\r\n", 0},
           Case{"Content-Length:\r\n 0\r\n", "Content-Length: 0\r\n", 0},
           Case{"Session: a;timeout=60\r\nSession: a\r\n", "Session: a;timeout=60\r\nSession: a\r\n", 0},
       }) {
    for (const char* const end : {"\r\n", "\n", "\r\r\n"}) {
      const Read all = read(start + one.text + end);
      ASSERT_EQ(all.messages.size(), 1U) << one.text << problem_name(all.problem);
      EXPECT_EQ(all.messages[0].text().view(), start + one.written + "\r\n") << one.text;
      EXPECT_EQ(all.messages[0].lines_left_out(), one.left_out) << one.text;
      EXPECT_EQ(all.messages[0].first_left_out(), one.first);
    }
  }
  EXPECT_EQ(read(std::string("\0\r\n\0", 4) + answer).messages.at(0).body(), "hello") << "NULs between messages";
  for (const std::string odd :
       {" RTSP/1.0  200 OK ", "RTSP/1.0\t200\tOK", "RTSP/1 200 OK", "RTSP/1.0: 200 OK", "RTSP/1.0 200OK"}) {
    EXPECT_EQ(read(odd + "\r\n\r\n").messages.at(0).text().view(), "RTSP/1.0 200 OK\r\n\r\n") << odd;
  }
  EXPECT_EQ(read("RTSP/1.0 200 O\x01K\r\n\r\n").messages.at(0).text().view(), "RTSP/1.0 200\r\n\r\n");
  const std::string nuls("RTSP/1.0 200 OK\r\nA: b\0c\r\nCSeq: 3\0\r\nB: 1\r\n\r\n", 43);
  EXPECT_EQ(read(nuls).messages.at(0).text().view(), start + "B: 1\r\n\r\n");
}

// A length that a server writes in its own way is written in the one that was judged, or nobody guesses.
TEST(Reader, LengthsOfAnswers) {
  const std::string start = "RTSP/1.0 200 OK\r\nContent-Length: ";
  for (const std::string length : {"5", "+5", "5 bytes", "5.0", "5;x=6", "05", "5, 5", "5;", "5\t"}) {
    const Read all = read(start + length + "\r\n\r\nhello");
    ASSERT_EQ(all.messages.size(), 1U) << length;
    EXPECT_EQ(all.messages[0].body(), "hello") << length;
    EXPECT_EQ(all.messages[0].header("Content-Length"), "5") << length;
  }
  for (const std::string length : {"0x5", "5 5", "5, 6", "-5", "5e0", "5.5", "5 or 6", "++5", "+", "five", "5;\x01"}) {
    EXPECT_STREQ(problem_name(read(start + length + "\r\n\r\nhello").problem),
                 length.back() == '\x01' ? "bad_header" : "bad_content_length")
        << length;
  }
}

TEST(Reader, SaysWhichLineItWas) {
  const std::string start = "OPTIONS * RTSP/1.0\r\n";
  const std::pair<std::string, std::string_view> cases[] = {
      {start + "A: 1\r\n 2\r\nSession: x\x01\r\n\r\n", "bad_header: line 4, 'Session': a control character"},
      {start + "A: b\rc\r\n\r\n", "bad_header: line 2, a CR or NUL within it"},
      {start + "Content-Length: x\r\n\r\n", "bad_content_length: line 3, Content-Length: no number"},
      {start + "A:\r\nA: " + std::string(9000, 'a'), "line_too_long: line 3, over 8192 bytes"},
      {"GET / HTTP/1.0\r\n\r\n", "not_rtsp: line 1, this is HTTP: RTSP tunnelled in HTTP is not spoken"},
      {"\x16\x03", "not_rtsp: this is TLS: RTSP over TLS (rtsps) is not spoken"},
      {"x\r\n\r\n", "bad_start_line: line 1, it is neither METHOD URI RTSP/1.0 nor RTSP/1.0 STATUS"},
  };
  for (const auto& [text, said] : cases) {
    Reader reader;
    reader.append(text);
    (void)reader.next();
    EXPECT_EQ(reader.problem_text(), said);
  }
}

TEST(Reader, TakesUpToItsLimits) {
  const ReaderLimits limits{100, 250, 4, 32};
  const std::string text = "OPTIONS * RTSP/1.0\r\n1:\r\n2:" + std::string(98, 'a') +
                           "\r\n3:\r\nContent-Length: 32\r\n\r\n" + std::string(32, 'b');
  const Read all = read(text, 7, limits);
  EXPECT_STREQ(problem_name(all.problem), "none");
  ASSERT_EQ(all.messages.size(), 1U);
  EXPECT_EQ(all.messages[0].text().view(), text);
}

}  // namespace
}  // namespace sluice::media::rtsp
