"""[srtp.rtsp] before servers that keep to no RFC (odd_server.py): what ffmpeg and GStreamer play of them they play through the proxy,
as SRTP."""

import concurrent.futures
import pathlib
import socket
import sys

import pytest

import odd_server
from capture import Capture
from film import PORT, film
from hosts import wait_until
from odd_server import CASES, REFUSED, SOUND
from rtsp_peers import why_not
from topology import SERVER4

_reason = why_not()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

PACKETS = 10
AT_ONCE = 12  # players; each waits for the most part


def ffmpeg(url, file):
    return ["timeout", "30", "ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "udp", "-analyzeduration", "100000", "-i", url,
            "-map", "0:a", "-c", "copy", "-frames:a", str(PACKETS), "-f", "alaw", str(file)]


def rtspsrc(url, file):
    return ["timeout", "30", "gst-launch-1.0", "-q", "rtspsrc", f"location={url}", "protocols=udp", "latency=50", "!", "rtppcmadepay", "!",
            "identity", f"eos-after={PACKETS + 1}", "!", "filesink", f"location={file}"]


PLAYERS = {"ffmpeg": ffmpeg, "rtspsrc": rtspsrc}
TRIALS = [(name, player) for name, case in CASES.items() for player in case.players]


# RTSP within HTTP, and TLS: neither is spoken.
TUNNELS = {b"GET /film HTTP/1.0\r\nx-sessioncookie: 1\r\nAccept: application/x-rtsp-tunnelled\r\n\r\n":
           "not_rtsp: line 1, this is HTTP: RTSP tunnelled in HTTP is not spoken",
           b"\x16\x03\x01\x00\x05hello": "not_rtsp: this is TLS: RTSP over TLS (rtsps) is not spoken"}


class Played:
    """What every player made of every case, and what the proxy counted."""

    def __init__(self, folder):
        self.folder = folder
        with film(folder) as network:
            network.start()
            log = folder / "odd.log"
            with open(log, "w", encoding="utf-8") as out:
                network.server.spawn([sys.executable, odd_server.__file__, SERVER4, str(PORT)], stdout=out, stderr=out)
            assert wait_until(lambda: "ready" in log.read_text(), 10), log.read_text()
            self.network = network
            self.tunnels = [self.ask(octets) for octets in TUNNELS]
            with Capture(network.client, "eth0") as outside, concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
                runs = {one: pool.submit(self.play, *one) for one in TRIALS}
                self.outputs = {one: run.result() for one, run in runs.items()}
            self.answers = {name: self.ask(f"DESCRIBE rtsp://{SERVER4}:{PORT}/{name} RTSP/1.0\r\nCSeq: 1\r\n\r\n".encode())
                            for name in REFUSED}
            self.metrics, self.log = network.metrics(), network.gateway.log()
            self.in_clear = outside.has(SOUND)

    def ask(self, octets):
        with self.network.client.inside(socket.create_connection, (SERVER4, PORT), 10) as connection:
            connection.settimeout(10)
            connection.sendall(octets)
            return connection.recv(65536)

    def play(self, name, player):
        command = PLAYERS[player](f"rtsp://{SERVER4}:{PORT}/{name}", self.file(name, player))
        return self.network.client.run(command, check=False)

    def file(self, name, player):
        return pathlib.Path(self.folder) / f"{name}.{player}"


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    return Played(tmp_path_factory.mktemp("rtsp-odd"))


@pytest.mark.parametrize("name, player", TRIALS)
def test_it_plays(played, name, player):
    file = played.file(name, player)
    said = played.outputs[name, player]
    assert file.exists() and len(file.read_bytes()) >= PACKETS * len(SOUND), (said, played.log[-6000:])
    assert file.read_bytes()[:len(SOUND)] == SOUND, "the sound is as it was sent"


def test_nothing_is_in_clear(played):
    assert not played.in_clear
    assert played.metrics["srtp_protected_rtp"] >= len(TRIALS) * PACKETS


def test_what_is_left_out_is_counted_and_said(played):
    for what in ("medium", "description_line", "header_line"):
        trials = sum(CASES[name].left_out == what for name, _ in TRIALS)
        assert played.metrics[f"rtsp_left_out_{what}"] >= trials, what
        assert f"the proxy leaves out {what} line " in played.log
    assert "'application/TP-LINK' is no kind of medium" in played.log


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_dangerous_is_refused_and_the_log_says_why(played, name):
    assert played.answers[name].startswith(b"RTSP/1.0 502 "), played.answers[name]
    assert REFUSED[name][1] in played.log


def test_tunnels_are_refused_and_named(played):
    assert [answer.split()[1] for answer in played.tunnels] == [b"505", b"505"]
    for said in TUNNELS.values():
        assert said in played.log
