"""[srtp.rtsp] where links, clients and requests are not as they should be; the server is GStreamer's, in clear.

The links lose, repeat and reorder by lossy.py, for not every kernel has netem.
"""

import socket
import struct
import time

import pytest

from capture import Capture
from film import check_as_sent, check_secret_and_whole, ffmpeg_copies, film, in_clear, opened, play
from hosts import stop, wait_until
from rtsp_client import Player
from rtsp_peers import why_not
from topology import SERVER4, SERVER6

_reason = why_not()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

EACH = 20  # packets of each track
LOSSY = (0.02, 0.02, 0.02)


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    with film(tmp_path_factory.mktemp("rtsp-links")) as topology:
        topology.start()
        topology.serve()
        yield topology


def single_octets(connection, octets):
    for octet in octets:
        connection.sendall(bytes([octet]))


def over(network, before):
    """The two media of a session, and all that they had, are gone."""
    assert wait_until(lambda: network.metric("rtsp_closed_teardown") == before["rtsp_closed_teardown"] + 2), network.metrics()
    after = network.metrics()
    assert after["rtsp_opened"] == before["rtsp_opened"] + 2
    assert after["srtp_streams"] == 0 and after["rtsp_media"] == 0
    return after


@pytest.mark.parametrize("server", [SERVER4, SERVER6])
@pytest.mark.parametrize("write", [socket.socket.sendall, single_octets])
def test_two_tracks_under_one_session(network, server, write):
    """Aggregate control, in whole requests and octet by octet; TEARDOWN ends both tracks, and nothing more comes."""
    stop(network.film)
    network.serve(server)
    before = network.metrics()
    with Player(network, server, 40000, write) as player:
        player.play()
        kinds = [{packet[1] & 0x7f for packet in player.packets(track, EACH)} for track in (0, 1)]
        assert kinds == [{96}, {8}], "video and audio, each at its ports"
        assert player.ask(player.request("TEARDOWN", player.base))[0].status == 200
        over(network, before)
        assert player.silent(1)
    assert wait_until(lambda: network.metric("rtsp_connections") == 0)


def test_many_requests_at_once(network):
    """Answers come in the order of the requests, the proxy's own among them."""
    stop(network.film)
    network.serve()
    before = network.metrics()
    with Player(network, SERVER4, 40000) as player:
        asked = [player.request("OPTIONS") for _ in range(5)]
        asked += [player.request("RECORD"), player.request("DESCRIBE", Accept="application/sdp"), player.request("OPTIONS")]
        answers = player.ask(*asked)
        assert [answer.status for answer in answers] == [200] * 5 + [501, 200, 200], "RECORD is the proxy's to refuse"
        player.learn(answers[6])
        for track in (0, 1):
            player.set_up(track)
        answers = player.ask(player.request("PLAY", player.base), player.request("GET_PARAMETER", player.base),
                             player.request("TEARDOWN", player.base), player.request("OPTIONS"))
        assert [answer.status for answer in answers] == [200, 200, 200, 454], "at the last one there is no session any more"
        over(network, before)
    assert wait_until(lambda: network.metric("rtsp_refused_method") == before["rtsp_refused_method"] + 1), network.metrics()


def test_a_key_serves_one_setup(network):
    """Who wants a track again describes it again: on a second connection all of it is there once more."""
    with Player(network, SERVER4, 40000) as player:
        player.play()
        port = player.ports[0]
        answer, = player.ask(player.request("SETUP", player.controls[0], Transport=f"RTP/SAVP;unicast;client_port={port}-{port + 1}"))
        assert answer.status == 455
        first = player.keys
    assert wait_until(lambda: network.metric("rtsp_media") == 0)
    with Player(network, SERVER4, 40000) as player:
        player.play()
        assert set(player.keys.values()).isdisjoint(first.values())
        assert len(player.packets(0, EACH)) == EACH


def test_lossy_links_that_reorder(tmp_path):
    """Whatever the links do, what reaches the client is what the server sent, once each; what is missing was lost by the links."""
    with film(tmp_path, lossy=LOSSY) as network:
        network.start()
        network.serve()
        outside, inside, _ = play(network, ffmpeg_copies(SERVER4, 8, tmp_path / "film.h264", tmp_path / "film.alaw"), check=False)
        counts = opened(outside, inside)
        sent, received = (sum(column) for column in zip(*counts.values()))
        assert len(counts) == 2 and sent > 500, counts
        assert 0.85 * sent < received < sent, counts
        metrics, drops = network.metrics(), network.gateway.drops()
        assert received <= metrics["srtp_protected_rtp"] <= sent
        assert drops.get("srtp_replayed", 0) > 0, "frames that a cable repeated were sealed once"
        assert not {"srtp_auth_failed", "srtp_malformed", "srtp_bad_checksum"} & {reason for reason, count in drops.items() if count}
        assert in_clear(outside, inside)[0] == 0
        sequences = [packet[2:4] for _, _, packet in outside.udp() if len(packet) > 12 and packet[1] & 0x7f == 96]
        steps = [struct.unpack("!h", struct.pack("!H", (int.from_bytes(b) - int.from_bytes(a)) & 0xffff))[0]
                 for a, b in zip(sequences, sequences[1:])]
        assert any(step < 0 for step in steps) and any(step > 1 for step in steps), "reordered, and with gaps"
        assert metrics["rtsp_opened"] == 2 and metrics["srtp_streams"] == 0
        assert network.gateway.stats()["conserved"]


def test_a_link_that_comes_back(network):
    """A second without a link: the film goes on, with the keys and the indexes that it had."""
    with Player(network, SERVER4, 40000) as player:
        player.play()
        assert len(player.packets(0, EACH)) == EACH
        with Capture(network.server, "eth0") as inside:
            network.client.ip("link set eth0 down")
            time.sleep(1)
            network.client.ip("link set eth0 up")
            network.client.ip("route replace default via 10.1.0.1")
        missed = len(inside.media(SERVER4)[0])
        assert missed > EACH, "the server went on"
        assert len(player.packets(0, 2 * EACH)) == 2 * EACH
        assert len(player.packets(1, EACH)) == EACH
        assert network.metric("rtsp_media") == 2


def test_what_a_client_writes_is_what_was_sent(network, tmp_path):
    outside, inside, output = play(network, ffmpeg_copies(SERVER4, 4, tmp_path / "film.h264", tmp_path / "film.alaw"))
    units, octets = check_as_sent(inside, (tmp_path / "film.h264").read_bytes(), (tmp_path / "film.alaw").read_bytes())
    assert units > 100 and octets > 20_000, output
    check_secret_and_whole(outside, inside)
    hidden, of = in_clear(outside, inside)
    assert hidden == 0 and of > 100
