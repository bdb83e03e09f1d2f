// What real peers said through the proxy, recorded from GStreamer 1.22's rtsp-server and its clients ffmpeg 5.1 and
// rtspsrc. Addresses, dates and names of hosts are not theirs; bodies lack Content-Length, which with_body() adds.
#pragma once

#include <string>
#include <string_view>

namespace sluice::media::rtsp::test {

inline std::string with_body(std::string_view head, std::string_view body) {
  return std::string(head) + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

inline constexpr std::string_view gst_session =
    "v=0\r\no=- 16411289923793564715 1 IN IP4 10.9.0.1\r\ns=Session streamed with GStreamer\r\ni=rtsp-server\r\nt=0 "
    "0\r\n"
    "a=tool:GStreamer\r\na=type:broadcast\r\na=control:*\r\na=range:npt=now-\r\n";
inline constexpr std::string_view gst_video_line = "m=video 0 RTP/AVP 96\r\n";
inline constexpr std::string_view gst_video =
    "c=IN IP4 0.0.0.0\r\nb=AS:2097\r\na=rtpmap:96 H264/90000\r\na=framerate:15\r\n"
    "a=fmtp:96 packetization-mode=1;sprop-parameter-sets=Z0LAFdkBQfsBagwMDUoAAAMAAgAAAwA9HixckA==,aMuMsg==;"
    "profile-level-id=42c015;level-asymmetry-allowed=1\r\n"
    "a=control:stream=0\r\na=ts-refclk:local\r\na=mediaclk:sender\r\na=ssrc:4255318117 cname:user742412595@host\r\n";
inline constexpr std::string_view gst_audio_line = "m=audio 0 RTP/AVP 8\r\n";
inline constexpr std::string_view gst_audio =
    "c=IN IP4 0.0.0.0\r\na=rtpmap:8 PCMA/8000\r\na=control:stream=1\r\na=ts-refclk:local\r\na=mediaclk:sender\r\n"
    "a=ssrc:755644106 cname:user742412595@host\r\n";

inline std::string gst_description() {
  return std::string(gst_session).append(gst_video_line).append(gst_video).append(gst_audio_line).append(gst_audio);
}

inline constexpr std::string_view gst_options_answer =
    "RTSP/1.0 200 OK\r\nCSeq: 1\r\nPublic: OPTIONS, DESCRIBE, ANNOUNCE, GET_PARAMETER, PAUSE, PLAY, RECORD, SETUP, "
    "SET_PARAMETER, TEARDOWN\r\nServer: GStreamer RTSP server\r\nDate: Sun, 01 Nov 2026 00:00:00 GMT\r\n\r\n";
// What a client gets of it: the proxy refuses ANNOUNCE and RECORD.
inline constexpr std::string_view gst_options_passed =
    "RTSP/1.0 200 OK\r\nCSeq: 1\r\nPublic: OPTIONS, DESCRIBE, GET_PARAMETER, PAUSE, PLAY, SETUP, SET_PARAMETER, "
    "TEARDOWN\r\nServer: GStreamer RTSP server\r\nDate: Sun, 01 Nov 2026 00:00:00 GMT\r\n\r\n";
inline constexpr std::string_view gst_describe_head =
    "RTSP/1.0 200 OK\r\nCSeq: 2\r\nContent-Type: application/sdp\r\nContent-Base: rtsp://10.9.0.1:8554/plain/\r\n"
    "Server: GStreamer RTSP server\r\nDate: Sun, 01 Nov 2026 00:00:00 GMT\r\n";

inline constexpr std::string_view ffmpeg_options =
    "OPTIONS rtsp://10.9.0.1:8554/plain RTSP/1.0\r\nCSeq: 1\r\nUser-Agent: Lavf59.27.100\r\n\r\n";
inline constexpr std::string_view ffmpeg_describe =
    "DESCRIBE rtsp://10.9.0.1:8554/plain RTSP/1.0\r\nAccept: application/sdp\r\nCSeq: 2\r\nUser-Agent: "
    "Lavf59.27.100\r\n\r\n";
inline constexpr std::string_view ffmpeg_setup_video =
    "SETUP rtsp://10.9.0.1:8554/plain/stream=0 RTSP/1.0\r\nTransport: RTP/AVP/UDP;unicast;client_port=12322-12323\r\n"
    "CSeq: 3\r\nUser-Agent: Lavf59.27.100\r\n\r\n";
inline constexpr std::string_view gst_setup_video_answer =
    "RTSP/1.0 200 OK\r\nCSeq: 3\r\nTransport: "
    "RTP/AVP;unicast;client_port=12322-12323;server_port=44512-44513;ssrc=FDA30065;"
    "mode=\"PLAY\"\r\nServer: GStreamer RTSP server\r\nSession: fwZMuBoktkKvhvLA\r\n"
    "Date: Sun, 01 Nov 2026 00:00:00 GMT\r\n\r\n";
inline constexpr std::string_view ffmpeg_setup_audio =
    "SETUP rtsp://10.9.0.1:8554/plain/stream=1 RTSP/1.0\r\nTransport: RTP/AVP/UDP;unicast;client_port=12324-12325\r\n"
    "CSeq: 4\r\nUser-Agent: Lavf59.27.100\r\nSession: fwZMuBoktkKvhvLA\r\n\r\n";
inline constexpr std::string_view gst_setup_audio_answer =
    "RTSP/1.0 200 OK\r\nCSeq: 4\r\nTransport: "
    "RTP/AVP;unicast;client_port=12324-12325;server_port=55502-55503;ssrc=2D0A36CA;"
    "mode=\"PLAY\"\r\nServer: GStreamer RTSP server\r\nSession: fwZMuBoktkKvhvLA\r\n"
    "Date: Sun, 01 Nov 2026 00:00:00 GMT\r\n\r\n";
inline constexpr std::string_view ffmpeg_play =
    "PLAY rtsp://10.9.0.1:8554/plain/ RTSP/1.0\r\nRange: npt=0.000-\r\nCSeq: 5\r\nUser-Agent: Lavf59.27.100\r\n"
    "Session: fwZMuBoktkKvhvLA\r\n\r\n";
inline constexpr std::string_view gst_play_answer =
    "RTSP/1.0 200 OK\r\nCSeq: 5\r\nRTP-Info: url=rtsp://10.9.0.1:8554/plain/stream=0;seq=13063;rtptime=100651286, "
    "url=rtsp://10.9.0.1:8554/plain/stream=1;seq=22418;rtptime=754851674\r\nRange: npt=now-\r\n"
    "Server: GStreamer RTSP server\r\nSession: fwZMuBoktkKvhvLA\r\nDate: Sun, 01 Nov 2026 00:00:00 GMT\r\n\r\n";
inline constexpr std::string_view ffmpeg_teardown =
    "TEARDOWN rtsp://10.9.0.1:8554/plain/ RTSP/1.0\r\nCSeq: 6\r\nUser-Agent: Lavf59.27.100\r\n"
    "Session: fwZMuBoktkKvhvLA\r\n\r\n";
inline constexpr std::string_view gst_teardown_answer =
    "RTSP/1.0 200 OK\r\nCSeq: 6\r\nServer: GStreamer RTSP server\r\nSession: fwZMuBoktkKvhvLA\r\nConnection: close\r\n"
    "Date: Sun, 01 Nov 2026 00:00:00 GMT\r\n\r\n";

// rtspsrc asks for RTP/SAVP and brings the key of its own RTCP.
inline constexpr std::string_view rtspsrc_setup_video =
    "SETUP rtsp://10.9.0.1:8554/plain/stream=0 RTSP/1.0\r\nCSeq: 3\r\nUser-Agent: GStreamer/1.22.0\r\n"
    "Transport: RTP/SAVP;unicast;client_port=12322-12323\r\n"
    "KeyMgmt: "
    "prot=mikey;uri=\"rtsp://10.9.0.1:8554/plain/stream=0\";data=\"AQAFADu8d44BAADy0OKZAAAAAAsA7q291nPP5YYKEMZ1B5"
    "YXMr5daaVXUsMcLtsBAAAAFQABAQEBEAIBAQMBCgcBAQgBAQoBAQAAACIAIAAe4H2Dw3MjfoaJ2Ue6PXo1yt0rHn+DeLq07FDbMx9MAA==\"\r\n"
    "Date: Sun, 01 Nov 2026 00:00:00 GMT\r\n\r\n";
inline constexpr std::string_view rtspsrc_key = "4H2Dw3MjfoaJ2Ue6PXo1yt0rHn+DeLq07FDbMx9M";

}  // namespace sluice::media::rtsp::test
