// The deadlines of [srtp.rtsp] and [[srtp.rtsp.server]]: which one holds, and which are mistakes.
#include "control/rtsp/medium_deadlines.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/config.h"
#include "control/pipeline_maker.h"

namespace sluice::control::rtsp {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

const std::string base =
    "[engine]\nchain = [\"srtp\", \"route\"]\ndeadline = \"20ms\"\n[[port]]\nname = \"a\"\ndevice = \"net_null0\"\n"
    "twin = \"sl-a\"\n[srtp]\nmax_keys = 100\n[srtp.rtsp]\nlisten = [\"10.1.0.1\"]\n";
const std::string server = "[[srtp.rtsp.server]]\naddress = \"10.2.0.1\"\n";

TEST(MediumDeadlines, the_most_particular_holds) {
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
    Config config = Config::from_text(base + one.of_all + server + "path = \"/a\"\n" + one.of_server + server, "f");
    EXPECT_TRUE(make_pipeline(config, described_ports(config.engine))) << config.mistakes();
    const MediumDeadlines& read = config.rtsp_deadlines;
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

TEST(MediumDeadlines, mistakes) {
  const std::pair<std::string, std::string> cases[] = {
      {"deadline = 5\n" + server, "f:12: [srtp.rtsp] deadline = 5: allowed is a duration"},
      {"video_deadline = \"0ms\"\n" + server, "[srtp.rtsp] video_deadline = \"0ms\": allowed is a duration above 0"},
      {server + "audio_deadline = true\n", "[[srtp.rtsp.server]] audio_deadline = true: allowed is a duration"},
      {"audio_deadlin = \"1ms\"\n" + server, "unknown key; did you mean \"audio_deadline\"?"},
      {server + "picture_deadline = \"1ms\"\n", "[[srtp.rtsp.server]] picture_deadline = \"1ms\": unknown key"},
  };
  for (const auto& [text, mistake] : cases) {
    SCOPED_TRACE(text);
    Config config = Config::from_text(base + text, "f");
    (void)make_pipeline(config, described_ports(config.engine));
    EXPECT_THAT(config.mistakes(), HasSubstr(mistake));
    EXPECT_EQ(config.diagnostics().lines.size(), 1U);
  }
}

}  // namespace
}  // namespace sluice::control::rtsp
