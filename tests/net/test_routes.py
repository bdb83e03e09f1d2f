"""Routes of the kernel, as an administrator or a routing daemon changes them, followed by the forwarder."""

import re
import subprocess
import time

import pytest

from frames import arp_request, neighbour_solicitation
from gateway import SMALL_TABLES, Gateway, config
from hosts import wait_until
from topology import ROUTER_LAN4, ROUTER_LAN6, ROUTER_WAN4, ROUTER_WAN6, SERVER4, SERVER6

TARGET4, TARGET6 = "10.9.0.1", "2001:db8:9::1"


def start_two_ways(fresh):
    """A server with an address behind two links of the router."""
    fresh.second_wan()
    for address in (f"{TARGET4}/32", f"{TARGET6}/128"):
        fresh.server.ip(f"addr add {address} dev lo")
    # Answers leave by either link, and by the other one when one is down.
    fresh.server.sysctl(net__ipv4__conf__all__rp_filter=0)
    fresh.server.ip("route add default via 10.3.0.1 metric 2000")
    fresh.start()
    return fresh


@pytest.fixture
def two_ways(fresh):
    return start_two_ways(fresh)


@pytest.fixture
def table_ways(fresh):
    """The same, with the routes to that address in the gateway's own table: the kernel knows nothing of them."""
    table = fresh.folder / "routes.txt"
    table.write_text(f"10.9.0.0/24 {SERVER4}\n2001:db8:9::/48 {SERVER6}\n", encoding="utf-8")
    fresh.configuration = {"route": ("kernel = true", f'table = "{table}"', *SMALL_TABLES)}
    return start_two_ways(fresh)


def send_udp(network, target, source_ports, count):
    """`count` datagrams from each source port to the target's discard port."""
    family = "AF_INET6" if ":" in target else "AF_INET"
    network.client.run(["python3", "-c", f"""
import socket, time
for port in {list(source_ports)}:
    with socket.socket(socket.{family}, socket.SOCK_DGRAM) as flow:
        flow.bind(("", port))
        for _ in range({count}):
            flow.sendto(b"x" * 100, ("{target}", 9))
        time.sleep(0.002)
"""])


def received(network):
    return [network.server.counter(interface, "rx_packets") for interface in ("eth0", "eth1")]


def loss(ping_output):
    return float(re.search(r"([\d.]+)% packet loss", ping_output).group(1))


def test_a_static_route_is_used_and_forgotten(two_ways):
    assert not two_ways.reaches(TARGET4)
    for family, prefix, gateway, target in (("-4", "10.9.0.0/24", SERVER4, TARGET4),
                                            ("-6", "2001:db8:9::/48", SERVER6, TARGET6)):
        two_ways.router.ip(f"{family} route add {prefix} via {gateway}")
        assert wait_until(lambda address=target: two_ways.reaches(address), 5)
        two_ways.router.ip(f"{family} route del {prefix}")
        assert wait_until(lambda address=target: not two_ways.reaches(address), 5)


@pytest.mark.parametrize(("family", "prefix", "ways", "target"), [
    pytest.param("-4", "10.9.0.0/24", (SERVER4, "10.3.0.2"), TARGET4, id="ipv4"),
    pytest.param("-6", "2001:db8:9::/48", (SERVER6, "2001:db8:3::2"), TARGET6, id="ipv6"),
])
def test_ecmp_spreads_flows_and_keeps_each_on_its_way(two_ways, family, prefix, ways, target):
    two_ways.router.ip(f"{family} route add {prefix} nexthop via {ways[0]} nexthop via {ways[1]}")
    assert wait_until(lambda: two_ways.reaches(target), 5)
    send_udp(two_ways, target, range(20000, 20064), 1)  # resolves the neighbours of both ways

    before = received(two_ways)
    send_udp(two_ways, target, range(30000, 30200), 2)
    assert wait_until(lambda: sum(received(two_ways)) - sum(before) >= 400, 5)
    shares = [after - then for after, then in zip(received(two_ways), before)]
    assert min(shares) > 100, f"400 datagrams of 200 flows went {shares}"

    before = received(two_ways)
    send_udp(two_ways, target, [31000], 300)
    assert wait_until(lambda: sum(received(two_ways)) - sum(before) >= 300, 5)
    shares = sorted(after - then for after, then in zip(received(two_ways), before))
    assert shares[1] >= 300 and shares[0] < 20, f"one flow of 300 datagrams went {shares}"


def test_a_route_changes_under_traffic_without_loss(two_ways):
    ways = [SERVER4, "10.3.0.2"]
    two_ways.router.ip(f"route add 10.9.0.0/24 via {ways[0]}")
    for way in ways:
        two_ways.router.run(f"ping -n -c 1 -W 1 {way}")
    assert wait_until(lambda: two_ways.reaches(TARGET4), 5)

    before = received(two_ways)
    with open(f"{two_ways.folder}/ping.log", "w+", encoding="utf-8") as log:
        ping = two_ways.client.spawn(f"ping -n -i 0.005 -c 600 -W 1 {TARGET4}", stdout=log)
        change = 0
        while ping.poll() is None:
            change += 1
            two_ways.router.ip(f"route replace 10.9.0.0/24 via {ways[change % 2]}")
            try:
                ping.wait(0.1)
            except subprocess.TimeoutExpired:
                continue  # still running
        log.seek(0)
        assert loss(log.read()) == 0
    assert change > 10
    shares = [after - then for after, then in zip(received(two_ways), before)]
    assert min(shares) > 60, f"the two ways carried {shares}"


@pytest.mark.parametrize(("family", "target", "shorter", "gateway", "longer"), [
    pytest.param("-4", TARGET4, ("10.0.0.0/8", "0.0.0.0/0"), SERVER4, f"{SERVER4}/32", id="ipv4"),
    pytest.param("-6", TARGET6, ("2001:db8::/32", "::/0"), SERVER6, f"{SERVER6}/128", id="ipv6"),
])
def test_a_next_hop_of_the_table_leaves_by_its_longest_link(table_ways, family, target, shorter, gateway, longer):
    """Shorter prefixes of another device come and go under traffic without loss; a longer one takes it, and gives it back."""
    router, listed = table_ways.router, lambda: table_ways.gateway.control("routes", "--limit", "1000").split()
    assert wait_until(lambda: table_ways.reaches(target), 5)
    changes = 0
    with open(f"{table_ways.folder}/ping.log", "w+", encoding="utf-8") as log:
        ping = table_ways.client.spawn(f"ping -n -i 0.01 -c 300 -W 1 {target}", stdout=log)
        while ping.poll() is None:
            prefix = shorter[changes % 2]
            router.ip(f"{family} route add {prefix} dev sl-lan")
            assert wait_until(lambda address=prefix: address in listed(), 5)
            time.sleep(0.1)
            router.ip(f"{family} route del {prefix} dev sl-lan")
            assert wait_until(lambda address=prefix: address not in listed(), 5)
            changes += 1
        log.seek(0)
        assert loss(log.read()) == 0
    assert changes >= 4 and table_ways.reaches(target)

    def way():
        """Which of the two links brings an answered echo request to the server: its index, or None."""
        before = received(table_ways)
        table_ways.client.run(f"ping -n -i 0.01 -c 20 -W 1 {target}", check=False)
        shares = [after - then for after, then in zip(received(table_ways), before)]
        return shares.index(max(shares)) if max(shares) >= 20 else None

    assert way() == 0
    mac = table_ways.server.run("cat /sys/class/net/eth1/address").strip()  # where ND would not answer for eth0's address
    router.ip(f"neigh replace {gateway} lladdr {mac} dev sl-wan2 nud permanent")
    router.ip(f"{family} route add {longer} dev sl-wan2")
    assert wait_until(lambda: way() == 1 and table_ways.reaches(target), 10)
    router.ip(f"{family} route del {longer} dev sl-wan2")
    assert wait_until(lambda: way() == 0 and table_ways.reaches(target), 10)


def icmp_errors(network):
    return {row["reason"]: row["frames"] for row in network.gateway.stats()["icmp_errors"]}


@pytest.mark.parametrize(("target", "router", "hop_ended", "too_big", "headers"), [
    pytest.param(TARGET4, ROUTER_LAN4, "Time to live exceeded", "Frag needed and DF set (mtu = 1400)", 28, id="ipv4"),
    pytest.param(TARGET6, ROUTER_LAN6, "Time exceeded: Hop limit", "Packet too big: mtu=1400", 48, id="ipv6"),
])
def test_what_a_route_of_the_table_cannot_forward_is_answered(table_ways, target, router, hop_ended, too_big, headers):
    """As on a route of the kernel, which has none here, and no default route either: it would say that the network is
    unreachable."""
    client, gateway = table_ways.client, table_ways.gateway
    assert wait_until(lambda: table_ways.reaches(target), 5)
    for method in ("", "-I"):
        lines = client.run(f"traceroute -n -q 1 -w 2 {method} {target}").splitlines()[1:]
        assert [line.split()[1:2] for line in lines] == [[router], [target]], lines
        assert "!" not in "".join(lines), lines
    before = icmp_errors(table_ways).get("ttl_expired", 0)
    answer = client.run(f"ping -n -i 0.2 -c 3 -W 2 -t 1 {target}", check=False)
    assert answer.count(f"From {router} icmp_seq=") == 3 and answer.count(hop_ended) == 3, answer
    assert icmp_errors(table_ways)["ttl_expired"] == before + 3

    for host, interface in ((table_ways.server, "eth0"), (table_ways.router, "wan0"), (table_ways.router, "sl-wan")):
        host.ip(f"link set {interface} mtu 1400")

    def reported():
        answer = client.run(f"ping -n -c 1 -W 1 -M do -s {1500 - headers} {target}", check=False)
        return f"From {router} icmp_seq=1 {too_big}" in answer

    assert wait_until(reported, 5, 1.1)
    assert "mtu 1400" in client.ip(f"route get {target}")
    assert icmp_errors(table_ways)["too_big"] == 1
    assert "3 received" in client.run(f"ping -n -i 0.2 -c 3 -W 1 -M do -s {1400 - headers} {target}")
    assert wait_until(lambda: gateway.stats()["conserved"], 5), gateway.stats()


def test_what_a_route_of_the_table_does_not_do_is_dropped_under_a_name(table_ways):
    """It fragments nothing and takes no source routes, and nobody answers; other options pass."""
    client, gateway = table_ways.client, table_ways.gateway
    assert wait_until(lambda: table_ways.reaches(TARGET4), 5)
    recorded = client.run(f"ping -n -c 1 -W 1 -R {TARGET4}")  # the server records itself, the fast path does not
    assert "1 received" in recorded and TARGET4 in recorded.partition("RR:")[2], recorded
    client.run(f"traceroute -n -q 1 -w 1 -m 1 -g {TARGET4} {SERVER4}", check=False)
    assert gateway.drops()["source_route"] == 1, gateway.drops()
    for host, interface in ((table_ways.server, "eth0"), (table_ways.router, "wan0"), (table_ways.router, "sl-wan")):
        host.ip(f"link set {interface} mtu 1400")
    answer = client.run(f"ping -n -i 0.2 -c 10 -W 1 -M dont -s 1472 {TARGET4}", check=False)
    assert "nreachable" not in answer and "Frag" not in answer, answer
    assert gateway.drops()["needs_fragmentation"] >= 5, gateway.drops()


def test_a_gateway_that_the_kernel_has_no_route_to_is_resolved(fresh):
    """The twin of wan has no address: only the gateway's own file says what is on its link. Until the next hop is known nobody
    answers the client that there is no way."""
    table = fresh.folder / "routes.txt"
    table.write_text(f"10.9.0.0/24 {SERVER4}\n2001:db8:9::/48 {SERVER6}\n", encoding="utf-8")
    connected = [f'[[route.connected]]\nport = "wan"\nprefix = "{prefix}"' for prefix in ("10.2.0.0/24", "2001:db8:2::/64")]
    fresh.configuration = {"route": ("kernel = true", f'table = "{table}"', *SMALL_TABLES, *connected)}
    for address in (f"{TARGET4}/32", f"{TARGET6}/128"):
        fresh.server.ip(f"addr add {address} dev lo")
    fresh.server.ip("link set eth0 arp off")
    fresh.gateway = gateway = Gateway(fresh.router, fresh.folder, config(fresh.ports, **fresh.configuration)).start()
    fresh.router.ip(f"addr add {ROUTER_LAN4}/24 dev sl-lan")
    fresh.router.ip(f"addr add {ROUTER_LAN6}/64 dev sl-lan nodad")
    for target in (TARGET4, TARGET6):
        before = gateway.drops().get("unresolved", 0)
        answer = fresh.client.run(f"ping -n -i 0.2 -c 10 -W 1 {target}", check=False)
        assert "100% packet loss" in answer and "nreachable" not in answer, answer
        assert gateway.drops()["unresolved"] >= before + 8, gateway.drops()
    fresh.server.ip("link set eth0 arp on")
    mac = fresh.router_mac("sl-wan")
    for router, family in ((ROUTER_WAN4, "-4"), (ROUTER_WAN6, "-6")):  # nobody answers for these addresses
        fresh.server.ip(f"{family} neigh replace {router} lladdr {mac} dev eth0 nud permanent")
        fresh.server.ip(f"{family} route replace default via {router}")
    for target in (TARGET4, TARGET6):
        assert wait_until(lambda address=target: fresh.reaches(address), 10), fresh.router.ip("neigh")


def test_a_link_goes_down_and_comes_back(two_ways):
    assert two_ways.reaches(SERVER4)
    two_ways.server.ip("link set eth0 down")
    assert wait_until(lambda: not two_ways.reaches(SERVER4), 5)
    assert two_ways.reaches("10.3.0.2"), "the other port must not care"
    assert not {port["name"]: port["link_up"] for port in two_ways.gateway.stats()["ports"]}["wan"]
    two_ways.server.ip("link set eth0 up")
    assert wait_until(lambda: two_ways.reaches(SERVER4), 10)


def test_a_neighbour_that_changes_its_address_is_found_again(two_ways):
    """The server's card is replaced: a new MAC address, announced by nobody."""
    assert two_ways.reaches(SERVER4)
    two_ways.server.ip("link set eth0 down")
    two_ways.server.ip("link set eth0 address 02:00:00:00:77:01")
    two_ways.server.ip("link set eth0 up")
    two_ways.router.ip("neigh flush dev sl-wan")
    assert wait_until(lambda: two_ways.reaches(SERVER4), 10)


@pytest.mark.parametrize(("family", "prefix", "gateway", "target", "announcement"), [
    pytest.param("-4", "10.9.0.0/24", SERVER4, TARGET4, arp_request(TARGET4, ROUTER_LAN4), id="arp"),
    pytest.param("-6", "2001:db8:9::/48", SERVER6, TARGET6, neighbour_solicitation(TARGET6, ROUTER_LAN6), id="nd"),
])
def test_a_foreign_sender_address_moves_no_traffic(two_ways, family, prefix, gateway, target, announcement):
    """A host of the LAN asks for the router by the address of a server elsewhere; the kernel then takes it for a neighbour."""
    two_ways.router.ip(f"{family} route add {prefix} via {gateway}")
    assert wait_until(lambda: two_ways.reaches(target), 5)
    two_ways.router.sysctl(**{"net__ipv4__conf__all__rp_filter": 0, "net__ipv4__conf__sl-lan__rp_filter": 0})

    def known():
        return re.search(rf"^{re.escape(target)} +\S+ +lan", two_ways.gateway.control("neighbours"), re.M)

    def is_neighbour():
        two_ways.client.send_frames([announcement])
        return known()

    assert wait_until(is_neighbour, 5, every=0.2), two_ways.router.ip("neigh")
    time.sleep(0.5)
    assert known()
    assert two_ways.reaches(target)


def test_routes_without_capacity_are_forwarded_by_as_soon_as_there_is(fresh):
    """A table for 30 routes, of which the kernel has more; nothing but capacity makes the others fit."""
    fresh.configuration = {"route": ("kernel = true", "max_ipv4 = 30", "max_ipv6 = 1000")}
    gateway = fresh.start()
    fresh.router.batch([f"route add 198.51.{i}.0/24 via {SERVER4}" for i in range(40)])

    def mirror():
        return gateway.stats()["mirror"]

    assert wait_until(lambda: mirror()["refused"] >= 10, 5), mirror()
    before = mirror()
    assert "raise [route] max_ipv4" in before["last_refusal"] and before["refusals"] >= before["refused"]
    assert f"sluice_mirror_refused {before['refused']}\n" in gateway.get("/metrics")
    fresh.router.batch([f"route del 198.51.{i}.0/24" for i in range(25)])
    assert wait_until(lambda: mirror()["refused"] == 0, 5), mirror()
    assert mirror()["resyncs"] == before["resyncs"], "it needed no full comparison"
    assert gateway.control("routes", "--limit", "1000").count("198.51.") >= 15
