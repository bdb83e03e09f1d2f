"""What a router answers when it cannot forward: as any router would (RFC 1812 4.3, 5.3; RFC 4443 3)."""

import pytest
from frames import udp4
from hosts import wait_until
from topology import CLIENT4, ROUTER_LAN4, ROUTER_LAN6, SERVER4, SERVER6


@pytest.mark.parametrize(("server", "router", "words"), [
    pytest.param(SERVER4, ROUTER_LAN4, "Time to live exceeded", id="ipv4"),
    pytest.param(SERVER6, ROUTER_LAN6, "Time exceeded: Hop limit", id="ipv6"),
])
def test_ttl_of_one_ends_at_the_router(network, server, router, words):
    answer = network.client.run(f"ping -n -c 1 -W 2 -t 1 {server}", check=False)
    assert f"From {router} icmp_seq=1 {words}" in answer


def test_ttl_of_two_reaches_the_server(network):
    assert "1 received" in network.client.run(f"ping -n -c 1 -W 2 -t 2 {SERVER4}")


@pytest.mark.parametrize(("target", "router", "words"), [
    pytest.param("203.0.113.9", ROUTER_LAN4, "Destination Net Unreachable", id="ipv4"),
    pytest.param("2001:db8:ffff::9", ROUTER_LAN6, "Destination unreachable: No route", id="ipv6"),
])
def test_no_route_is_answered(network, target, router, words):
    answer = network.client.run(f"ping -n -c 2 -i 0.3 -W 2 {target}", check=False)
    assert f"From {router}" in answer
    assert words in answer


@pytest.mark.parametrize(("target", "words"), [
    pytest.param("10.2.0.77", "Destination Host Unreachable", id="ipv4"),
    pytest.param("2001:db8:2::77", "Destination unreachable: Address unreachable", id="ipv6"),
])
def test_a_silent_neighbour_is_answered(network, target, words):
    """ARP and ND give up after three tries, a second each; the sender is notified."""
    answer = network.client.run(f"ping -n -c 6 -W 6 {target}", check=False)
    assert words in answer


def test_an_unreachable_route_is_answered_and_a_blackhole_is_silent(network):
    network.router.ip("route add unreachable 198.51.100.0/25")
    network.router.ip("route add blackhole 198.51.100.128/25")

    assert wait_until(lambda: "Unreachable" in network.client.run("ping -n -c 1 -W 1 198.51.100.1", check=False))
    before = sum(network.gateway.drops().values())
    answer = network.client.run("ping -n -c 3 -i 0.2 -W 1 198.51.100.200", check=False)
    assert "3 packets transmitted, 0 received" in answer
    assert "nreachable" not in answer
    assert wait_until(lambda: sum(network.gateway.drops().values()) >= before + 3, 5)


def test_too_big_for_the_next_link(network):
    """Somebody gives the second link an MTU of 1,400: its twin follows, the sender is notified, and its next packets fit."""
    network.server.ip("link set eth0 mtu 1400")
    network.router.ip("link set wan0 mtu 1400")
    try:
        assert wait_until(lambda: "mtu 1400" in network.router.ip("link show sl-wan"), 3)
        assert wait_until(lambda: "port wan: the MTU of its interface is 1400, smaller than the port's 1500 (ip link set wan0 mtu 1500" in
                          network.gateway.why_degraded(), 3), network.gateway.why_degraded()

        def reported(target, words):
            answer = network.client.run(f"ping -n -c 1 -W 1 -M do -s 1432 {target}", check=False)
            return words in answer

        assert wait_until(lambda: reported(SERVER4, "Frag needed and DF set (mtu = 1400)"), 5, 1.1)
        assert "mtu 1400" in network.client.ip(f"route get {SERVER4}")
        assert wait_until(lambda: reported(SERVER6, "Packet too big: mtu=1400"), 5, 1.1)
        assert "mtu 1400" in network.client.ip(f"-6 route get {SERVER6}")
        # Without "don't fragment", IPv4 is fragmented on the way and arrives; a packet that fits goes as it is.
        network.client.ip("route flush cache")
        assert "3 received" in network.client.run(f"ping -n -i 0.2 -c 3 -W 1 -M dont -s 1432 {SERVER4}")
        assert "3 received" in network.client.run(f"ping -n -i 0.2 -c 3 -W 1 -M do -s 1372 {SERVER4}")
    finally:
        network.client.ip("route flush cache")
        network.client.ip("-6 route flush cache")
        network.router.ip("link set wan0 mtu 1500")
        network.server.ip("link set eth0 mtu 1500")
    assert wait_until(lambda: "mtu 1500" in network.router.ip("link show sl-wan"), 3)
    assert wait_until(lambda: "the MTU of wan0 is 1500 again" in network.gateway.log(), 10)


def test_the_first_packet_waits_for_its_neighbour(network):
    """A neighbour that nobody resolved yet: the first packet is held for ARP or ND, not lost."""
    for target, family in ((SERVER4, "-4"), (SERVER6, "-6")):
        network.router.ip(f"{family} neigh flush dev sl-wan")
        answer = network.client.run(f"ping -n -c 3 -i 0.2 -W 2 {target}")
        assert "3 received, 0% packet loss" in answer, target


def test_link_local_addresses_stay_on_their_link(network):
    """RFC 3927 section 7: answered by the router itself, forwarded in neither direction, by the fast path or the kernel."""
    client, router, server = network.client, network.router, network.server
    client.ip("addr add 169.254.7.7/16 dev eth0")
    router.ip("addr add 169.254.0.1/16 dev sl-lan")
    try:
        assert wait_until(lambda: "1 received" in client.run("ping -n -c 1 -W 1 169.254.0.1", check=False), 5)
        assert "1 received" in client.run(f"ping -n -c 1 -W 1 -I 169.254.7.7 {ROUTER_LAN4}")
        before = network.gateway.drops().get("link_local", 0)
        seen = server.counter("eth0", "rx_packets")
        assert "10 packets transmitted, 0 received" in client.run(
            f"ping -n -i 0.01 -c 10 -W 1 -I 169.254.7.7 {SERVER4}", check=False)
        assert server.counter("eth0", "rx_packets") < seen + 10
        assert "10 packets transmitted, 0 received" in server.run("ping -n -i 0.01 -c 10 -W 1 169.254.7.7", check=False)
        assert wait_until(lambda: network.gateway.drops().get("link_local", 0) == before + 20, 5), network.gateway.drops()
    finally:
        client.ip("addr del 169.254.7.7/16 dev eth0")
        router.ip("addr del 169.254.0.1/16 dev sl-lan")


def test_spoofed_and_malformed_frames_are_dropped_under_a_name(network):
    """Loopback as source, and a bad header checksum: counted, answered by nobody, and nothing else suffers."""
    def spoiled(source, spoil=0):
        frame = bytearray(udp4(b"", 9, source, SERVER4, to=network.router.mac("sl-lan")))
        frame[25] ^= spoil
        return bytes(frame)

    before = network.gateway.drops()
    network.client.send_frames([spoiled("127.0.0.1"), spoiled(CLIENT4, 1), spoiled(CLIENT4)[:15]] * 10)

    def dropped(reason):
        return network.gateway.drops().get(reason, 0) - before.get(reason, 0)

    for reason in ("bad_source", "bad_checksum", "frame_too_short"):
        assert wait_until(lambda name=reason: dropped(name) == 10, 5), (reason, dropped(reason))
    assert network.reaches(SERVER4)
