"""IPsec with SAs of the configuration, against scapy's implementation."""

import pytest
from capture import Capture
from hosts import wait_until
from ipsec_tunnel import ALGORITHMS, FAR4, FAR6, Tunnel

scapy = pytest.importorskip("scapy", reason="needs python3-scapy") if False else None


@pytest.fixture(scope="module")
def tunnel(tmp_path_factory):
    with Tunnel(tmp_path_factory.mktemp("ipsec")) as one:
        one.start()
        yield one


@pytest.mark.parametrize("proposal", ALGORITHMS)
def test_every_algorithm_carries_both_families(tmp_path, proposal):
    with Tunnel(tmp_path, proposal) as one:
        one.start()
        for far in (FAR4, FAR6):
            for size in (8, 56, 57, 1000):
                assert one.ping(3, size, far) == 3, (far, size, one.gateway.drops(), one.seen()[-3:], one.gateway.log())
        assert all(packet.get("ok") for packet in one.seen()), one.seen()
        metrics = one.metrics()
        assert metrics["ipsec_sealed_packets"] == metrics["ipsec_opened_packets"] >= 24


def test_what_is_in_the_tunnel_is_not_seen_outside(tunnel):
    with Capture(tunnel.server, "eth0") as capture:
        assert tunnel.ping(3, 200) == 3
    protocols = {frame[23] for frame in capture.frames if frame[12:14] == b"\x08\x00"}
    assert 50 in protocols
    assert 1 not in protocols, "ICMP in clear"
    assert not any(bytes(range(0x20, 0x30)) in frame for frame in capture.frames), "what a ping holds"
