"""Traffic of real hosts through the router: the plain cases that must just work."""

import re

import pytest

from hosts import iperf3, wait_until
from topology import CLIENT4, CLIENT6, ROUTER_LAN4, ROUTER_LAN6, SERVER4, SERVER6


def socket_drops(host):
    """Datagrams that arrived at a host whose program was too slow to take them."""
    four = [line.split() for line in host.run("cat /proc/net/snmp").splitlines() if line.startswith("Udp:")]
    six = dict(line.split() for line in host.run("cat /proc/net/snmp6").splitlines())
    return int(dict(zip(*four))["RcvbufErrors"]) + int(six["Udp6RcvbufErrors"])


FAMILIES = [pytest.param(SERVER4, id="ipv4"), pytest.param(SERVER6, id="ipv6")]


@pytest.mark.parametrize("server", FAMILIES)
def test_ping_loses_nothing_and_doubles_nothing(network, server):
    answer = network.client.run(f"ping -n -i 0.01 -c 100 -W 1 {server}")
    assert "100 packets transmitted, 100 received, 0% packet loss" in answer
    assert "DUP!" not in answer


@pytest.mark.parametrize("server", FAMILIES)
def test_ping_shows_one_router_on_the_way(network, server):
    ttl = re.search(r"ttl=(\d+)", network.client.run(f"ping -n -c 1 -W 1 {server}"))
    assert ttl.group(1) == "63"


@pytest.mark.parametrize("router", [pytest.param(ROUTER_LAN4, id="ipv4"), pytest.param(ROUTER_LAN6, id="ipv6")])
def test_ping_to_the_router_itself(network, router):
    answer = network.client.run(f"ping -n -i 0.05 -c 20 -W 1 {router}")
    assert "20 received, 0% packet loss" in answer
    assert "DUP!" not in answer


@pytest.mark.parametrize(("server", "router"), [pytest.param(SERVER4, ROUTER_LAN4, id="ipv4"),
                                                pytest.param(SERVER6, ROUTER_LAN6, id="ipv6")])
@pytest.mark.parametrize("method", ["", "-I"])
def test_traceroute_shows_the_router_then_the_server(network, server, router, method):
    lines = network.client.run(f"traceroute -n -q 1 -w 2 {method} {server}").splitlines()[1:]
    assert [line.split()[1] for line in lines] == [router, server]


@pytest.mark.parametrize("server", FAMILIES)
@pytest.mark.parametrize("direction", ["up", "down"])
def test_tcp_transfer(network, server, direction):
    end = iperf3(network.client, network.server, server, *(["-R"] if direction == "down" else []), seconds=2)
    received = end["sum_received"]
    assert received["bits_per_second"] > 20e6
    assert received["bytes"] >= 0.9 * end["sum_sent"]["bytes"]


@pytest.mark.parametrize("server", FAMILIES)
def test_udp_transfer_at_a_modest_rate_loses_nothing(network, server):
    before = socket_drops(network.server)
    end = iperf3(network.client, network.server, server, "-u", "-b", "20M", "-l", "1200", seconds=2)
    assert end["sum"]["lost_packets"] <= socket_drops(network.server) - before
    assert end["sum"]["packets"] > 3000


@pytest.mark.parametrize("server", FAMILIES)
def test_fragmented_datagrams_arrive_whole(network, server):
    """8,000 bytes in one datagram: six fragments, of which only the first has ports."""
    answer = network.client.run(f"ping -n -i 0.02 -c 30 -W 1 -s 8000 {server}")
    assert "30 received, 0% packet loss" in answer
    before = socket_drops(network.server)
    end = iperf3(network.client, network.server, server, "-u", "-b", "20M", "-l", "8000", seconds=2)
    assert end["sum"]["lost_packets"] <= socket_drops(network.server) - before


@pytest.mark.parametrize(("client", "server"), [pytest.param(CLIENT4, SERVER4, id="ipv4"),
                                                pytest.param(CLIENT6, SERVER6, id="ipv6")])
def test_every_size_of_ping_up_to_the_mtu(network, client, server):
    """Padding of short frames and odd lengths must not reach the checksum."""
    largest = 1500 - (40 if ":" in client else 20) - 8
    for size in [0, 1, 2, 17, 18, 19, 46, 47, 1001, largest - 1, largest]:
        assert ", 0% packet loss" in network.client.run(f"ping -n -c 1 -W 1 -s {size} {server}"), size


def test_the_counters_add_up_after_all_of_this(network):
    def settled():
        stats = network.gateway.stats()
        return stats["conserved"] and sum(lane["in_flight"] for lane in stats["lanes"]) == 0

    assert wait_until(settled, 5), network.gateway.stats()
    assert sum(lane["tx_frames"] for lane in network.gateway.stats()["lanes"]) > 10_000
