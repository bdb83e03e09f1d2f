"""A LAN with large frames behind a tunnel over a network with usual ones: 9,000 bytes inside, 1,500 outside. Routes are the
kernel's."""

import re

import pytest
from capture import Capture
from hosts import iperf3, wait_until
from ipsec_tunnel import FAR4, FAR6, INSIDE4, INSIDE6, OUT_SPI, Tunnel

LARGE = 9000
# What fits 1,500 bytes, by the outer family: less the outer header, SPI and number, the IV, the trailer of 2 and the ICV, up to 4.
FITS = {4: 1500 - 20 - 8 - 8 - 2 - 16, 6: 1500 - 40 - 8 - 8 - 2 - 16}


class LargeLan(Tunnel):
    def __init__(self, folder, **more):
        super().__init__(folder, ports=[("lan", "lan0", "sl-lan", f"mtu = {LARGE}"), ("wan", "wan0", "sl-wan")], size="1G",
                         memory=("frame_bytes = 9216",), **more)

    def prepare(self):
        super().prepare()
        self.client.ip(f"link set eth0 mtu {LARGE}")
        self.router.ip(f"link set lan0 mtu {LARGE}")

    def start(self, before_addresses=None):
        super().start(before_addresses)
        self.client.ip(f"route replace 10.20.0.0/24 via 10.1.0.1 src {INSIDE4}")
        self.client.ip(f"-6 route replace 2001:db8:20::/64 via 2001:db8:1::1 src {INSIDE6}")

    def said_mtu(self, size, far):
        """What one ping of so many bytes is told, which no router may fragment: (who says it, the MTU)."""
        self.forget()
        inside = INSIDE6 if ":" in far else INSIDE4
        said = self.client.run(["ping", "-n", "-I", inside, "-c", "1", "-W", "1", "-M", "do", "-s", str(size), far], check=False)
        found = re.search(r"From (\S+?):? icmp_seq=1 .*mtu ?= ?(\d+)", said)
        return (found[1], int(found[2])) if found else said

    def forget(self):
        """MTUs that the client has learnt."""
        self.client.ip("route flush cache")
        self.client.ip("-6 route flush cache")

    def lengths(self, capture):
        """Of what the gateway has sent outside: each packet's bytes."""
        own = self.router.mac("sl-wan")
        return [len(frame) - 14 for frame in capture.frames if frame[6:12] == own]


@pytest.mark.parametrize("outer", (4, 6))
def test_what_is_too_large_is_told_what_fits(tmp_path, outer):
    """The sender learns it from the gateway itself, to the byte, however large its packet was."""
    with LargeLan(tmp_path, outer=outer, peer_mtu=1300) as one:
        one.start()
        fits = FITS[outer]
        for far, header, router in ((FAR4, 28, "10.1.0.1"), (FAR6, 48, "2001:db8:1::1")):
            for size in (fits - header + 1, 1500, 4000, LARGE - header):
                assert one.said_mtu(size, far) == (router, fits), (far, size, one.gateway.drops())
            one.forget()
            with Capture(one.server, "eth0") as capture:
                assert one.ping(2, fits - header, far, "-M", "do") == 2, (far, one.gateway.drops())
            assert max(one.lengths(capture)) in (1500 - 3, 1500 - 2, 1500 - 1, 1500), "it is all that fits"


def test_tcp_finds_what_fits(tmp_path):
    """Both ends offer segments of 8,960 bytes; those of the client are for the tunnel."""
    with LargeLan(tmp_path, peer_mtu=LARGE) as one:
        one.start()
        for far, source in ((FAR4, INSIDE4), (FAR6, INSIDE6)):
            one.forget()
            with Capture(one.server, "eth0") as capture:
                said = iperf3(one.client, one.server, far, "-B", source)
            assert said["sum_received"]["bytes"] >= 20_000, (said, one.gateway.drops())
            assert max(one.lengths(capture)) <= 1500
            route = one.client.ip(f"{'-6 ' if ':' in far else ''}route get {far} from {source}")
            assert f"mtu {FITS[4]}" in route, route
        assert one.metric("ipsec_fragmented") == 0


def test_what_may_be_fragmented_is_put_together_at_the_other_end(tmp_path):
    with LargeLan(tmp_path, peer_mtu=1300) as one:
        one.start()
        before, known = one.metric("ipsec_fragmented"), len(one.seen())
        for size in (FITS[4] - 28 + 1, 1500, 4000, LARGE - 28):
            with Capture(one.server, "eth0") as capture:
                assert one.ping(2, size, FAR4, "-M", "dont") == 2, (size, one.gateway.drops(), one.seen()[known:])
            assert max(one.lengths(capture)) <= 1500
        assert one.metric("ipsec_fragmented") == before + 8
        seen = one.seen()[known:]
        assert all(packet.get("ok") and packet["spi"] == OUT_SPI for packet in seen), seen
        # Of 1,448 bytes 1,444 are a packet's, of which 1,424 are data; the last one has what is left.
        pieces = [-(-(size + 8) // 1424) for size in (FITS[4] - 28 + 1, 1500, 4000, LARGE - 28)]
        assert len(seen) == 2 * sum(pieces), (len(seen), pieces)
        # IPv6 is fragmented by its sender alone, once it knows.
        one.forget()
        assert wait_until(lambda: one.ping(2, 4000, FAR6) == 2), one.gateway.drops()
