"""[srtp.rtsp] between real peers: GStreamer's RTSP server in clear behind it, ffmpeg and rtspsrc before it, all unmodified.

What the client's link carries is captured there, and libsrtp opens it with the keys of the description that the client saw: it
must be, packet by packet, what the server's link carried in clear.
"""

import base64
import json
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from hosts import stop, wait_until
from rtsp_peers import FILM, PYTHON, SERVER, why_not
from srtp_peer import Peer
from topology import CLIENT4, CLIENT6, SERVER4, SERVER6, Topology

_reason = why_not()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

PORT = 8554
RTP_FIXED = 12


def settings(*more):
    return "\n".join(["[srtp.rtsp]", f'servers = ["{SERVER4}/32", "{SERVER6}/128"]', f"ports = [{PORT}]", *more]) + "\n"


class Capture:
    """All that passes an interface, while it is there."""

    def __init__(self, host, interface):
        self.frames, self._end = [], threading.Event()

        def watch():
            wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
            wire.bind((interface, 0))
            wire.settimeout(0.2)
            return wire

        self._wire = host.inside(watch)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._end.is_set():
            try:
                self.frames.append(self._wire.recv(65535))
            except TimeoutError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()
        self._wire.close()

    def udp(self):
        """((source, port), (destination, port), payload) of each datagram, in order."""
        for frame in self.frames:
            kind, = struct.unpack_from("!H", frame, 12)
            if kind == 0x0800 and frame[23] == 17:
                family, source, destination, at = socket.AF_INET, frame[26:30], frame[30:34], 14 + (frame[14] & 15) * 4
            elif kind == 0x86dd and frame[20] == 17:
                family, source, destination, at = socket.AF_INET6, frame[22:38], frame[38:54], 54
            else:
                continue
            ports = struct.unpack_from("!HHH", frame, at)
            yield ((socket.inet_ntop(family, source), ports[0]), (socket.inet_ntop(family, destination), ports[1]),
                   frame[at + 8:at + ports[2]])

    def tcp_text(self):
        """Everything that TCP carried, in the order of its frames."""
        return b"".join(frame[54:] for frame in self.frames if frame[12:14] == b"\x08\x00" and frame[23] == 6)

    def media(self, server):
        """RTP by (destination port, sequence number), and RTCP of the server's as a list, with ports."""
        rtp, rtcp = {}, []
        for (source, _), (_, port), payload in self.udp():
            if source != server or len(payload) < 8 or payload[0] >> 6 != 2:
                continue
            if 192 <= payload[1] <= 223:
                rtcp.append((port, payload))
            else:
                rtp[port, payload[2:4]] = payload
        return rtp, rtcp


def offered_keys(text):
    """The master keys of a=crypto in the descriptions that were seen, in order."""
    return [base64.b64decode(key) for key in re.findall(rb"inline:([A-Za-z0-9+/=]+)", text)]


class Film(Topology):
    def __enter__(self):
        super().__enter__()
        self.film = None
        return self

    def serve(self, address=SERVER4):
        log = self.folder / "server.log"
        with open(log, "w", encoding="utf-8") as out:
            self.film = self.server.spawn([PYTHON, str(SERVER), address, str(PORT)], stdout=out)
        assert wait_until(lambda: "ready" in log.read_text(), 30), log.read_text()

    def figures(self):
        return {one["name"]: one["value"] for one in self.gateway.stats()["figures"]}

    def figure(self, name):
        return self.figures()[name]


def film(folder, *more):
    return Film(folder, srtp=settings(*more), engine=('device = "cpu"',))


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    with film(tmp_path_factory.mktemp("rtsp-proxy")) as topology:
        topology.start()
        topology.serve()
        yield topology


def ffmpeg(address, seconds, output=("-f", "null", "-")):
    return ["ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "udp", "-i", FILM.format(address), "-t", str(seconds),
            *output]


def rtspsrc(address):
    return ["gst-launch-1.0", "-q", "-e", "rtspsrc", f"location={FILM.format(address)}", "protocols=udp", "name=s",
            "s.", "!", "application/x-rtp,media=video", "!", "rtph264depay", "!", "avdec_h264", "!", "fakesink",
            "s.", "!", "application/x-rtp,media=audio", "!", "rtppcmadepay", "!", "fakesink"]


def check_secret_and_whole(outside, inside, server=SERVER4, least=60):
    """What the client's link carried is what the server's did, protected; and nothing of it was seen in clear."""
    clear, clear_rtcp = inside.media(server)
    sealed, sealed_rtcp = outside.media(server)
    assert len(clear) >= least and sealed, f"{len(clear)} RTP packets of the server, {len(sealed)} at the client"
    keys = offered_keys(outside.tcp_text())
    assert len(keys) == 2 and keys[0] != keys[1], "video and audio"
    assert not offered_keys(inside.tcp_text()), "a key has reached the server"
    receivers = {}
    for port, sequence in sorted(sealed, key=lambda one: int.from_bytes(one[1], "big")):
        packet = sealed[port, sequence]
        assert packet[RTP_FIXED:] != clear[port, sequence][RTP_FIXED:], "in clear"
        if port not in receivers:
            receivers[port] = next(peer for peer in map(lambda key: Peer(key, inbound=True), keys)
                                   if peer.unprotect(packet) == clear[port, sequence])
        else:
            assert receivers[port].unprotect(packet) == clear[port, sequence], f"port {port}"
    missing = set(clear) - set(sealed)
    assert not missing, f"{len(missing)} of {len(clear)} packets did not reach the client"
    assert len(receivers) == 2
    for port, packet in sealed_rtcp:
        opened = receivers[port - 1].unprotect_rtcp(packet)
        assert opened is not None and (port, opened) in clear_rtcp
    assert sealed_rtcp, "the server's reports"


def play(network, command, seconds=8, check=True):
    """What the links carried while a client ran to its end, or was ended as Ctrl-C would after `seconds` of media."""
    with Capture(network.client, "eth0") as outside, Capture(network.server, "eth0") as inside:
        client = network.client.spawn(command, stdout=subprocess.PIPE, text=True)
        if command[0] == "gst-launch-1.0":
            assert wait_until(lambda: network.figure("rtsp_media") == 2, 20), network.figures()
            time.sleep(seconds)
            client.send_signal(signal.SIGINT)
        output, _ = client.communicate(timeout=60)
        assert not check or client.returncode == 0, output
        assert wait_until(lambda: network.figure("rtsp_connections") == 0, 15), network.figures()
        time.sleep(0.3)
    return outside, inside, output


def ended(figures):
    """With TEARDOWN; ffmpeg does not wait for its answer and closes."""
    return figures["rtsp_closed_teardown"] + figures["rtsp_closed_client_gone"]


def test_ffmpeg_plays_through(network):
    before = network.figures()
    outside, inside, output = play(network, ffmpeg(SERVER4, 6))
    assert output == "", "ffmpeg has nothing to complain about"
    check_secret_and_whole(outside, inside)
    after = network.figures()
    assert after["rtsp_opened"] == before["rtsp_opened"] + 2
    assert ended(after) == ended(before) + 2
    assert after["srtp_streams"] == 0 and after["rtsp_media"] == 0
    # Its own RTCP is in clear, and taken so.
    assert after["srtp_clear_rtcp_passed"] > before["srtp_clear_rtcp_passed"]
    # Addresses are the same on both sides.
    for capture in (outside, inside):
        assert {CLIENT4, SERVER4} >= {end[0] for one in capture.udp() for end in one[:2] if end[1] > 1024}


def test_rtspsrc_plays_through(network):
    before = network.figures()
    outside, inside, output = play(network, rtspsrc(SERVER4))
    check_secret_and_whole(outside, inside)
    after = network.figures()
    assert after["srtp_unprotected_rtcp"] > before["srtp_unprotected_rtcp"], "its RTCP is SRTCP"
    assert ended(after) == ended(before) + 2, output


def test_interleaving_is_refused(network):
    command = ["timeout", "20", "ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-i", FILM.format(SERVER4),
               "-f", "null", "-"]
    assert "461" in network.client.run(command, check=False)
    assert network.figure("rtsp_refused_interleaved") >= 1


def test_a_client_that_is_killed_leaves_nothing(network):
    before = network.figure("rtsp_closed_client_gone")
    with Capture(network.client, "eth0") as outside:
        client = network.client.spawn(ffmpeg(SERVER4, 60))
        assert wait_until(lambda: network.figure("srtp_protected_rtp") > 0 and network.figure("rtsp_media") == 2, 20)
        time.sleep(1)
        stop(client)
        assert wait_until(lambda: network.figure("rtsp_closed_client_gone") == before + 2, 10), network.figures()
        assert network.figure("srtp_streams") == 0
        time.sleep(1)
    keys = offered_keys(outside.tcp_text())
    sealed, _ = outside.media(SERVER4)
    for (port, _), packet in sealed.items():
        # Each opens with one of the keys: what the server sent after the end did not come in clear.
        assert any(Peer(key, inbound=True).unprotect(packet) for key in keys), port


def test_a_server_that_restarts(network):
    client = network.client.spawn(ffmpeg(SERVER4, 60))
    assert wait_until(lambda: network.figure("rtsp_media") == 2, 20)
    before = network.figure("rtsp_closed_server_gone")
    stop(network.film)
    assert wait_until(lambda: network.figure("rtsp_closed_server_gone") == before + 2, 10), network.figures()
    stop(client)
    unreachable = network.figure("rtsp_server_unreachable")
    network.client.run(["timeout", "20", *ffmpeg(SERVER4, 1)], check=False)
    assert network.figure("rtsp_server_unreachable") == unreachable + 1
    network.serve()
    outside, inside, _ = play(network, ffmpeg(SERVER4, 3))
    check_secret_and_whole(outside, inside, least=30)


def test_no_key_is_told(network):
    with Capture(network.client, "eth0") as outside:
        client = network.client.spawn(ffmpeg(SERVER4, 60))
        assert wait_until(lambda: network.figure("rtsp_media") == 2, 20)
        listed = network.gateway.get("/api/v1/srtp")
        told = [listed, network.gateway.log(), network.gateway.get("/api/v1/config"), network.gateway.get("/api/v1/stats"),
                network.gateway.get("/metrics"), network.gateway.control("srtp", "list")]
        stop(client)
    rows = [row for row in json.loads(listed)["streams"] if row["action"] != "ended"]
    assert [row["origin"] for row in rows] == ["rtsp"] * 6, "of each medium RTP and RTCP to the client, and the client's RTCP"
    for key in offered_keys(outside.tcp_text()):
        assert not any(base64.b64encode(key).decode()[:12] in one for one in told)


def test_ipv6(network):
    stop(network.film)
    network.serve(SERVER6)
    before = ended(network.figures())
    with Capture(network.client, "eth0") as outside:
        output = network.client.run(["timeout", "40", *ffmpeg(f"[{SERVER6}]", 3)])
        assert output == ""
    assert wait_until(lambda: ended(network.figures()) == before + 2, 10), network.figures()
    assert any(source == (SERVER6) for (source, _), _, _ in outside.udp())
    stop(network.film)
    network.serve()


def test_a_client_that_vanishes_times_out(tmp_path):
    """No FIN, no RST, no RTCP: its link is cut."""
    with film(tmp_path) as network:
        network.start()
        network.serve()
        network.client.spawn(ffmpeg(SERVER4, 300))
        assert wait_until(lambda: network.figure("rtsp_media") == 2, 20)
        network.client.ip("link set eth0 down")
        assert wait_until(lambda: network.figure("rtsp_media") == 0, 100), network.figures()
        figures = network.figures()
        assert figures["rtsp_closed_timeout"] + figures["rtsp_closed_client_gone"] == 2
        assert figures["srtp_streams"] == 0


def test_admission_and_policies(tmp_path):
    with film(tmp_path, "max_rate = 1_000", "default_rate = 2_000") as network:
        network.start()
        network.serve()
        assert "453" in network.client.run(["timeout", "20", *ffmpeg(SERVER4, 3)], check=False)
        figures = network.figures()
        assert figures["rtsp_refused_not_admitted"] >= 1 and figures["rtsp_opened"] == 0


def test_nothing_is_left_behind(tmp_path):
    with film(tmp_path) as network:
        network.start()
        network.serve()
        assert "lookup 1554" in network.router.ip("rule") and "lookup 1554" in network.router.ip("-6 rule")
        network.client.spawn(ffmpeg(SERVER4, 60))
        assert wait_until(lambda: network.figure("rtsp_media") == 2, 20)
        with Capture(network.server, "eth0") as inside:
            network.gateway.interrupt()
        network.gateway = None
        assert b"TEARDOWN rtsp://" in inside.tcp_text(), "the server is told that its client has gone"
        assert "lookup 1554" not in network.router.ip("rule") and "lookup 1554" not in network.router.ip("-6 rule")
        assert "local" not in network.router.run("ip route show table 1554", check=False)


def test_what_a_killed_gateway_left_is_taken_over(tmp_path):
    with film(tmp_path) as network:
        network.start()
        rules = network.router.ip("rule").count("lookup 1554")
        network.gateway.kill()
        assert network.router.ip("rule").count("lookup 1554") == rules
        network.start()
        network.serve()
        assert network.router.ip("rule").count("lookup 1554") == rules
        outside, inside, _ = play(network, ffmpeg(SERVER4, 3))
        check_secret_and_whole(outside, inside, least=30)


def test_clear_clients_are_refused_by_policy(tmp_path):
    """accept_plain_profile = false: ffmpeg is refused, rtspsrc plays; clear RTCP is dropped by name."""
    with film(tmp_path, "accept_clear_rtcp = false") as network:
        network.start()
        network.serve()
        network.client.run(["timeout", "40", *ffmpeg(SERVER4, 3)])
        assert network.gateway.drops().get("srtp_clear_rtcp", 0) > 0
        assert network.figure("srtp_clear_rtcp_passed") == 0
