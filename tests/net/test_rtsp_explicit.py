"""[srtp.rtsp] listen: clients open the proxy's own address. Real peers as in test_rtsp_proxy.py; neither side sees the other's."""

import socket
import struct
import time

import pytest

from hosts import stop, wait_until
from rtsp_peers import FILM, why_not
from capture import RTP_FIXED, Capture
from film import PORT, Film, ffmpeg, opened, play, play_all, rtspsrc
from topology import CLIENT4, CLIENT6, ROUTER_LAN4, ROUTER_LAN6, ROUTER_WAN4, ROUTER_WAN6, SERVER4, SERVER6

_reason = why_not()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

FIRST, LAST = 20000, 20015


def upstream(*more, address=SERVER4):
    return "\n".join(["[[srtp.rtsp.server]]", f'address = "{address}"', f"port = {PORT}", *more]) + "\n"


EVERYTHING = upstream() + upstream(address=SERVER6)


def explicit(folder, *more, servers=EVERYTHING, media_ports=f"{FIRST}-{LAST}"):
    lines = ["[srtp.rtsp]", f'listen = ["{ROUTER_LAN4}", "{ROUTER_LAN6}"]', f"ports = [{PORT}]", f'media_ports = "{media_ports}"',
             *more]
    return Film(folder, srtp="\n".join(lines) + "\n" + servers, engine=('device = "cpu"',))


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    with explicit(tmp_path_factory.mktemp("rtsp-explicit")) as topology:
        topology.start()
        topology.serve()
        yield topology


def missing_in_the_midst(clear, sealed):
    """What did not reach the client, but for what a server sends after the client has ended it, which is dropped as srtp_ended."""
    reached, missing = set(), []
    for ssrc, sequence in reversed(clear):
        if (ssrc, sequence) in sealed:
            reached.add(ssrc)
        elif ssrc in reached:
            missing.append((ssrc, sequence))
    return missing


def check_secret_and_whole(outside, inside, clients=1, least=60):
    """Of every client: what its link carried is what the server's did, protected, between other ends."""
    assert len(opened(outside, inside, sender=ROUTER_LAN4, clients=clients)) == 2 * clients
    clear, _ = inside.media(SERVER4)
    assert len(clear) >= least, f"{len(clear)} RTP packets of the server"
    missing = missing_in_the_midst(clear, outside.media(ROUTER_LAN4)[0])
    assert not missing, f"{len(missing)} of {len(clear)} packets did not reach a client"
    # Each side knows the proxy alone, in every packet of UDP and in what RTSP says.
    for capture, ends in ((outside, {CLIENT4, ROUTER_LAN4}), (inside, {SERVER4, ROUTER_WAN4})):
        seen = {address for source, destination, _ in capture.udp() for address, port in (source, destination) if port > 1024}
        assert seen == ends
    assert SERVER4.encode() not in outside.tcp_text() and ROUTER_LAN4.encode() not in inside.tcp_text()


def checksums_are_right(capture):
    """Of IPv4 and of UDP where there is one, as a host would look at them."""
    def total(data):
        data += b"\0" * (len(data) % 2)
        number = sum(struct.unpack(f"!{len(data) // 2}H", data))
        while number >> 16:
            number = (number & 0xffff) + (number >> 16)
        return number

    seen = 0
    for frame in capture.frames:
        if frame[12:14] != b"\x08\x00" or frame[23] != 17 or frame[26:30] != bytes(map(int, ROUTER_LAN4.split("."))):
            continue
        length, = struct.unpack_from("!H", frame, 38)
        assert total(frame[14:34]) == 0xffff
        if frame[40:42] != b"\0\0":
            assert total(frame[26:34] + struct.pack("!HH", 17, length) + frame[34:34 + length]) == 0xffff
            seen += 1
    return seen


def test_ffmpeg_plays(network):
    before = network.metrics()
    outside, inside, output = play(network, ffmpeg(ROUTER_LAN4, 6))
    assert output == "", "ffmpeg has nothing to complain about"
    check_secret_and_whole(outside, inside)
    assert checksums_are_right(outside) > 0
    after = network.metrics()
    assert after["rtsp_opened"] == before["rtsp_opened"] + 2 and after["rtsp_closed_teardown"] == before["rtsp_closed_teardown"] + 2
    assert after["srtp_clear_rtcp_passed"] > before["srtp_clear_rtcp_passed"]
    assert after["srtp_streams"] == 0


def test_rtspsrc_plays(network):
    before = network.metrics()
    outside, inside, _ = play(network, rtspsrc(ROUTER_LAN4), seconds=6)
    check_secret_and_whole(outside, inside)
    assert network.metric("srtp_unprotected_rtcp") > before["srtp_unprotected_rtcp"], "its RTCP is SRTCP"


def test_two_clients_at_once(network):
    outside, inside, _ = play_all(network, [ffmpeg(ROUTER_LAN4, 8), rtspsrc(ROUTER_LAN4)], seconds=5)
    check_secret_and_whole(outside, inside, clients=2)


def test_ipv6(network):
    stop(network.film)
    network.serve(SERVER6)
    try:
        with Capture(network.client, "eth0") as outside, Capture(network.server, "eth0") as inside:
            assert network.client.run(["timeout", "40", *ffmpeg(f"[{ROUTER_LAN6}]", 4)]) == ""
            time.sleep(0.3)
    finally:
        stop(network.film)
        network.serve()
    clear, _ = inside.media(SERVER6)
    sealed, _ = outside.media(ROUTER_LAN6)
    assert len(sealed) > 30 and set(sealed) <= set(clear) and not missing_in_the_midst(clear, sealed)
    assert not {packet[RTP_FIXED:] for packet in sealed.values()} & {packet[RTP_FIXED:] for packet in clear.values()}
    assert {one[0][0] for one in outside.udp() if one[0][1] >= 1024} <= {ROUTER_LAN6, CLIENT6}
    assert {one[0][0] for one in inside.udp() if one[0][1] >= 1024} <= {ROUTER_WAN6, SERVER6}


def test_a_neighbour_that_is_forgotten_is_found_again(network):
    """Then the kernel gets packets from its own address, and must forward them."""
    client = network.client.spawn(ffmpeg(ROUTER_LAN4, 60))
    assert wait_until(lambda: network.metric("rtsp_media") == 2, 20)
    time.sleep(2)
    network.router.ip(f"neigh del {CLIENT4} dev sl-lan")
    with Capture(network.client, "eth0") as outside:
        time.sleep(3)
    stop(client)
    assert len(outside.media(ROUTER_LAN4)[0]) > 100
    assert wait_until(lambda: network.metric("rtsp_media") == 0, 10)


def test_a_server_is_not_opened_past_the_proxy(network):
    """By a client that has a route to it, over UDP or interleaved: neither its RTSP nor its media come in clear."""
    before = network.gateway.drops()
    for transport in ("tcp", "udp"):
        with Capture(network.client, "eth0") as outside:
            network.client.run(["timeout", "4", "ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", transport,
                                "-i", FILM.format(SERVER4), "-t", "2", "-f", "null", "-"], check=False)
        assert not outside.has(b"RTP/AVP") and not outside.has(b"RTSP/1.0 200")
    with network.server.inside(socket.socket, socket.AF_INET, socket.SOCK_DGRAM) as media:
        media.bind((SERVER4, 5004))
        with Capture(network.client, "eth0") as outside:
            media.sendto(b"\x80in the clear", (CLIENT4, 6000))
            time.sleep(0.5)
        assert not outside.has(b"in the clear")
    after = network.gateway.drops()
    assert after["srtp_rtsp_past_proxy"] > before.get("srtp_rtsp_past_proxy", 0)
    assert after["srtp_unprotected"] == before.get("srtp_unprotected", 0) + 1
    # The host's own clients are no clients of the proxy's.
    check = f"import socket; print(socket.create_connection(('{SERVER4}', {PORT}), 5).getpeername())"
    assert SERVER4 in network.router.run(["python3", "-c", check])
    check_secret_and_whole(*play(network, ffmpeg(ROUTER_LAN4, 3))[:2], least=30)


def test_unmatched_packets_are_the_hosts(network):
    """UDP at a media port that no stream has goes to the kernel, which refuses it, and is counted."""
    before = network.metric("srtp_media_to_host")
    code = (f"import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.connect(('{ROUTER_LAN4}', {LAST})); s.settimeout(5)\n"
            "s.send(b'unmatched')\n"
            "try: s.recv(1)\n"
            "except ConnectionRefusedError: print('refused')")
    assert "refused" in network.client.run(["python3", "-c", code])
    assert network.metric("srtp_media_to_host") == before + 1


def test_ports_run_out_and_come_back(tmp_path):
    """Capacity for one client's two media."""
    with explicit(tmp_path, media_ports="20000-20003") as network:
        network.start()
        network.serve()
        first = network.client.spawn(ffmpeg(ROUTER_LAN4, 60))
        assert wait_until(lambda: network.metric("rtsp_media") == 2, 20)
        assert "503" in network.client.run(["timeout", "20", *ffmpeg(ROUTER_LAN4, 3)], check=False)
        assert network.metric("rtsp_refused_no_media_ports") >= 1
        assert "media_ports are in use" in network.gateway.log()
        stop(first)
        assert wait_until(lambda: network.metric("rtsp_media") == 0, 10)
        assert network.client.run(["timeout", "40", *ffmpeg(ROUTER_LAN4, 3)]) == ""


def test_nothing_is_left_behind(tmp_path):
    with explicit(tmp_path) as network:
        network.start()
        setting = "sysctl -n net.ipv4.conf.sl-lan.accept_local"
        assert network.router.run(setting).strip() == "1"
        assert "lookup 1554" not in network.router.ip("rule"), "the host's own addresses need none"


def test_servers_by_path(tmp_path):
    servers = upstream('path = "/elsewhere"', address="10.2.0.77") + upstream('path = "/film"')
    with explicit(tmp_path, f'servers = ["{SERVER6}/128"]', servers=servers + upstream(address=SERVER6)) as network:
        network.start()
        network.serve()
        assert network.client.run(["timeout", "40", *ffmpeg(ROUTER_LAN4, 3)]) == ""
        where = f"rtsp://{ROUTER_LAN4}:{PORT}/nowhere"
        assert "404" in network.client.run(["timeout", "20", "ffmpeg", "-nostdin", "-loglevel", "error", "-i", where, "-f", "null", "-"],
                                           check=False)
        assert network.metric("rtsp_no_server") == 1
        # The log has the URI, and no password of it.
        ask = f"OPTIONS rtsp://watcher:hush@{ROUTER_LAN4}/locked RTSP/1.0\\r\\nCSeq: 1\\r\\n\\r\\n"
        network.client.run(["bash", "-c", f"exec 3<>/dev/tcp/{ROUTER_LAN4}/{PORT}; printf '{ask}' >&3; timeout 5 cat <&3"])
        assert f"takes 'rtsp://{ROUTER_LAN4}/locked'" in network.gateway.log()
        assert "hush" not in network.gateway.log()
        # Beside it, of the other family, transparently.
        stop(network.film)
        network.serve(SERVER6)
        assert network.client.run(["timeout", "40", *ffmpeg(f"[{SERVER6}]", 3)]) == ""
