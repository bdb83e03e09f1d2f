// The deadlines of [srtp.rtsp] and [[srtp.rtsp.server]]: which one holds, and which are mistakes.
#include "function/srtp/rtsp/medium_deadlines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "function/srtp/rtsp_settings.h"

namespace sluice::function::rtsp {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

const std::string base = "[srtp.rtsp]\nlisten = [\"10.1.0.1\"]\n";
const std::string server = "[[srtp.rtsp.server]]\naddress = \"10.2.0.1\"\n";

RtspOptions options_of(const std::string& text, Diagnostics& diagnostics) {
  Settings root = *Settings::from_text(text, "f", diagnostics);
  return read_rtsp(root.section("srtp").section("rtsp"), engine::PortTable());
}

TEST(MediumDeadlines, TheMostParticularHolds) {
  struct Case {
    std::string of_all, of_server;
    std::int64_t audio, video, application, text;     // in milliseconds, of the first server
    std::int64_t other_audio = 20, other_video = 20;  // of the second, and of a transparent connection
  };
  const std::string each = "audio_deadline = \"5ms\"\nvideo_deadline = \"6ms\"\napplication_deadline = \"7ms\"\n";
  const Case cases[] = {
      {"", "", 20, 20, 20, 20},
      {"deadline = \"9ms\"\n", "", 9, 9, 9, 9, 9, 9},
      {each, "", 5, 6, 7, 20, 5, 6},
      {"deadline = \"9ms\"\nvideo_deadline = \"30ms\"\n", "", 9, 30, 9, 9, 9, 30},
      {"", "deadline = \"3ms\"\n", 3, 3, 3, 3},
      {each, "deadline = \"8ms\"\n", 8, 8, 8, 8, 5, 6},
      {each, "video_deadline = \"2ms\"\n", 5, 2, 7, 20, 5, 6},
      {"deadline = \"9ms\"\n" + each, "deadline = \"8ms\"\naudio_deadline = \"1ms\"\n", 1, 8, 8, 8, 5, 6},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.of_all + one.of_server);
    Diagnostics diagnostics;
    MediumDeadlines read =
        options_of(base + one.of_all + server + "path = \"/a\"\n" + one.of_server + server, diagnostics).deadlines;
    EXPECT_THAT(diagnostics.lines, testing::IsEmpty());
    read.engine = milliseconds(20);
    EXPECT_EQ(read.of("audio", 0), milliseconds(one.audio));
    EXPECT_EQ(read.of("video", 0), milliseconds(one.video));
    EXPECT_EQ(read.of("application", 0), milliseconds(one.application));
    EXPECT_EQ(read.of("text", 0), milliseconds(one.text));
    for (const std::optional<std::size_t> other : {std::optional<std::size_t>(1), std::optional<std::size_t>()}) {
      EXPECT_EQ(read.of("audio", other), milliseconds(one.other_audio));
      EXPECT_EQ(read.of("video", other), milliseconds(one.other_video));
    }
  }
}

TEST(MediumDeadlines, Mistakes) {
  const std::pair<std::string, std::string> cases[] = {
      {"deadline = 5\n" + server, "f:3: [srtp.rtsp] deadline = 5: allowed is a duration"},
      {"video_deadline = \"0ms\"\n" + server, "[srtp.rtsp] video_deadline = \"0ms\": allowed is a duration above 0"},
      {server + "audio_deadline = true\n", "[[srtp.rtsp.server]] audio_deadline = true: allowed is a duration"},
      {"audio_deadlin = \"1ms\"\n" + server, "unknown key; did you mean \"audio_deadline\"?"},
      {server + "picture_deadline = \"1ms\"\n", "[[srtp.rtsp.server]] picture_deadline = \"1ms\": unknown key"},
  };
  for (const auto& [text, mistake] : cases) {
    SCOPED_TRACE(text);
    Diagnostics diagnostics;
    (void)options_of(base + text, diagnostics);
    ASSERT_EQ(diagnostics.lines.size(), 1U);
    EXPECT_THAT(diagnostics.lines.front(), HasSubstr(mistake));
  }
}

TEST(MediumDeadlines, CanChangeWithARestartAlone) {
  Diagnostics diagnostics;
  const auto of = [&](const std::string& text) { return options_of(base + text, diagnostics); };
  const RtspOptions running = of(server);
  const std::string change = " cannot change while the gateway runs: restart it";
  const std::pair<std::string, std::string> cases[] = {
      {server, ""},
      {"video_deadline = \"5ms\"\n" + server, "[srtp.rtsp] video_deadline" + change},
      {server + "deadline = \"5ms\"\naudio_deadline = \"5ms\"\n",
       "[[srtp.rtsp.server]] deadline" + change + "\n[[srtp.rtsp.server]] audio_deadline" + change},
  };
  for (const auto& [text, lines] : cases) EXPECT_EQ(rtsp_changes(running, of(text)), lines) << text;
}

}  // namespace
}  // namespace sluice::function::rtsp
