"""Tunnels of the element `vxlan`, with the kernel's own vxlan device as the other end (tunnels.py)."""

import re
import struct

import pytest
from capture import Capture
from hosts import iperf3, wait_until


def test_ping_through_both_tunnels(tunnels):
    """Of the first packets to a neighbour one may be lost while the kernel resolves it."""
    for target in ("10.100.0.2", "10.200.0.2", "2001:db8:200::2"):
        assert wait_until(lambda target=target: tunnels.client.reaches(target, 5), 10), target
    for target in ("10.1.0.2", "2001:db8:1::2"):
        assert wait_until(lambda target=target: tunnels.server.reaches(target, 5), 10), target


@pytest.mark.parametrize("address", ["10.100.0.2", "2001:db8:200::2"])
@pytest.mark.parametrize("more", [[], ["-R"]], ids=["out", "back"])
def test_tcp_both_ways(tunnels, address, more):
    assert iperf3(tunnels.client, tunnels.server, address, *more)["sum_received"]["bytes"] > 1_000_000
    assert not {"vxlan_too_long", "vxlan_malformed", "vxlan_checksum"} & set(tunnels.gateway.drops())


def test_inner_fragments_pass(tunnels):
    for target in ("10.100.0.2", "10.200.0.2", "2001:db8:200::2"):
        tunnels.client.reaches(target, 1, 4000)  # may learn of the path's MTU first
        assert tunnels.client.reaches(target, 3, 4000), target
    for target in ("10.1.0.2", "2001:db8:1::2"):
        assert tunnels.server.reaches(target, 3, 4000), target


def test_what_does_not_fit_is_answered(tunnels):
    for target, mtu, headers in (("10.100.0.2", 1450, 28), ("10.200.0.2", 1430, 28), ("2001:db8:200::2", 1430, 48)):
        assert tunnels.client.reaches(target, 1, mtu - headers, "-M", "do")
        said = tunnels.client.run(f"ping -n -c 2 -i 0.1 -W 1 -M do -s {mtu - headers + 1} {target}", check=False)
        assert re.search(f"mtu.? ?=? ?{mtu}", said), said


def outer_headers(capture, family, router):
    """(TOS, TTL, DF, source port, UDP checksum) of each packet of a tunnel's over this family that the router has sent."""
    for frame in capture.frames:
        v6 = frame[12:14] == b"\x86\xdd"
        udp = frame[54 if v6 else 34:][:8]
        if v6 != (family == 6) or frame[6:12] != router or frame[20 if v6 else 23] != 17 or udp[2:4] != struct.pack("!H", 4789):
            continue
        tos = (frame[14] << 4 | frame[15] >> 4) & 0xFF if v6 else frame[15]
        yield tos, frame[21] if v6 else frame[22], not v6 and bool(frame[20] & 0x40), *struct.unpack("!H4xH", udp)


def test_outer_headers_are_as_configured(tunnels):
    """IPv4 without a UDP checksum, IPv6 with one; ECN copied, DSCP not."""
    router = tunnels.router.mac("sl-wan")
    for target, family, has_checksum in (("10.100.0.2", 4, False), ("10.200.0.2", 6, True)):
        with Capture(tunnels.server, "eth0") as capture:
            assert tunnels.client.reaches(target, 1, 56, "-Q", str(0xB8 | 2))
        found = list(outer_headers(capture, family, router))  # with neighbours that the tunnel discovers
        assert 2 in [one[0] for one in found], found
        for tos, ttl, df, source_port, sum_ in found:
            assert (tos >> 2, ttl, df) == (0, 64, False)
            assert source_port >= 49152
            assert bool(sum_) == has_checksum


def test_other_traffic_of_the_underlay_is_as_ever(tunnels):
    assert tunnels.server.reaches("10.2.0.1")
    assert tunnels.router.reaches("10.2.0.2")


def test_metrics_add_up(tunnels):
    before = tunnels.metrics()
    tunnels.client.run("ping -n -c 10 -i 0.01 -W 2 10.100.0.2")
    after = tunnels.metrics()
    for name in ("vxlan_in_frames", "vxlan_out_frames"):
        assert after[name] - before[name] >= 10
    assert after["vxlan_in_bytes"] - before["vxlan_in_bytes"] >= 10 * 98
    assert after["vxlan_fdb_entries"] >= 1, "the server, and whoever a test made up"
    assert after["vxlan_unresolved"] == 0
