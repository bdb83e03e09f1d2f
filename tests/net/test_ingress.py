"""Whose frames the router takes, and from whom: link addresses of the kernel's interfaces on a twin, and rp_filter."""

import contextlib
import json
import re
import shutil
import socket
import subprocess
import time

import pytest

from frames import udp4
from hosts import wait_until
from topology import CLIENT4, ROUTER_LAN4, SERVER4, SERVER6

VIRTUAL4, VIRTUAL6 = "10.1.0.100", "2001:db8:1::100"
VRRP_MAC4, VRRP_MAC6 = "00:00:5e:00:01:01", "00:00:5e:00:02:01"


def pings(host, address, count=5):
    """How many of `count` are answered."""
    done = host.run(f"ping -n -i 0.02 -c {count} -W 1 {address}", check=False)
    return int(re.search(r"(\d+) received", done)[1])


def fast_pings(network, address, count=20):
    """As pings(), and whether the kernel saw less than half of the frames of a way."""
    before = network.gateway.stats()["lanes"]
    answered = pings(network.client, address, count)
    after = network.gateway.stats()["lanes"]
    return answered, sum(lane["punted"] for lane in after) - sum(lane["punted"] for lane in before) < count / 2


def neighbour_mac(host, address):
    return re.search(rf"^{re.escape(address)} .*lladdr (\S+)", host.ip("neigh show"), re.M)[1]


@contextlib.contextmanager
def default_route(host, gateway):
    """The host's default route by this gateway, and by the one before again at the end."""
    family = "-6" if ":" in gateway else "-4"
    before = host.ip(f"{family} route show default").split(" metric")[0].strip()
    host.ip(f"{family} route replace default via {gateway}")
    try:
        yield
    finally:
        host.ip(f"{family} route replace {before}")


@contextlib.contextmanager
def virtual_router(network):
    """What keepalived (use_vmac) and vrrpd make of the virtual router 1: a macvlan of its address each for IPv4 and IPv6."""
    router = network.router
    for name, mac, address in (("vrrp-1", VRRP_MAC4, f"{VIRTUAL4}/32"), ("vrrp6-1", VRRP_MAC6, f"{VIRTUAL6}/128")):
        router.ip(f"link add link sl-lan name {name} address {mac} type macvlan mode bridge")
        router.ip(f"addr add {address} dev {name}" + (" nodad" if ":" in address else ""))
        router.ip(f"link set {name} up")
    for interface in ("sl-lan", "vrrp-1", "vrrp6-1"):
        router.run(["sysctl", "-qw", f"net.ipv4.conf.{interface}.arp_ignore=1"])
    try:
        yield
    finally:
        for name in ("vrrp-1", "vrrp6-1"):
            router.ip(f"link del {name}")
        for address in (VIRTUAL4, VIRTUAL6):
            network.client.run(f"ip neigh del {address} dev eth0", check=False)


@pytest.mark.parametrize(("virtual", "server", "mac"), [
    pytest.param(VIRTUAL4, SERVER4, VRRP_MAC4, id="ipv4"),
    pytest.param(VIRTUAL6, SERVER6, VRRP_MAC6, id="ipv6"),
])
def test_a_virtual_router_is_reached_and_routes_in_the_fast_path(network, virtual, server, mac):
    with virtual_router(network), default_route(network.client, virtual):
        assert wait_until(lambda: pings(network.client, virtual, 1) == 1, 5)
        assert neighbour_mac(network.client, virtual) == mac
        assert pings(network.client, virtual) == 5
        assert fast_pings(network, server) == (20, True)


def test_a_virtual_router_whose_interface_does_not_forward_leaves_all_to_the_kernel(network):
    with virtual_router(network), default_route(network.client, VIRTUAL4):
        assert wait_until(lambda: pings(network.client, SERVER4, 1) == 1, 5)
        network.router.run(["sysctl", "-qw", "net.ipv4.conf.vrrp-1.forwarding=0"])
        assert wait_until(lambda: pings(network.client, SERVER4, 1) == 0, 5), "the kernel forwards nothing of that interface"
        assert pings(network.client, VIRTUAL4) == 5


def test_a_macvlan_in_another_namespace_is_reached(network):
    """As containers have it: nothing but the filter of the twin says that it is there."""
    container = network.lab.host("container")
    network.router.ip("link add link sl-lan name mv0 type macvlan mode bridge")
    network.router.ip(f"link set mv0 netns {container.name}")
    container.ip("addr add 10.1.0.50/24 dev mv0")
    container.ip("link set mv0 up")
    assert wait_until(lambda: pings(network.client, "10.1.0.50", 1) == 1, 5)
    assert pings(network.client, "10.1.0.50") == 5
    container.ip("link del mv0")


def test_traffic_goes_on_after_a_twin_has_changed_its_address(network):
    before = network.router_mac()
    try:
        network.router.ip("link set sl-lan address 02:aa:bb:cc:dd:01")
        network.client.ip("neigh flush dev eth0")
        assert wait_until(network.forwards, 5)
        assert neighbour_mac(network.client, ROUTER_LAN4) == "02:aa:bb:cc:dd:01"
        assert fast_pings(network, SERVER4) == (20, True)
        # What it forwards comes from the new address, and the old one is nobody's.
        assert last_hop_of(network) == "02:aa:bb:cc:dd:01"
        dropped = network.gateway.drops().get("other_host", 0)
        send_to(network, before, 3)
        assert wait_until(lambda: network.gateway.drops().get("other_host", 0) == dropped + 3, 5)
    finally:
        network.router.ip(f"link set sl-lan address {before}")
        network.client.ip("neigh flush dev eth0")
    assert wait_until(network.forwards, 5)


def test_a_renamed_twin_goes_on(network):
    network.router.ip("link set sl-wan name uplink0")
    try:
        assert wait_until(lambda: fast_pings(network, SERVER4) == (20, True), 5)
        assert network.gateway.why_degraded() == ""
    finally:
        network.router.ip("link set uplink0 name sl-wan")
    assert fast_pings(network, SERVER6) == (20, True)


def test_a_twin_that_was_moved_to_another_namespace_comes_back(network):
    other = network.lab.host("other")
    network.router.ip(f"link set sl-wan netns {other.name}")
    assert wait_until(lambda: "sl-wan is down" in network.gateway.why_degraded(), 5)
    other.ip(f"link set sl-wan netns {network.router.name}")
    network.router.ip("link set sl-wan up")
    network.address()
    assert wait_until(lambda: fast_pings(network, SERVER4) == (20, True), 5)
    assert wait_until(lambda: network.gateway.why_degraded() == "", 5)


def last_hop_of(network):
    """The link address from which an echo reply of the server reaches the client."""
    def reply():
        with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800)) as wire:
            wire.bind(("eth0", 0x0800))
            wire.settimeout(5)
            subprocess.run(["ip", "netns", "exec", network.client.name, "ping", "-n", "-c", "1", "-W", "1", SERVER4], check=True,
                           stdout=subprocess.DEVNULL)
            while True:
                frame, sender = wire.recvfrom(2048)
                if sender[2] != socket.PACKET_OUTGOING and frame[26:30] == socket.inet_aton(SERVER4):
                    return frame[6:12].hex(":")

    return network.client.inside(reply)


def send_to(network, mac, count, source=CLIENT4, destination=SERVER4, port=9):
    """UDP datagrams from the client to a link address."""
    network.client.send_frames([udp4(b"x", port, source, destination, to=bytes.fromhex(mac.replace(":", "")))] * count)


def punted(network):
    return sum(lane["punted"] for lane in network.gateway.stats()["lanes"])


def test_frames_for_an_address_of_the_filter_go_to_the_kernel(network):
    added = "02:11:22:33:44:55"
    network.router.run(f"bridge fdb add {added} dev sl-lan self")
    try:
        before = punted(network)
        send_to(network, added, 5)
        assert wait_until(lambda: punted(network) >= before + 5, 5), network.gateway.drops()
    finally:
        network.router.run(f"bridge fdb del {added} dev sl-lan self")
    dropped = network.gateway.drops().get("other_host", 0)
    assert wait_until(lambda: send_to(network, added, 1) or network.gateway.drops().get("other_host", 0) > dropped, 5)


def test_a_promiscuous_twin_sees_frames_for_others(network):
    network.router.ip("link set sl-lan promisc on")
    try:
        def sees():
            before = punted(network)
            send_to(network, "02:99:99:99:99:99", 5)
            return wait_until(lambda: punted(network) >= before + 5, 1)

        assert wait_until(sees, 5)
    finally:
        network.router.ip("link set sl-lan promisc off")


def test_a_bridge_of_both_twins_bridges_and_is_a_router_itself(network):
    """Hosts of one subnet on both sides, and the bridge's own address; afterwards the twins route as before."""
    router, client, server = network.router, network.client, network.server
    client.ip("addr add 10.7.0.2/24 dev eth0")
    server.ip("addr add 10.7.0.3/24 dev eth0")
    router.ip("link add br7 type bridge")
    try:
        for twin in ("sl-lan", "sl-wan"):
            router.ip(f"link set {twin} master br7")
        router.ip("addr add 10.7.0.1/24 dev br7")
        router.ip("link set br7 up")
        for host, address in ((client, "10.7.0.3"), (client, "10.7.0.1"), (server, "10.7.0.2"), (server, "10.7.0.1")):
            assert wait_until(lambda one=host, other=address: pings(one, other, 1) == 1, 10), f"{host.label} to {address}"
            assert pings(host, address) == 5, f"{host.label} to {address}"
        router.ip("link set sl-wan nomaster")
        router.ip("link set sl-lan nomaster")
    finally:
        router.ip("link del br7")
        client.ip("addr del 10.7.0.2/24 dev eth0")
        server.ip("addr del 10.7.0.3/24 dev eth0")
        for host in (client, server):
            host.ip("neigh flush dev eth0")
    assert wait_until(network.forwards, 10)
    assert fast_pings(network, SERVER4) == (20, True)


def test_one_twin_in_a_bridge_routes_by_the_kernel(network):
    """The LAN's address lies on a bridge with the twin in it, as many have their LAN."""
    router = network.router
    router.ip("link add br7 type bridge")
    router.ip("link set sl-lan master br7")
    router.ip(f"addr del {ROUTER_LAN4}/24 dev sl-lan")
    router.ip(f"addr add {ROUTER_LAN4}/24 dev br7")
    router.ip("link set br7 up")
    try:
        network.client.ip("neigh flush dev eth0")
        assert wait_until(lambda: pings(network.client, SERVER4, 1) == 1, 10)
        assert pings(network.client, SERVER4) == 5
    finally:
        router.ip("link set sl-lan nomaster")
        router.ip("link del br7")
        router.ip(f"addr add {ROUTER_LAN4}/24 dev sl-lan")
        network.client.ip("neigh flush dev eth0")
    assert wait_until(network.forwards, 10)


@pytest.mark.parametrize("kind", ["bond", "team"])
def test_twins_in_a_bond_or_team_are_reached_by_its_address(network, kind):
    router = network.router
    try:
        router.ip(f"link add up0 type {kind}" + (" mode active-backup" if kind == "bond" else ""))
    except AssertionError:
        pytest.skip(f"this kernel has no {kind}")
    try:
        router.ip("link set sl-lan down")
        router.ip("link set sl-lan master up0")
        router.ip("link set sl-lan up")
        router.ip("addr add 10.1.0.77/24 dev up0")
        router.ip("link set up0 up")
        assert wait_until(lambda: pings(network.client, "10.1.0.77", 1) == 1, 10)
    finally:
        router.ip("link del up0")
        router.ip("link set sl-lan up")
        network.address()


@contextlib.contextmanager
def rp_filter(network, everywhere, lan):
    network.router.run(["sysctl", "-qw", f"net.ipv4.conf.all.rp_filter={everywhere}", f"net.ipv4.conf.sl-lan.rp_filter={lan}"])
    try:
        yield
    finally:
        network.router.run(["sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.sl-lan.rp_filter=0"])


def forwarded(network, source, count=5, mac=None):
    """How many of `count` datagrams from this source the server gets, and how many were dropped as rp_filter."""
    def receive():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
            ear.bind((SERVER4, 0))
            ear.settimeout(5)
            port = ear.getsockname()[1]
            send_to(network, mac or network.router_mac(), count, source, port=port)
            network.client.run(["python3", "-c", f"""
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flow:
    flow.sendto(b"end", ("{SERVER4}", {port}))"""])
            got = 0
            while ear.recv(100) != b"end":
                got += 1
            return got

    before = network.gateway.drops().get("rp_filter", 0)
    network.server.sysctl(net__ipv4__conf__all__rp_filter=0, net__ipv4__conf__eth0__rp_filter=0)
    got = network.server.inside(receive)
    return got, network.gateway.drops().get("rp_filter", 0) - before


WAN_SIDE, NOWHERE, LAN_SIDE = "10.2.0.99", "203.0.113.9", "10.1.0.77"


@pytest.mark.parametrize(("everywhere", "lan", "source", "passes"), [
    (0, 0, WAN_SIDE, True), (1, 1, WAN_SIDE, False), (1, 0, WAN_SIDE, False), (0, 1, WAN_SIDE, False), (2, 0, WAN_SIDE, True),
    (1, 2, WAN_SIDE, True), (0, 0, NOWHERE, True), (1, 1, NOWHERE, False), (2, 2, NOWHERE, False), (1, 1, LAN_SIDE, True),
    (2, 2, LAN_SIDE, True),
])
def test_the_reverse_path_filter_holds_in_the_fast_path(network, everywhere, lan, source, passes):
    assert network.reaches(SERVER4)
    with rp_filter(network, everywhere, lan):
        wanted = (5, 0) if passes else (0, 5)
        assert wait_until(lambda: forwarded(network, source) == wanted, 5), forwarded(network, source)


@pytest.mark.parametrize(("source", "dropped"), [
    ("240.0.0.1", 0), ("255.255.255.254", 0), ("0.1.2.3", 0), ("0.0.0.0", 5), ("127.0.0.1", 5), ("224.0.0.5", 5), ("255.255.255.255", 5),
])
def test_a_source_is_martian_where_linux_says_so(network, source, dropped):
    """240/4 and 0/8 are addresses like others there since Linux 2.6.25 and 5.3; the server is one."""
    assert network.reaches(SERVER4)
    before = network.gateway.drops().get("bad_source", 0)
    assert forwarded(network, source)[0] == 5 - dropped
    assert network.gateway.drops().get("bad_source", 0) - before == dropped


def test_a_source_with_a_blackhole_route_is_refused_and_a_multipath_one_is_not(network):
    router = network.router
    router.ip(f"route add blackhole {NOWHERE}/32")
    router.ip(f"route add 203.0.113.16/28 nexthop via {CLIENT4} nexthop via {SERVER4}")
    try:
        with rp_filter(network, 0, 2):
            assert wait_until(lambda: forwarded(network, NOWHERE) == (0, 5), 5)
        with rp_filter(network, 0, 1):
            assert wait_until(lambda: forwarded(network, "203.0.113.17") == (5, 0), 5)
    finally:
        router.ip(f"route del blackhole {NOWHERE}/32")
        router.ip("route del 203.0.113.16/28")


def test_an_address_of_the_host_is_no_source(network):
    """The kernel is asked, and takes it only where accept_local says so."""
    with rp_filter(network, 0, 2):
        assert wait_until(lambda: forwarded(network, "10.2.0.1")[0] == 0, 5)
        network.router.run(["sysctl", "-qw", "net.ipv4.conf.sl-lan.accept_local=1"])
        assert wait_until(lambda: forwarded(network, "10.2.0.1")[0] == 5, 5)
        network.router.run(["sysctl", "-qw", "net.ipv4.conf.sl-lan.accept_local=0"])


def test_a_virtual_router_has_a_filter_of_its_own(network):
    """Strict: the way back to the client is by the twin, not by the macvlan; the kernel sees it so."""
    with virtual_router(network):
        network.router.run(["sysctl", "-qw", "net.ipv4.conf.vrrp-1.rp_filter=1"])
        assert wait_until(lambda: forwarded(network, CLIENT4, mac=VRRP_MAC4) == (0, 5), 5)
        network.router.run(["sysctl", "-qw", "net.ipv4.conf.vrrp-1.rp_filter=2"])
        assert wait_until(lambda: forwarded(network, CLIENT4, mac=VRRP_MAC4) == (5, 0), 5)


def test_a_port_that_drops_nearly_everything_is_degraded_and_named(network):
    """The client's neighbour entry is wrong, say: all that it sends is for nobody here."""
    client = network.client
    client.ip(f"neigh replace {ROUTER_LAN4} lladdr 02:99:99:99:99:99 nud permanent dev eth0")
    said = "port lan: drops nearly everything that it receives as other_host"
    try:
        ping = client.spawn(f"ping -n -i 0.2 {SERVER4}")
        assert wait_until(lambda: said in network.gateway.get("/healthz"), 15)
        assert network.gateway.log().count(said) == 1
        assert network.gateway.stats()["ports"][0]["drops_nearly_all_as"] == "other_host"
        ping.kill()
        ping.wait()
    finally:
        client.ip(f"neigh del {ROUTER_LAN4} dev eth0")
    assert wait_until(network.forwards, 5)
    client.run(f"ping -n -f -c 200 {SERVER4}")
    assert wait_until(lambda: json.loads(network.gateway.get("/healthz")) == {"status": "ok"}, 10)
    assert "port lan: no longer drops nearly everything as other_host" in network.gateway.log()


def test_rules_that_the_fast_path_does_not_follow_are_said_at_the_start(fresh):
    if not shutil.which("nft"):
        pytest.skip("needs nft")
    for rule in ("table inet fw", "chain inet fw pre { type filter hook prerouting priority raw; }",
                 "rule inet fw pre meta nfproto ipv6 fib saddr . iif oif missing drop"):
        fresh.router.run(["nft", "add", *rule.split()])
    fresh.router.ip("rule add pref 90 from 10.1.0.0/24 to 10.66.0.0/16 lookup 100")
    fresh.router.ip("route add unreachable 10.66.0.0/16 table 100")
    fresh.router.ip("rule add pref 220 lookup 220")  # strongSwan's, without routes
    fresh.start()
    assert "a rule of nftables table inet fw chain pre checks sources by the way back" in fresh.gateway.log()
    assert "'ip rule 90: from 10.1.0.0/24 to 10.66.0.0/16 lookup 100' is not followed by the fast path" in fresh.gateway.log()
    fresh.router.ip("route add 10.2.0.0/24 dev sl-wan table 220")
    time.sleep(2)
    assert "ip rule 220" not in fresh.gateway.log(), "it leads where main leads"
    fresh.router.ip("route add 10.67.0.0/16 dev sl-lan table 220")
    assert wait_until(lambda: "'ip rule 220: from all lookup 220' is not followed by the fast path" in fresh.gateway.log(), 20), fresh.gateway.log()
    assert fresh.gateway.log().count("is not followed by the fast path") == 2, "each once"


def test_keepalived_with_a_virtual_link_address(network, tmp_path):
    """The real thing: VRRP's address is reached, and routes, by the virtual link address that keepalived makes."""
    if not shutil.which("keepalived"):
        pytest.skip("needs keepalived")
    (tmp_path / "keepalived.conf").write_text(f"""
global_defs {{
  vrrp_garp_master_delay 1
}}
vrrp_instance lan {{
  version 3
  state MASTER
  interface sl-lan
  use_vmac
  virtual_router_id 7
  priority 200
  advert_int 0.1
  virtual_ipaddress {{
    {VIRTUAL4}/32
  }}
}}
""", encoding="utf-8")
    with open(tmp_path / "keepalived.log", "w+", encoding="utf-8") as log:
        daemon = network.router.spawn(["keepalived", "--dont-fork", "--log-console", "--vrrp", "--use-file", tmp_path / "keepalived.conf",
                                       "--pid", tmp_path / "pid", "--vrrp_pid", tmp_path / "vrrp_pid"], stdout=log)
        try:
            with default_route(network.client, VIRTUAL4):
                assert wait_until(lambda: pings(network.client, VIRTUAL4, 1) == 1, 15), (tmp_path / "keepalived.log").read_text()
                assert neighbour_mac(network.client, VIRTUAL4) == "00:00:5e:00:01:07"
                assert wait_until(lambda: fast_pings(network, SERVER4) == (20, True), 5), network.gateway.drops()
        finally:
            daemon.terminate()
            daemon.wait(10)
    network.client.run(f"ip neigh del {VIRTUAL4} dev eth0", check=False)
