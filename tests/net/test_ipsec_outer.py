"""What happens to outer packets of IPsec on their way: fragments, and ICMP errors about them."""

import itertools
import json
import socket
import struct
import time

import pytest
from capture import Capture
from frames import checksum, packet4
from hosts import wait_until
from ipsec_tunnel import ENDS, FAR4, FAR6, INSIDE4, OUT_SPI, Tunnel, udp4

IN_UDP = {"sa": ("udp_source_port = 4500", "udp_destination_port = 4500"), "peer": {"udp": [4500, 4500]}}
KINDS = {
    "ESP": {},
    "ESP over IPv6": {"outer": 6},
    "in UDP": IN_UDP,
    "AH": {"protocol": "ah", "proposal": "sha256"},
    "AH around ESP over IPv6": {"around": "sha256", "outer": 6},
}
identifications = itertools.count(100)


def fragments(frame, size=400):
    """The frame's IP packet in fragments of `size` bytes."""
    link, packet = frame[:14], frame[14:]
    if packet[0] >> 4 == 4:
        header, content, made = bytearray(packet[:20]), packet[20:], []
        for at in range(0, len(content), size):
            part = content[at:at + size]
            header[2:4] = struct.pack("!H", 20 + len(part))
            header[6:8] = struct.pack("!H", (at // 8) | (0x2000 if at + size < len(content) else 0))
            header[10:12] = b"\0\0"
            header[10:12] = struct.pack("!H", checksum(bytes(header)))
            made.append(link + bytes(header) + part)
        return made
    content, made, number = packet[40:], [], next(identifications)
    for at in range(0, len(content), size):
        part = content[at:at + size]
        fragment = struct.pack("!BBHI", packet[6], 0, at | (1 if at + size < len(content) else 0), number)
        made.append(link + packet[:4] + struct.pack("!HB", 8 + len(part), 44) + packet[7:40] + fragment + part)
    return made


def listening(port):
    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    one.bind(("0.0.0.0", port))
    one.settimeout(3)
    return one


def arrived(one, send, payload):
    """Whether what `send` sends brings this payload to the client."""
    with Capture(one.client, "eth0") as capture:
        send()
        wait_until(lambda: any(payload in frame for frame in capture.frames), 2)
    return sum(payload in frame for frame in capture.frames)


@pytest.mark.parametrize("kind", KINDS)
def test_fragments_are_put_together_before_they_are_opened(tmp_path, kind):
    with Tunnel(tmp_path, **KINDS[kind]) as one:
        one.start()
        number = itertools.count()

        def fresh():
            payload = b"whole %d " % next(number) + bytes(range(200)) * 5
            return payload, fragments(one.sealed(udp4(FAR4, INSIDE4, payload)))

        payload, pieces = fresh()
        assert len(pieces) >= 3
        assert arrived(one, lambda: one.server.send_frames(pieces), payload) == 1, one.gateway.drops()
        orders = [[1, 0, *range(2, len(pieces))], list(reversed(range(len(pieces))))] if kind != "in UDP" else [[0, 2, 1, *range(3, len(pieces))]]
        for order in orders:
            payload, pieces = fresh()
            assert arrived(one, lambda: one.server.send_frames([pieces[i] for i in order]), payload) == 1, (order, one.gateway.drops())
        payload, pieces = fresh()
        assert arrived(one, lambda: one.server.send_frames([pieces[0], pieces[0], *pieces[1:]]), payload) == 1, "a repetition"
        metrics = one.metrics()
        assert metrics["ipsec_reassembled"] == 2 + len(orders) and metrics["ipsec_fragments"] > 3 * metrics["ipsec_reassembled"] - 1
        # One of them says something else.
        payload, pieces = fresh()
        other = bytearray(pieces[1])
        other[-1] ^= 1
        before = one.gateway.drops().get("ipsec_fragment", 0)
        assert arrived(one, lambda: one.server.send_frames([pieces[0], pieces[1], bytes(other), *pieces[2:]]), payload) == 0
        assert one.gateway.drops()["ipsec_fragment"] >= before + 2, "the one that overlaps, and what comes after"
        # Tampered with, the whole is no more than a packet that is.
        payload, pieces = fresh()
        pieces[1] = pieces[1][:-1] + bytes([pieces[1][-1] ^ 1])
        before = one.gateway.drops().get("ipsec_bad_icv", 0)
        assert arrived(one, lambda: one.server.send_frames(pieces), payload) == 0
        assert one.gateway.drops()["ipsec_bad_icv"] == before + 1
        # What no buffer takes.
        before = one.gateway.drops().get("ipsec_no_room", 0)
        large = fragments(one.sealed(udp4(FAR4, INSIDE4, bytes(6000))), 1200)
        one.server.send_frames(large)
        assert wait_until(lambda: one.gateway.drops().get("ipsec_no_room", 0) == before + 1), one.gateway.drops()


def test_a_kernels_fragments_are_put_together(tmp_path):
    """The peer's kernel fragments what scapy gives it over IPv6."""
    with Tunnel(tmp_path, outer=6, peer_mtu=1480) as one:
        one.start()
        before = one.metric("ipsec_reassembled")
        assert one.server.pings(INSIDE4, 5, 1452, "-I", FAR4, "-M", "dont") == 5, one.gateway.drops()
        assert one.metric("ipsec_reassembled") == before + 5


def test_fragments_of_others_go_where_they_went(tmp_path):
    """Of UDP to the host itself, and of ESP that is only forwarded."""
    with Tunnel(tmp_path) as one:
        one.start()
        with one.router.inside(listening, 5000) as at_host:
            to = bytes.fromhex(one.router_mac("sl-wan").replace(":", ""))
            frame = to + bytes.fromhex("0200000000fe0800") + udp4("10.2.0.2", "10.2.0.1", b"for the host" * 100, (4000, 5000))
            one.server.send_frames(fragments(frame))
            assert at_host.recv(2000) == b"for the host" * 100
        frame = to + bytes.fromhex("0200000000fe0800") + udp4("10.2.0.2", "10.1.0.2", b"forwarded" * 100)
        frame = frame[:23] + bytes([50]) + frame[24:]
        with Capture(one.client, "eth0") as capture:
            one.server.send_frames(fragments(frame))
            assert wait_until(lambda: sum(one_of[23] == 50 and one_of[12:14] == b"\x08\x00" for one_of in capture.frames) == 3)
        assert one.metric("ipsec_fragments") == 0


def too_big(one, frame, mtu, spi=None, number=None):
    """What a router on the way says of an outer packet that the gateway has sent."""
    quoted = bytearray(frame[14:14 + 600])
    if quoted[0] >> 4 == 4:
        at = 20
        if spi:
            quoted[at:at + 4] = struct.pack("!I", spi)
        if number is not None:
            quoted[at + 4:at + 8] = struct.pack("!I", number)
        message = bytearray(struct.pack("!BBHHH", 3, 4, 0, 0, mtu) + quoted)
        message[2:4] = struct.pack("!H", checksum(bytes(message) + b"\0" * (len(message) % 2)))
        packet = packet4(1, bytes(message), source="10.2.0.77", destination="10.2.0.1")[14:]
    else:
        source, destination = (socket.inet_pton(socket.AF_INET6, one_of) for one_of in ("2001:db8:2::77", "2001:db8:2::1"))
        message = bytearray(struct.pack("!BBHI", 2, 0, 0, mtu) + quoted)
        pseudo = source + destination + struct.pack("!II", len(message), 58)
        message[2:4] = struct.pack("!H", checksum(pseudo + bytes(message) + b"\0" * (len(message) % 2)))
        packet = struct.pack("!IHBB16s16s", 6 << 28, len(message), 58, 64, source, destination) + bytes(message)
    to = bytes.fromhex(one.router_mac("sl-wan").replace(":", ""))
    return to + bytes.fromhex("0200000000fe") + frame[12:14] + packet


def path_mtu(one):
    return next(row for row in json.loads(one.gateway.control("ipsec", "--spi", hex(OUT_SPI), "--json"))["sas"] if row["direction"] == "out")["path_mtu"]


@pytest.mark.parametrize("outer", (4, 6))
def test_a_narrower_way_between_the_ends_is_learnt(tmp_path, outer):
    with Tunnel(tmp_path, outer=outer) as one:
        one.start()
        ethertype = b"\x08\x00" if outer == 4 else b"\x86\xdd"
        with Capture(one.server, "eth0") as capture:
            assert one.ping(1, 1300, FAR4, "-M", "do") == 1
        sent = next(frame for frame in capture.frames if frame[12:14] == ethertype and frame[23 if outer == 4 else 20] == 50 and len(frame) > 1300)
        for forged in (too_big(one, sent, 1300, spi=0x7777), too_big(one, sent, 1300, number=100_000), too_big(one, sent, 1500)) if outer == 4 else ():
            one.server.send_frames([forged])
        time.sleep(0.5)
        assert path_mtu(one) == 0 and one.metric("ipsec_path_mtus") == 0
        with Capture(one.router, "sl-wan") as host:
            one.server.send_frames([too_big(one, sent, 1300)])
            assert wait_until(lambda: path_mtu(one) == 1300), one.gateway.drops()
        assert any(frame[12:14] == ethertype and frame[23 if outer == 4 else 20] in (1, 58) for frame in host.frames), "the host has it, too"
        assert one.metric("ipsec_path_mtus") == 1
        fits = 1300 - (54 if outer == 4 else 74)  # AES-GCM: outer header, SPI and number, IV, trailer of 2, ICV
        fits -= (fits + 2) % 4
        said = one.client.run(["ping", "-n", "-I", INSIDE4, "-c", "1", "-W", "1", "-M", "do", "-s", "1300", FAR4], check=False)
        assert f"mtu = {fits}" in said or f"mtu={fits}" in said, said
        with Capture(one.server, "eth0") as capture:
            one.client.ip("route flush cache")
            assert one.ping(2, fits - 28, FAR4, "-M", "do") == 2
            one.client.ip("route flush cache")
            assert one.ping(2, 1300, FAR4, "-M", "dont") == 2, "in fragments"
        own = socket.inet_pton(socket.AF_INET if outer == 4 else socket.AF_INET6, ENDS[outer][0])
        sizes = [len(frame) - 14 for frame in capture.frames if frame[26:30] == own or frame[22:38] == own]
        assert len(sizes) == 6 and max(sizes) <= 1300, sizes
        # IPv6 has 1,280 at least: then routers may fragment what is around it.
        with Capture(one.server, "eth0") as capture:
            assert one.ping(2, 1280 - 48 if outer == 4 else 1100, FAR6) == 2, one.gateway.drops()
        if outer == 4:
            sent = [frame for frame in capture.frames if frame[26:30] == own]
            assert [(len(frame) > 1314, frame[20] & 0x40) for frame in sent] == [(True, 0)] * 2


def test_what_came_out_of_a_tunnel_may_have_its_way_back_elsewhere(tmp_path):
    """A strict rp_filter judges what came in clear alone, as Linux has it: the policy has said whose sources those are."""
    with Tunnel(tmp_path) as one:
        one.start()
        for far in ("10.20.0.9", "10.9.9.9"):
            one.router.ip(f"route add {far}/32 via 10.1.0.2 dev sl-lan")
        one.router.run(["sysctl", "-qw", "net.ipv4.conf.sl-wan.rp_filter=1"])
        to = bytes.fromhex(one.router_mac("sl-wan").replace(":", "")) + bytes.fromhex("0200000000fe0800")
        clear = to + udp4("10.9.9.9", INSIDE4, b"in clear")

        def is_dropped():
            before = one.gateway.drops().get("rp_filter", 0)
            one.server.send_frames([clear])
            return wait_until(lambda: one.gateway.drops().get("rp_filter", 0) > before, 1)

        assert wait_until(is_dropped), "the mirror has seen the setting"
        before = one.gateway.drops()["rp_filter"]
        assert arrived(one, lambda: one.server.send_frames([one.sealed(udp4("10.20.0.9", INSIDE4, b"verified"))]), b"verified") > 0, one.gateway.drops()
        assert one.gateway.drops()["rp_filter"] == before


@pytest.mark.parametrize("outer", (4, 6))
def test_a_kernels_errors_are_understood(tmp_path, outer):
    """The way to a second end is by a real router, whose link to it is narrower."""
    behind, far = (("10.9.0.0/24", "10.9.0.2"), ("2001:db8:9::/64", "2001:db8:9::2"))[outer == 6]
    here, router = ENDS[outer]
    with Tunnel(tmp_path) as one:
        one.start()
        one.lab.join(one.server, "narrow0", one.lab.host("beyond"), "eth0", 1400)
        one.server.sysctl(net__ipv6__conf__narrow0__disable_ipv6=0)
        one.server.ip(f"-{outer} route add {behind} dev narrow0")
        one.server.ip(f"-{outer} neigh add {far} lladdr 02:00:00:00:00:09 dev narrow0")
        one.server.sysctl(net__ipv4__ip_forward=1, net__ipv6__conf__all__forwarding=1)
        one.router.ip(f"-{outer} route add {behind} via {router} dev sl-wan")
        one.router.ip("route add 10.21.0.0/24 via 10.2.0.2 dev sl-wan")
        sa, policy = tmp_path / "sa.toml", tmp_path / "policy.toml"
        sa.write_text(f'direction = "out"\nsource = "{here}"\ndestination = "{far}"\nspi = 0x5005\nproposal = "aes128-sha1"\nreqid = 9\n'
                      f'key = "{"11" * 16}"\nauth_key = "{"22" * 20}"\n')
        policy.write_text('direction = "out"\nsource = "10.11.0.0/24"\ndestination = "10.21.0.0/24"\nreqid = 9\n'
                          f'tunnel_source = "{here}"\ntunnel_destination = "{far}"\n')
        one.gateway.control("ipsec", "add", str(sa))
        one.gateway.control("ipsec", "add-policy", str(policy))

        def learnt():
            one.client.run(["ping", "-n", "-I", INSIDE4, "-c", "1", "-W", "1", "-M", "do", "-s", "1350", "10.21.0.1"], check=False)
            return json.loads(one.gateway.control("ipsec", "--spi", "0x5005", "--json"))["sas"][0]["path_mtu"] == 1400

        assert wait_until(learnt), (one.gateway.drops(), one.gateway.control("ipsec"))
        said = one.client.run(["ping", "-n", "-I", INSIDE4, "-c", "1", "-W", "1", "-M", "do", "-s", "1350", "10.21.0.1"], check=False)
        fits = {4: 1342, 6: 1310}[outer]  # AES-CBC: outer header, 8, the IV of 16, blocks of 16 with the trailer of 2, ICV of 12
        assert f"mtu = {fits}" in said or f"mtu={fits}" in said, said
        with Capture(one.server, "narrow0") as capture:
            one.client.ip("route flush cache")
            one.client.run(["ping", "-n", "-I", INSIDE4, "-c", "1", "-W", "1", "-M", "do", "-s", str(fits - 28), "10.21.0.1"], check=False)
        assert any(len(frame) > 1350 for frame in capture.frames), "it passes the narrow link"
