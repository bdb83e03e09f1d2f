"""RTSP's proxy between real peers: GStreamer's server, and ffmpeg and rtspsrc as clients. Signalling alone: no media passes."""

import base64
import json
import signal

import pytest

from gateway import SLUICE
from hosts import Lab, stop, wait_until
from rtsp_peers import FILM, PYTHON, SERVER, why_not

RELAY = SLUICE.parent / "tests" / "rtsp" / "rtsp_relay"
_reason = why_not()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))


class Signalling:
    """client - proxy - server, each a host."""

    def __init__(self, lab, folder):
        self.client, proxy, server = (lab.host(label) for label in ("client", "proxy", "server"))
        lab.join(self.client, "c0", proxy, "p0")
        lab.join(proxy, "p1", server, "s0")
        for host, interface, address in ((self.client, "c0", "10.8.0.2"), (proxy, "p0", "10.8.0.1"),
                                         (proxy, "p1", "10.9.0.2"), (server, "s0", "10.9.0.1")):
            host.ip(f"addr add {address}/24 dev {interface}")
        self.log = folder / "relay.jsonl"
        self.server_log = folder / "server.log"
        with open(self.server_log, "w", encoding="utf-8") as log:
            server.spawn([PYTHON, str(SERVER), "10.9.0.1", "8554"], stdout=log)
        assert wait_until(lambda: "ready" in self.server_log.read_text(), 30), self.server_log.read_text()
        with open(self.log, "w", encoding="utf-8") as log:
            proxy.spawn([str(RELAY), "10.8.0.1", "8554", "10.9.0.1", "8554"], stdout=log)
        assert wait_until(lambda: self.events("listening"), 10)

    def events(self, name):
        lines = self.log.read_text().splitlines()
        return [event for event in map(json.loads, lines) if event["event"] == name]



@pytest.fixture
def signalling(tmp_path):
    with Lab() as lab:
        yield Signalling(lab, tmp_path)


def check_streams(opened):
    assert [stream["kind"] for stream in opened] == ["video", "audio"]
    for stream in opened:
        assert stream["suite"] == "AES_CM_128_HMAC_SHA1_80"
        assert len(base64.b64decode(stream["to_client"])) == 30
        assert len(stream["ssrcs"]) == 1, "the description's and Transport's are the same"
        assert stream["client_side"]["client"] == "10.8.0.2"
        assert stream["client_side"]["server"] == "10.8.0.1"
        assert stream["server_side"]["client"] == "10.9.0.2"
        assert stream["server_side"]["server"] == "10.9.0.1"
    assert opened[0]["to_client"] != opened[1]["to_client"]
    assert opened[0]["rate"] > 0, "x264enc's b=AS"


def play(signalling, command, seconds=30):
    """Plays until both streams are open, then ends the client as Ctrl-C would."""
    client = signalling.client.spawn(command)
    assert wait_until(lambda: len(signalling.events("opened")) == 2, seconds), signalling.log.read_text()
    client.send_signal(signal.SIGINT)
    assert wait_until(lambda: len(signalling.events("closed")) == 2, seconds), signalling.log.read_text()
    stop(client)
    # With TEARDOWN, or without when the signal came before the client played.
    assert {event["reason"] for event in signalling.events("closed")} <= {"teardown", "client_closed"}
    assert not signalling.events("refused")
    return signalling.events("opened")


def test_ffmpeg_takes_sdes(signalling):
    """It asks for RTP/AVP although it was offered RTP/SAVP, and brings no key."""
    opened = play(signalling, ["ffmpeg", "-loglevel", "quiet", "-rtsp_transport", "udp", "-i", FILM.format("10.8.0.1"),
                               "-f", "null", "-"])
    check_streams(opened)
    assert all(stream["plain_profile"] and stream["from_client"] is None for stream in opened)


def test_rtspsrc_takes_mikey(signalling):
    """It asks for RTP/SAVP and brings the key of its RTCP."""
    opened = play(signalling, ["gst-launch-1.0", "-q", "rtspsrc", f"location={FILM.format('10.8.0.1')}", "protocols=udp", "!",
                               "fakesink"])
    check_streams(opened)
    assert not any(stream["plain_profile"] for stream in opened)
    keys = [stream["from_client"] for stream in opened]
    assert all(len(base64.b64decode(key)) == 30 for key in keys) and keys[0] != keys[1]


def test_interleaving_is_refused(signalling):
    output = signalling.client.run(["timeout", "20", "ffmpeg", "-loglevel", "error", "-rtsp_transport", "tcp", "-i",
                                    FILM.format("10.8.0.1"), "-f", "null", "-"], check=False)
    assert "461" in output
    refused = signalling.events("refused")
    assert refused and all(event["refusal"] == "interleaved" and event["status"] == 461 for event in refused)
    assert not signalling.events("admit")
