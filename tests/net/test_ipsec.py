"""IPsec with SAs of the configuration, against scapy's implementation."""

import struct

import pytest
from capture import Capture
from hosts import iperf3, wait_until
from ipsec_tunnel import AH_SPI, ALGORITHMS, FAR4, FAR6, INSIDE4, OUT_SPI, Tunnel, udp4

ALL_KINDS = {
    "over IPv6": {"outer": 6},
    "in UDP": {"sa": ("udp_source_port = 4500", "udp_destination_port = 4500"), "peer": {"udp": [4500, 4500]}},
    "in UDP over IPv6": {"outer": 6, "sa": ("udp_source_port = 4500", "udp_destination_port = 4500"), "peer": {"udp": [4500, 4500]}},
    "extended numbers": {"sa": ("esn = true",), "peer": {"esn": True}},
    "extended numbers, AH": {"protocol": "ah", "proposal": "sha256", "sa": ("esn = true",), "peer": {"esn": True}},
    "AH": {"protocol": "ah", "proposal": "sha256"},
    "AH over IPv6": {"protocol": "ah", "proposal": "sha256", "outer": 6},
    "padded": {"sa": ("pad_to = 600",)},
    "AH around ESP": {"around": "sha256"},
    "AH around ESP over IPv6": {"around": "sha512", "proposal": "aes128-sha1", "outer": 6},
}


@pytest.fixture(scope="module")
def tunnel(tmp_path_factory):
    with Tunnel(tmp_path_factory.mktemp("ipsec")) as one:
        one.start()
        yield one


@pytest.mark.parametrize("proposal", ALGORITHMS)
def test_every_algorithm_carries_both_families(tmp_path, proposal):
    with Tunnel(tmp_path, proposal) as one:
        one.start()
        # Of the pings that start() repeats until a neighbour is known some have been sealed and not answered.
        before = one.metrics()
        for far in (FAR4, FAR6):
            for size in (8, 56, 57, 1000):
                assert one.ping(3, size, far) == 3, (far, size, one.gateway.drops(), one.seen()[-3:], one.gateway.log())
        assert all(packet.get("ok") for packet in one.seen()), one.seen()
        metrics = one.metrics()
        grew = {name: metrics[name] - before[name] for name in ("ipsec_sealed_packets", "ipsec_opened_packets")}
        assert grew == {"ipsec_sealed_packets": 24, "ipsec_opened_packets": 24}, (grew, one.gateway.drops(), one.seen())


@pytest.mark.parametrize("kind", ALL_KINDS)
def test_every_kind_of_tunnel(tmp_path, kind):
    with Tunnel(tmp_path, **ALL_KINDS[kind]) as one:
        one.start()
        for far in (FAR4, FAR6):
            for size in (8, 57, 1000):
                assert one.ping(3, size, far) == 3, (far, size, one.gateway.drops(), one.seen()[-3:], one.gateway.log())
        assert all(packet.get("ok") for packet in one.seen()), one.seen()


def test_what_is_in_the_tunnel_is_not_seen_outside(tunnel):
    with Capture(tunnel.server, "eth0") as capture:
        assert tunnel.ping(3, 200) == 3
    protocols = {frame[23] for frame in capture.frames if frame[12:14] == b"\x08\x00"}
    assert 50 in protocols
    assert 1 not in protocols, "ICMP in clear"
    assert not any(bytes(range(0x20, 0x30)) in frame for frame in capture.frames), "what a ping holds"


def test_tcp_goes_through(tunnel):
    """Its segments fit, because the tunnel's end says the path's MTU to the client."""
    tunnel.client.ip("route replace 10.20.0.0/24 via 10.1.0.1 src 10.11.0.2")
    said = iperf3(tunnel.client, tunnel.server, FAR4)
    assert said["sum_received"]["bytes"] >= 20_000


def test_what_does_not_fit_is_answered_or_fragmented(tunnel):
    """1,500 bytes less the outer header, ESP's, the IV, the trailer and the ICV: 1,446, of which 1,444 are filled up to 4."""
    fits = 1446 - 28
    assert tunnel.ping(2, fits, FAR4, "-M", "do") == 2
    said = tunnel.client.run(["ping", "-n", "-I", INSIDE4, "-c", "1", "-W", "1", "-M", "do", "-s", str(fits + 1), FAR4], check=False)
    assert "mtu = 1446" in said or "mtu=1446" in said, said
    assert "From 10.1.0.1" in said, "the router says so"
    tunnel.client.ip("route flush cache")
    before = tunnel.metric("ipsec_fragmented")
    assert tunnel.ping(2, 2500, FAR4, "-M", "dont") == 2
    assert tunnel.metric("ipsec_fragmented") >= before


def test_esp_with_ah_around_it_is_both_or_none(tmp_path):
    """Sizes count both headers, and what lacks one of them is not let in."""
    with Tunnel(tmp_path, around="sha256") as one:
        one.start()
        fits = 1446 - 28 - 28  # less than ESP alone by AH's header, 12 bytes and the ICV of 16
        assert one.ping(2, fits, FAR4, "-M", "do") == 2
        said = one.client.run(["ping", "-n", "-I", INSIDE4, "-c", "1", "-W", "1", "-M", "do", "-s", str(fits + 1), FAR4], check=False)
        assert f"mtu = {fits + 28}" in said or f"mtu={fits + 28}" in said, said
        assert one.ping(2, 2500, FAR4, "-M", "dont") == 2
        with Capture(one.server, "eth0") as capture:
            assert one.ping(2) == 2
        assert {frame[23] for frame in capture.frames if frame[12:14] == b"\x08\x00"} == {51}
        seen = {packet["spi"] for packet in one.seen()}
        assert seen == {OUT_SPI, OUT_SPI + AH_SPI}
        assert all(frame[12:14] != b"\x08\x00" or frame[34] == 50 for frame in capture.frames), "AH says that ESP follows"
        for what, more in (("ESP without AH", {"around": None}), ("AH of another key", {"key": 0x34})):
            drops = one.gateway.drops()
            one.server.send_frames([one.sealed(udp4(FAR4, INSIDE4, b"half"), **more)])
            reason = "ipsec_policy" if more.get("key") is None else "ipsec_bad_icv"
            assert wait_until(lambda: one.gateway.drops().get(reason, 0) == drops.get(reason, 0) + 1), (what, one.gateway.drops())


def test_the_gateway_itself_is_inside(tunnel):
    """Its own packets go through the tunnel, too, if a policy says so."""
    tunnel.router.ip("addr add 10.11.0.1/32 dev sl-lan")
    assert "1 received" in tunnel.router.run(["ping", "-n", "-I", "10.11.0.1", "-c", "1", "-W", "2", FAR4], check=False), tunnel.gateway.drops()


def outer(frame):
    """(SPI, sequence number) of an ESP packet over IPv4, or None."""
    return struct.unpack("!II", frame[34:42]) if frame[12:14] == b"\x08\x00" and frame[23] == 50 else None


def test_replayed_tampered_and_unknown_packets_are_dropped(tunnel):
    with Capture(tunnel.server, "eth0") as capture:
        assert tunnel.ping(2) == 2
    answers = [frame for frame in capture.frames if outer(frame) and outer(frame)[0] != OUT_SPI]
    assert len(answers) == 2
    drops = tunnel.gateway.drops()

    def grew(name, by=1):
        return wait_until(lambda: tunnel.gateway.drops().get(name, 0) >= drops.get(name, 0) + by), (name, tunnel.gateway.drops())

    tunnel.server.send_frames([answers[0]])
    assert grew("ipsec_replay")[0], grew("ipsec_replay")
    ahead = bytearray(answers[1])
    ahead[38:42] = struct.pack("!I", outer(answers[1])[1] + 5)
    tunnel.server.send_frames([bytes(ahead)])
    assert grew("ipsec_bad_icv")[0], grew("ipsec_bad_icv")
    unknown = bytearray(answers[1])
    unknown[34:38] = struct.pack("!I", 0x7777)
    tunnel.server.send_frames([bytes(unknown)])
    assert grew("ipsec_no_sa_in")[0], grew("ipsec_no_sa_in")
    assert tunnel.ping(2) == 2, "what was forged has not moved the window"


def test_what_should_be_protected_does_not_come_in_clear(tunnel):
    drops = tunnel.gateway.drops().get("ipsec_policy", 0)
    tunnel.forge(tunnel.server, "sl-wan", b"in clear", (FAR4, 4000), (INSIDE4, 4000))
    assert wait_until(lambda: tunnel.gateway.drops().get("ipsec_policy", 0) == drops + 1), tunnel.gateway.drops()
