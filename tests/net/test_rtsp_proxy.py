"""[srtp.rtsp] between real peers: GStreamer's RTSP server in clear behind it, ffmpeg and rtspsrc before it, all unmodified."""

import base64
import ctypes
import json
import os
import pathlib
import socket
import struct
import threading
import time

import pytest

from capture import Capture
from film import PORT, check_secret_and_whole, ffmpeg, film, offered_keys, play, rtspsrc
from hosts import stop, wait_until
from rtsp_client import Player
from rtsp_peers import FILM, why_not
from srtp_peer import Peer, rtp
from topology import CLIENT4, SERVER4, SERVER6

_reason = why_not()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

TCP_REPAIR, SO_ATTACH_FILTER = 19, 26  # of Linux; a socket that is closed while it is repaired sends nothing
FILM_RATE = 2_500_000  # capacity for one: b=AS:2048 of the pictures, and the sound


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    with film(tmp_path_factory.mktemp("rtsp-proxy")) as topology:
        topology.start()
        topology.serve()
        yield topology


def test_ffmpeg_plays_through(network):
    before = network.metrics()
    outside, inside, output = play(network, ffmpeg(SERVER4, 6))
    assert output == "", "ffmpeg has nothing to complain about"
    check_secret_and_whole(outside, inside)
    after = network.metrics()
    assert after["rtsp_opened"] == before["rtsp_opened"] + 2
    assert after["rtsp_closed_teardown"] == before["rtsp_closed_teardown"] + 2
    assert after["srtp_streams"] == 0 and after["rtsp_media"] == 0
    # Its own RTCP is in clear, and taken so.
    assert after["srtp_clear_rtcp_passed"] > before["srtp_clear_rtcp_passed"]
    # Addresses are the same on both sides.
    for capture in (outside, inside):
        assert {CLIENT4, SERVER4} >= {end[0] for one in capture.udp() for end in one[:2] if end[1] > 1024}


def test_rtspsrc_plays_through(network):
    before = network.metrics()
    outside, inside, output = play(network, rtspsrc(SERVER4))
    check_secret_and_whole(outside, inside)
    after = network.metrics()
    assert after["srtp_unprotected_rtcp"] > before["srtp_unprotected_rtcp"], "its RTCP is SRTCP"
    assert after["rtsp_closed_teardown"] == before["rtsp_closed_teardown"] + 2, output


@pytest.mark.parametrize("scheme", ("basic", "digest"))
@pytest.mark.parametrize("player", (ffmpeg, rtspsrc))
def test_a_server_that_wants_a_password(network, scheme, player):
    stop(network.film)
    network.serve(SERVER4, scheme)
    try:
        command = ["timeout", "20", *ffmpeg(f"watcher:wrong@{SERVER4}", 1)]
        assert "401" in network.client.run(command, check=False)
        outside, inside, _ = play(network, player(f"watcher:hush@{SERVER4}", *((6,) if player is ffmpeg else ())))
        check_secret_and_whole(outside, inside)
        for link in (outside, inside):
            text = link.tcp_text()
            assert f"www-authenticate: {scheme}".encode() in text.lower(), "asked for"
            assert f"authorization: {scheme}".encode() in text.lower(), "and given"
        if scheme == "digest":
            assert not outside.has(b"hush")
        assert "hush" not in network.gateway.log()
    finally:
        stop(network.film)
        network.serve()


def test_interleaving_is_refused(network):
    command = ["timeout", "20", "ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "tcp", "-i", FILM.format(SERVER4),
               "-f", "null", "-"]
    assert "461" in network.client.run(command, check=False)
    assert network.metric("rtsp_refused_interleaved") >= 1


def lost(network):
    """Without a TEARDOWN; the kernel makes a reset of what the client has not read."""
    metrics = network.metrics()
    return metrics["rtsp_closed_client_closed"] + metrics["rtsp_closed_client_gone"]


def test_a_client_that_is_killed_leaves_nothing(network):
    before = lost(network)
    with Capture(network.client, "eth0") as outside:
        client = network.client.spawn(ffmpeg(SERVER4, 60))
        assert wait_until(lambda: network.metric("srtp_protected_rtp") > 0 and network.metric("rtsp_media") == 2, 20)
        time.sleep(1)
        stop(client)
        assert wait_until(lambda: lost(network) == before + 2, 10), network.metrics()
        assert network.metric("srtp_streams") == 0
        time.sleep(1)
    keys = offered_keys(outside.tcp_text())
    sealed, _ = outside.media(SERVER4)
    for (ssrc, _), packet in sealed.items():
        # Each opens with one of the keys: what the server sent after the end did not come in clear.
        assert any(Peer(key, inbound=True).unprotect(packet) for key in keys), ssrc.hex()


def test_a_server_that_restarts(network):
    client = network.client.spawn(ffmpeg(SERVER4, 60))
    assert wait_until(lambda: network.metric("rtsp_media") == 2, 20)
    before = network.metric("rtsp_closed_server_gone")
    stop(network.film)
    assert wait_until(lambda: network.metric("rtsp_closed_server_gone") == before + 2, 10), network.metrics()
    stop(client)
    unreachable = network.metric("rtsp_server_unreachable")
    network.client.run(["timeout", "20", *ffmpeg(SERVER4, 1)], check=False)
    assert network.metric("rtsp_server_unreachable") == unreachable + 1
    network.serve()
    outside, inside, _ = play(network, ffmpeg(SERVER4, 3))
    check_secret_and_whole(outside, inside, least=30)


def test_no_key_is_reported(network):
    with Capture(network.client, "eth0") as outside:
        client = network.client.spawn(ffmpeg(SERVER4, 60))
        assert wait_until(lambda: network.metric("rtsp_media") == 2, 20)
        listed = network.gateway.get("/api/v1/srtp")
        reported = [listed, network.gateway.log(), network.gateway.get("/api/v1/config"), network.gateway.get("/api/v1/stats"),
                network.gateway.get("/metrics"), network.gateway.control("srtp", "list")]
        stop(client)
    rows = [row for row in json.loads(listed)["streams"] if row["action"] != "ended"]
    assert [row["origin"] for row in rows] == ["rtsp"] * 6, "of each medium RTP and RTCP to the client, and the client's RTCP"
    assert all(row["ingress"] == {CLIENT4: "lan", SERVER4: "wan"}[row["stream"].partition(":")[0]] for row in rows), rows
    for key in offered_keys(outside.tcp_text()):
        assert not any(base64.b64encode(key).decode()[:12] in one for one in reported)


def stack_of(pid, thread):
    """What is on the stack of a process' thread, which sleeps; as far as memory is mapped."""
    task, = (one for one in pathlib.Path(f"/proc/{pid}/task").iterdir() if (one / "comm").read_text().strip() == thread)
    pointer = int((task / "syscall").read_text().split()[-2], 16)
    for line in (task / "maps").read_text().splitlines():
        first, last = (int(one, 16) for one in line.split()[0].split("-"))
        if first <= pointer < last:
            with open(f"/proc/{pid}/mem", "rb") as memory:
                memory.seek(first)
                return memory.read(last - first)
    raise AssertionError(f"the stack of {thread} is nowhere")


def test_no_key_of_a_client_stays_behind(network):
    """A SETUP has the key of the client's RTCP in it: it is read into memory that is wiped. (Further back than an answer reaches.)"""
    key = base64.b64encode(os.urandom(90))
    with Player(network, SERVER4, 40000) as player:
        player.ask(player.request("OPTIONS", Accept="x" * 1000, KeyMgmt=f'prot=mikey; uri=""; data="{key.decode()}"'))
        time.sleep(0.2)
        stack = stack_of(network.gateway.process.pid, "sluice-rtsp")
        assert len(stack) > 16384
        assert not any(key[at:at + 16] in stack for at in range(0, len(key) - 16, 4))


def test_forged_media_of_the_clients_side_take_no_stream(network):
    """Somebody on the client's side is before the server: what is protected for the client is the server's all the same."""
    with Player(network, SERVER4, 40000) as player:
        player.learn(player.ask(player.request("DESCRIBE", Accept="application/sdp"))[0])
        for track in (0, 1):
            player.set_up(track)
        before = network.gateway.drops().get("srtp_wrong_port", 0)
        for row in json.loads(network.gateway.get("/api/v1/srtp"))["streams"]:
            if row["action"] != "protect":
                continue
            ends = [(address, int(port)) for address, _, port in (end.partition(":") for end in row["stream"].split(" -> "))]
            network.forge(network.client, "sl-lan", rtp(1, bytes(100)), *ends)
        assert wait_until(lambda: network.gateway.drops().get("srtp_wrong_port", 0) == before + 4)
        assert player.ask(player.request("PLAY", player.base))[0].status == 200
        for track in (0, 1):
            player.packets(track, 20)


def test_ipv6(network):
    stop(network.film)
    network.serve(SERVER6)
    before = network.metric("rtsp_closed_teardown")
    with Capture(network.client, "eth0") as outside:
        output = network.client.run(["timeout", "40", *ffmpeg(f"[{SERVER6}]", 3)])
        assert output == ""
    assert wait_until(lambda: network.metric("rtsp_closed_teardown") == before + 2, 10), network.metrics()
    assert any(source == (SERVER6) for (source, _), _, _ in outside.udp())
    stop(network.film)
    network.serve()


def test_a_client_that_vanishes_times_out(tmp_path):
    """No FIN, no RST, no RTCP: its link is cut. What it had is free again: with its link it plays anew, at the same ports."""
    with film(tmp_path, f"max_rate = {FILM_RATE}", "default_rate = 100_000") as network:
        network.start()
        network.serve()
        with Player(network, SERVER4, 40000) as player:
            player.play()
            network.client.ip("link set eth0 down")
        assert wait_until(lambda: network.metric("rtsp_media") == 0, 100), network.metrics()
        metrics = network.metrics()
        assert metrics["rtsp_closed_timeout"] + metrics["rtsp_closed_client_gone"] == 2
        assert metrics["srtp_streams"] == 0
        assert wait_until(lambda: network.metric("srtp_ended_streams") == 0, 45), "the server has stopped"
        network.client.ip("link set eth0 up")
        network.client.ip("route replace default via 10.1.0.1")
        with Player(network, SERVER4, 40000) as player:
            assert len(player.play().packets(0, 20)) == 20, "there is capacity for one film, and it is free"
            with Player(network, SERVER4, 41000) as second:
                second.learn(second.ask(second.request("DESCRIBE", Accept="application/sdp"))[0])
                answer, = second.ask(second.request("SETUP", second.controls[0], Transport="RTP/SAVP;unicast;client_port=41000-41001"))
                assert answer.status == 453
            assert player.ask(player.request("TEARDOWN", player.base))[0].status == 200
        assert network.metric("rtsp_opened") == 4


class OnePair:
    """A server that sends all media from one pair of ports, as cameras do: a client's 5-tuples are those of its last session."""

    SDP = b"v=0\r\nm=audio 0 RTP/AVP 8\r\nb=AS:64\r\na=control:t1\r\n"

    def __init__(self, network):
        self.listener = network.server.inside(socket.create_server, (SERVER4, PORT))
        self.torn_down = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        try:
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()
        except OSError:
            pass

    def _serve(self, connection):
        session = str(connection.fileno())
        with connection, connection.makefile("rwb") as lines:
            while request := lines.readline():
                headers = dict(line.decode().strip().split(": ", 1) for line in iter(lines.readline, b"\r\n"))
                answer = ["RTSP/1.0 200 OK", f"CSeq: {headers['CSeq']}"]
                body = b""
                if request.startswith(b"DESCRIBE"):
                    body = self.SDP
                    answer += ["Content-Type: application/sdp", f"Content-Length: {len(body)}"]
                elif request.startswith(b"SETUP"):
                    answer += [f"Session: {session}", f"Transport: {headers['Transport']};server_port=6970-6971"]
                elif request.startswith(b"TEARDOWN"):
                    self.torn_down.append(headers["Session"])
                lines.write("\r\n".join(answer).encode() + b"\r\n\r\n" + body)
                lines.flush()


def set_up_at(player, port):
    player.ask(player.request("DESCRIBE", Accept="application/sdp"))
    return player.ask(player.request("SETUP", player.url + "/t1", Transport=f"RTP/SAVP;unicast;client_port={port}-{port + 1}"))[0]


def vanish(player, host_is_back):
    """No FIN and no RST; a host that is up again answers for a connection that it does not know with an RST."""
    if host_is_back:
        player.connection.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
        player.connection.close()
    else:
        nothing = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0))
        player.connection.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HxxxxxxQ", 1, ctypes.addressof(nothing)))


@pytest.mark.parametrize("host_is_back", (True, False))
def test_a_client_that_vanished_comes_back_at_its_ports(tmp_path, host_is_back):
    """Within seconds, where its session would last for a minute yet; and one that is still there keeps what it has."""
    with film(tmp_path) as network:
        network.start()
        server = OnePair(network)
        with Player(network, SERVER4, 40000) as first:
            assert set_up_at(first, 42000).status == 200
            with Player(network, SERVER4, 41000) as other:
                answer = set_up_at(other, 42000)
                assert answer.status == 503 and answer.headers["retry-after"] == "5"
                time.sleep(5)
                assert set_up_at(other, 42000).status == 503, "the first one is there"
            assert first.ask(first.request("OPTIONS"))[0].status == 200
            assert network.metric("rtsp_refused_ports_in_use") == 2 and network.metric("rtsp_media") == 1
            vanish(first, host_is_back)
            begin = time.monotonic()
            with Player(network, SERVER4, 44000) as again:
                tries = 1
                while set_up_at(again, 42000).status == 503 and tries < 20:
                    time.sleep(0.5)
                    tries += 1
                assert time.monotonic() - begin < 8, network.metrics()
                assert wait_until(lambda: network.metric("rtsp_media") == 1, 5), network.metrics()
                assert network.metric("rtsp_closed_client_gone") == 1
                assert wait_until(lambda: len(server.torn_down) >= 3, 5), "those that were refused, and the one that has vanished"


def test_a_server_that_does_not_answer_keeps_no_rate(tmp_path):
    """It describes a film, and says nothing to its SETUP: 504, and there is capacity again for what only one has capacity for."""
    with film(tmp_path, "max_rate = 64_000", 'answer_timeout = "2s"') as network:
        network.start()
        description = b"v=0\r\nm=audio 0 RTP/AVP 8\r\nb=AS:64\r\na=control:t1\r\n"
        with network.server.inside(socket.create_server, (SERVER4, PORT)) as listener:
            for first_port in (40000, 41000):
                with Player(network, SERVER4, first_port) as player, listener.accept()[0] as server:
                    player.connection.sendall(player.request("DESCRIBE"))
                    assert server.recv(4096).startswith(b"DESCRIBE ")
                    server.sendall(b"RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Type: application/sdp\r\nContent-Length: %d\r\n\r\n%s"
                                   % (len(description), description))
                    assert b"RTP/SAVP" in player.answer().body
                    answer, = player.ask(player.request("SETUP", player.url + "/t1",
                                                        Transport=f"RTP/SAVP;unicast;client_port={first_port}-{first_port + 1}"))
                    assert answer.status == 504
        metrics = network.metrics()
        assert metrics["rtsp_refused_unanswered"] == metrics["rtsp_closed_unanswered"] == 2, metrics
        assert metrics["rtsp_refused_not_admitted"] == metrics["rtsp_media"] == 0
        assert wait_until(lambda: network.metric("rtsp_connections") == 0, 10), network.metrics()


def test_admission_and_policies(tmp_path):
    with film(tmp_path, "max_rate = 1_000", "default_rate = 500") as network:
        network.start()
        network.serve()
        assert "453" in network.client.run(["timeout", "20", *ffmpeg(SERVER4, 3)], check=False)
        metrics = network.metrics()
        assert metrics["rtsp_refused_not_admitted"] >= 1 and metrics["rtsp_opened"] == 0


def test_nothing_is_left_behind(tmp_path):
    with film(tmp_path) as network:
        network.start()
        network.serve()
        assert "lookup 1554" in network.router.ip("rule") and "lookup 1554" in network.router.ip("-6 rule")
        network.client.spawn(ffmpeg(SERVER4, 60))
        assert wait_until(lambda: network.metric("rtsp_media") == 2, 20)
        with Capture(network.server, "eth0") as inside:
            said = network.gateway.interrupt()
        network.gateway = None
        assert said.count("the gateway has ended the connection (stopped)") == 2, said
        assert b"TEARDOWN rtsp://" in inside.tcp_text(), "the server is notified that its client has gone"
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
        assert network.metric("srtp_clear_rtcp_passed") == 0
