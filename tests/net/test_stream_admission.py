"""[profile] and media that come and go: streams of the API and of RTSP have to fit, and are held to what they were admitted with."""

import base64
import json
import os
import re
import socket
import subprocess
import time

import pytest

from capture import Capture
from film import AUDIO, PORT, VIDEO, ffmpeg, film, opened, play, settings
from gateway import SLUICE, config
from hosts import wait_until
from rtsp_peers import why_not
from srtp_peer import rtp
from topology import CLIENT4, PORTS, SERVER4

_reason = why_not()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

CAPACITY = 4_000_000
DEFAULT_RATE = 100_000  # of the sound, whose description has no b=
OVERHEAD = 14 + 20 + 8  # of a frame of RTP over IPv4


def profile(folder):
    """A [profile] as calibrate measures it for this gateway on this machine, which refuses those of others; but of that capacity."""
    plain, path = folder / "plain.toml", folder / "profile.toml"
    plain.write_text(config(PORTS, srtp=settings(f"default_rate = {DEFAULT_RATE}"), engine=('device = "cpu"',)), encoding="utf-8")
    subprocess.run([SLUICE, "calibrate", plain, "--seconds", "0.1", "--hold", "0", "--out", path], check=True, timeout=300)
    measured = path.read_text(encoding="utf-8")
    path.write_text(re.sub(r"(?m)^rate = \d+$", f"rate = {CAPACITY}", measured), encoding="utf-8")
    return f'\n[profile]\nfile = "{path}"\n'


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    folder = tmp_path_factory.mktemp("admission")
    with film(folder, f"default_rate = {DEFAULT_RATE}", "measured = true", 'measure_time = "1s"', sections=profile(folder)) as topology:
        topology.start()
        topology.serve()
        yield topology


def stream(port, *more):
    return "\n".join([f'source = "{CLIENT4}"', f"source_port = {port}", f'destination = "{SERVER4}"', f"destination_port = {port}",
                      *more]) + "\n"


def protected(port, *more):
    return stream(port, 'action = "protect"', f'crypto = "1 AES_CM_128_HMAC_SHA1_80 inline:{base64.b64encode(os.urandom(30)).decode()}"',
                  *more)


def control(network, action, text):
    path = network.folder / "stream.toml"
    path.write_text(text, encoding="utf-8")
    return network.gateway.control("srtp", action, path, check=False)


def test_streams_of_the_api_have_to_fit(network):
    for text, why in ((protected(7000), "its rate is not known"),
                      (protected(7000, f"rate = {CAPACITY + 1}"), "exceed the 4 Mbit/s that the device carries in time"),
                      (protected(7000, "rate = 1", 'deadline = "1us"'), "a deadline of 1us is not above the bound")):
        answer = control(network, "add", text)
        assert f"the stream {CLIENT4}:7000 -> {SERVER4}:7000 is not admitted" in answer and why in answer
    assert network.metric("streams_refused") == 3 and network.metric("srtp_streams") == 0
    assert "is in force" in control(network, "add", protected(7000, f"rate = {CAPACITY - 1000}"))
    assert network.metric("streams_rate_bits") == CAPACITY - 1000
    assert "is not admitted" in control(network, "add", protected(7001, "rate = 1001"))
    assert "is in force" in control(network, "add", protected(7001, "rate = 1000"))
    for port in (7000, 7001):
        assert "is gone" in control(network, "remove", stream(port))
    assert network.metric("streams_rate_bits") == 0 and network.metric("streams_admitted") == 0


def test_a_stream_that_is_measured_gives_way_to_another(network):
    """Nobody knows what it will bring, so it is given nearly everything; it brings a tenth of that."""
    given = CAPACITY - 500_000
    assert "is in force" in control(network, "add", protected(7000, f"rate = {given}", f"burst = {given // 8}", "measured = true",
                                                              'measure_time = "1s"'))
    assert "is not admitted" in control(network, "add", protected(7001, "rate = 2_000_000"))
    assert wait_until(lambda: network.metric("srtp_measuring_streams") == 1, 5), network.metrics()

    def send(port, frames, size=1000):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            one.bind(("", port))
            for sequence in range(frames):
                one.sendto(rtp(sequence, bytes(size)), (SERVER4, port))
                time.sleep(0.02)

    network.client.inside(send, 7000, 150)
    assert wait_until(lambda: network.metric("srtp_measuring_streams") == 0, 5), network.metrics()
    held = network.metric("streams_rate_bits")
    row = next(row for row in json.loads(network.gateway.control("srtp", "list", "--json"))["streams"] if ":7000 " in row["stream"])
    assert 50_000 < held < 2_000_000 and (row["rate"], row["measured"]) == (held, "yes")
    assert "is in force" in control(network, "add", protected(7001, "rate = 2_000_000"))
    for port in (7000, 7001):
        assert "is gone" in control(network, "remove", stream(port))
    assert network.metric("streams_rate_bits") == 0 and network.metric("streams_admitted") == 0


def test_a_stream_that_brings_too_much_suffers_alone(network):
    """Two streams send as much; one has capacity for two frames and no more."""
    count, size = 50, 1000
    for port, more in ((7000, ("rate = 1", f"burst = {2 * 1514}")), (7001, ("rate = 1_000_000", "burst = 100_000"))):
        assert "is in force" in control(network, "add", protected(port, *more))
    policed = network.gateway.drops().get("srtp_policed", 0)

    def bound(port):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        one.bind(("", port))
        one.settimeout(1)
        return one

    arrived = {}
    for port in (7000, 7001):
        with network.client.inside(bound, port) as sender, network.server.inside(bound, port) as receiver:
            for sequence in range(count):
                sender.sendto(rtp(sequence, bytes(size)), (SERVER4, port))
            try:
                for arrived[port] in range(count):
                    receiver.recv(2048)
                arrived[port] += 1
            except TimeoutError:
                pass
    assert arrived == {7000: 2 * 1514 // (size + 12 + OVERHEAD), 7001: count}
    assert network.gateway.drops()["srtp_policed"] == policed + count - arrived[7000]
    for port in (7000, 7001):
        control(network, "remove", stream(port))


def test_a_film_that_fits_is_whole_and_a_second_one_is_refused(network):
    """A medium counts with its rate and a quarter, and a twentieth of that each way for RTCP; nothing of it exceeds that."""
    policed = network.gateway.drops().get("srtp_policed", 0)
    refused = network.metric("rtsp_refused_not_admitted")
    with Capture(network.client, "eth0") as outside, Capture(network.server, "eth0") as inside:
        client = network.client.spawn(ffmpeg(SERVER4, 6), stdout=subprocess.PIPE, text=True)
        assert wait_until(lambda: network.metric("rtsp_media") == 2, 20), network.metrics()
        metrics = network.metrics()
        second = network.client.run(["timeout", "20", *ffmpeg(SERVER4, 3)], check=False)
        measured = wait_until(lambda: network.metric("streams_rate_bits") < metrics["streams_rate_bits"], 5)
        held = network.metrics()
        output, _ = client.communicate(timeout=60)
        assert wait_until(lambda: network.metric("rtsp_connections") == 0, 15), network.metrics()
    video = int(re.search(rb"b=AS:(\d+)", outside.tcp_text())[1]) * 1000
    assert metrics["streams_rate_bits"] == sum(rate + 2 * (rate // 20) for rate in (video * 5 // 4, DEFAULT_RATE * 5 // 4))
    assert metrics["streams_admitted"] == 2 and metrics["streams_rate_bits"] <= CAPACITY
    # The sound brings less than it was given.
    assert measured and held["streams_admitted"] == 2, (metrics, held)
    assert metrics["streams_rate_bits"] - held["streams_rate_bits"] < DEFAULT_RATE * 5 // 4 * 11 // 10, (metrics, held)
    said = re.search(r"info +rtsp: \S+ to \S+: the proxy answers 453 not_admitted.*: [\d.]+ \w+/s beside the [\d.]+ \w+/s that are taken exceed the 4 Mbit/s",
                     network.gateway.log())
    assert said, network.gateway.log()
    assert "plays the video of" in network.gateway.log() and "no longer plays the video of" in network.gateway.log()
    assert "453" in second and network.metric("rtsp_refused_not_admitted") > refused
    assert output == "" and network.gateway.drops().get("srtp_policed", 0) == policed
    assert network.metric("streams_rate_bits") == 0 and network.metric("streams_admitted") == 0
    assert len(inside.media(SERVER4)[0]) > 500


def test_a_medium_of_rtsps_that_brings_too_much_suffers_alone(tmp_path):
    """max_rate admits, too: the sound is said to need 8 kbit/s, and brings ten times that; the pictures lack nothing."""
    with film(tmp_path, "max_rate = 10_000_000", "default_rate = 8_000", "rate_margin = 0", 'burst_time = "100ms"',
              "max_connections_per_client = 2") as network:
        network.start()
        network.serve()
        outside, inside, _ = play(network, ffmpeg(SERVER4, 5))
        counts = opened(outside, inside)
        kinds = {ssrc: packet[1] & 0x7f for (ssrc, _), packet in inside.media(SERVER4)[0].items()}
        by_kind = {kinds[ssrc]: count for ssrc, count in counts.items()}
        drops = network.gateway.drops()
        policed, after_the_end = drops["srtp_policed"], drops.get("srtp_ended", 0)  # sent when the player had gone
        sent, received = by_kind[VIDEO]
        assert sent - after_the_end <= received <= sent and received > 400, (by_kind, drops)
        sent, received = by_kind[AUDIO]
        assert network.metric("rtsp_max_rate_bits") == 10_000_000 and network.metric("rtsp_rate_bits") == 0
        assert 0 < received < sent / 3 and policed <= sent - received <= policed + after_the_end, (by_kind, drops)
        one_client_may_not_have_all(network)


def one_client_may_not_have_all(network):
    """A third connection of the same address is closed at once; one that ends gives its place back."""
    def connect():
        one = socket.create_connection((SERVER4, PORT), timeout=5)
        one.settimeout(1)
        return one

    def is_closed(one):
        try:
            return one.recv(1) == b""
        except ConnectionError:
            return True
        except TimeoutError:
            return False

    first, second, third = (network.client.inside(connect) for _ in range(3))
    assert [is_closed(one) for one in (first, second, third)] == [False, False, True]
    assert network.metric("rtsp_too_many_of_client") == 1 and "has max_connections_per_client = 2" in network.gateway.log()
    second.close()
    assert wait_until(lambda: network.metric("rtsp_connections") == 1, 10), network.metrics()
    with network.client.inside(connect) as fourth:
        assert not is_closed(fourth)
    first.close()
    third.close()
