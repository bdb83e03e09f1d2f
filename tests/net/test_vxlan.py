"""Tunnels of the element `vxlan`, with the kernel's own vxlan device as the other end.

        client                            router                             server
        10.1.0.2/24   lan0 | sl-lan 10.1.0.1   sl-wan 10.2.0.1 | wan0        eth0 10.2.0.2/24
        2001:db8:1::2      |   sl-vx4 10.100.0.1 ============ tunnel, VNI 100 ====== vx4 10.100.0.2/24
                           |   sl-vx6 2001:db8:200::1 ======= tunnel, VNI 200 ====== vx6 2001:db8:200::2, 10.200.0.2

VNI 100 is over IPv4 and learns; VNI 200 is over IPv6, has UDP checksums and learns nothing. The server reaches the client
through the tunnels alone.
"""

import json
import re
import socket
import struct

import pytest
from frames import checksum, udp4
from gateway import Gateway
from hosts import Lab, wait_until

CONFIG = """
[engine]
device = "auto"
deadline = "50ms"
poll = "adaptive"
chain = ["vxlan", "acl", "route"]

[memory]
hugepages = "off"
size = "512M"

[[port]]
name = "lan"
device = "net_af_packet0,iface=lan0"
twin = "sl-lan"
address = ["10.1.0.1/24", "2001:db8:1::1/64"]

[[port]]
name = "wan"
device = "net_af_packet1,iface=wan0"
twin = "sl-wan"
address = ["10.2.0.1/24", "2001:db8:2::1/64"]

[[port]]
name = "vx4"
device = "vxlan"
mtu = 1450
twin = "sl-vx4"
address = ["10.100.0.1/24"]

[[port]]
name = "vx6"
device = "vxlan"
mtu = 1430
twin = "sl-vx6"
address = ["10.200.0.1/24", "2001:db8:200::1/64"]

[api]
listen = "127.0.0.1:9230"

[[vxlan.tunnel]]
port = "vx4"
vni = 100
local = "10.2.0.1"
remotes = ["10.2.0.2"]

[[vxlan.tunnel]]
port = "vx6"
vni = 200
local = "2001:db8:2::1"
remotes = ["2001:db8:2::2"]
learning = false

[[acl.rule]]
name = "inner"
action = "deny"
protocol = "udp"
destination_port = "7777"

[route]
max_ipv4 = 200_000
max_ipv6 = 50_000
"""


class Tunnels:
    def __init__(self, folder):
        self.folder, self.lab, self.gateway = folder, Lab(), None

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.lab.__exit__()
            raise
        return self

    def build(self):
        self.client, self.router, self.server = (self.lab.host(name) for name in ("client", "router", "server"))
        self.lab.join(self.client, "eth0", self.router, "lan0")
        self.lab.join(self.server, "eth0", self.router, "wan0")
        self.client.ip("addr add 10.1.0.2/24 dev eth0")
        self.client.ip("addr add 2001:db8:1::2/64 dev eth0 nodad")
        self.client.ip("route add default via 10.1.0.1")
        self.client.ip("-6 route add default via 2001:db8:1::1")
        self.server.ip("addr add 10.2.0.2/24 dev eth0")
        self.server.ip("addr add 2001:db8:2::2/64 dev eth0 nodad")
        self.server.ip("link add vx4 type vxlan id 100 local 10.2.0.2 remote 10.2.0.1 dstport 4789 dev eth0")
        self.server.ip("link add vx6 type vxlan id 200 local 2001:db8:2::2 remote 2001:db8:2::1 dstport 4789 dev eth0 udp6zerocsumrx")
        self.server.ip("addr add 10.100.0.2/24 dev vx4")
        self.server.ip("addr add 10.200.0.2/24 dev vx6")
        self.server.ip("addr add 2001:db8:200::2/64 dev vx6 nodad")
        for device in ("vx4", "vx6"):
            self.server.ip(f"link set {device} up")
        self.server.ip("route add 10.1.0.0/24 via 10.100.0.1")
        self.server.ip("-6 route add 2001:db8:1::/64 via 2001:db8:200::1")
        self.router.sysctl(net__ipv4__ip_forward=1, net__ipv6__conf__all__forwarding=1)
        self.gateway = Gateway(self.router, self.folder, CONFIG).start()
        for address in ("10.100.0.2", "2001:db8:200::2"):
            assert wait_until(lambda address=address: self.reaches(address)), (
                f"{address}: nothing comes through 10 s after the start:\n{self.gateway.log()}\n{self.gateway.drops()}\n"
                f"{self.router.ip('neigh')}\n{self.server.ip('neigh')}\n{self.figures()}")

    def __exit__(self, *error):
        try:
            if self.gateway and not any(error):
                self.gateway.interrupt()
        finally:
            self.lab.__exit__()

    def reaches(self, address, host=None):
        return ", 0% packet loss" in (host or self.client).run(f"ping -n -c 1 -W 1 {address}", check=False)

    def figures(self):
        text = self.gateway.get("/metrics")
        return {name: int(float(value)) for name, value in re.findall(r"^sluice_(vxlan_\w+?)(?:_total)?(?:\{.*\})? (\S+)$", text, re.M)}


@pytest.fixture(scope="module")
def tunnels(tmp_path_factory):
    with Tunnels(tmp_path_factory.mktemp("vxlan")) as made:
        yield made


def test_ping_through_both_tunnels(tunnels):
    """Of the first packets to a neighbour one may be lost while the kernel resolves it."""
    def answers(host, target):
        return ", 0% packet loss" in host.run(f"ping -n -c 5 -i 0.01 -W 2 {target}", check=False)

    for target in ("10.100.0.2", "10.200.0.2", "2001:db8:200::2"):
        assert wait_until(lambda target=target: answers(tunnels.client, target), 10), target
    for target in ("10.1.0.2", "2001:db8:1::2"):
        assert wait_until(lambda target=target: answers(tunnels.server, target), 10), target


def outer(vni, inner, flags=8):
    """What a datagram of a tunnel holds; sent by the server's own UDP, so that only what is in it is odd."""
    return bytes([flags, 0, 0, 0]) + vni.to_bytes(3, "big") + b"\0" + inner


def send_from_server(tunnels, payload, target="10.2.0.1", tos=0, port=4789, no_check=False):
    def send():
        family = socket.AF_INET6 if ":" in target else socket.AF_INET
        with socket.socket(family, socket.SOCK_DGRAM) as wire:
            if tos:
                wire.setsockopt(*((socket.IPPROTO_IPV6, socket.IPV6_TCLASS) if ":" in target else (socket.IPPROTO_IP, socket.IP_TOS)), tos)
            if no_check:
                if ":" in target:
                    wire.setsockopt(socket.IPPROTO_UDP, 101, 1)  # UDP_NO_CHECK6_TX
                else:
                    wire.setsockopt(socket.SOL_SOCKET, 11, 1)  # SO_NO_CHECK
            wire.sendto(payload, (target, port))

    tunnels.server.inside(send)


def inner_udp(tunnels, destination_port=9, tos=0, source="10.100.0.2", target="10.1.0.2", payload=b"inner", twin="sl-vx4",
              station="02:00:00:00:77:01"):
    """An inner frame for the client, by the tunnel's port."""
    frame = bytearray(udp4(payload, destination_port, source, target, to=mac_of(tunnels.router, twin)))
    frame[6:12] = mac(station)
    frame[15] = tos
    frame[24:26] = bytes(2)
    frame[24:26] = struct.pack("!H", checksum(bytes(frame[14:34])))
    return bytes(frame)


def mac(text):
    return bytes.fromhex(text.strip().replace(":", ""))


def mac_of(host, interface):
    return mac(host.run(["cat", f"/sys/class/net/{interface}/address"]))


class Listener:
    """UDP datagrams that reach a host's port, with the TOS byte of each."""

    def __init__(self, host, port, family=socket.AF_INET):
        def opened():
            wire = socket.socket(family, socket.SOCK_DGRAM)
            wire.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
            wire.bind(("", port))
            wire.settimeout(3)
            return wire

        self.wire = host.inside(opened)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wire.close()

    def take(self):
        data, ancillary, _, _ = self.wire.recvmsg(2048, 64)
        return data, next((value[0] for level, kind, value in ancillary if kind == socket.IP_TOS), None)


def dropped(tunnels, reason, cause):
    """How many frames more are dropped for this reason once `cause()` has been done."""
    before = tunnels.gateway.drops().get(reason, 0)
    cause()
    wait_until(lambda: tunnels.gateway.drops().get(reason, 0) > before, 3)
    return tunnels.gateway.drops().get(reason, 0) - before


def iperf(tunnels, client, server, address, *more):
    service = server.spawn(["iperf3", "-s", "-1", "-B", address])
    assert wait_until(lambda: ":5201" in server.run("ss -Hltn"), 5)
    result = json.loads(client.run(["iperf3", "-c", address, "-t", "1", "-J", *more], timeout=30))
    service.wait(10)
    return result["end"]["sum_received"]["bytes"]


@pytest.mark.parametrize("address", ["10.100.0.2", "2001:db8:200::2"])
@pytest.mark.parametrize("more", [[], ["-R"]])
def test_tcp_both_ways(tunnels, address, more):
    assert iperf(tunnels, tunnels.client, tunnels.server, address, *more) > 1_000_000
    assert not {"vxlan_too_long", "vxlan_malformed", "vxlan_checksum"} & set(tunnels.gateway.drops())


def test_inner_fragments_pass(tunnels):
    for target in ("10.100.0.2", "10.200.0.2", "2001:db8:200::2"):
        tunnels.client.run(f"ping -n -c 1 -W 1 -s 4000 {target}", check=False)  # may learn of the path's MTU first
        assert ", 0% packet loss" in tunnels.client.run(f"ping -n -c 3 -i 0.01 -W 2 -s 4000 {target}")
    for target in ("10.1.0.2", "2001:db8:1::2"):
        assert ", 0% packet loss" in tunnels.server.run(f"ping -n -c 3 -i 0.01 -W 2 -s 4000 {target}")


@pytest.mark.parametrize("vni, twin, to", [(100, "sl-vx4", "10.2.0.1"), (200, "sl-vx6", "2001:db8:2::1")])
def test_outer_fragments_are_put_together(tunnels, vni, twin, to):
    """More than fits into one outer packet, which the server's kernel then cuts up."""
    before = tunnels.figures()["vxlan_fragments"]
    payload = bytes(range(250)) * 5 + bytes(190)
    with Listener(tunnels.client, 9102) as listener:
        send_from_server(tunnels, outer(vni, inner_udp(tunnels, 9102, payload=payload, twin=twin)), to)
        assert listener.take()[0] == payload
    assert tunnels.figures()["vxlan_fragments"] - before == 2


def test_what_does_not_fit_is_answered(tunnels):
    for target, mtu, headers in (("10.100.0.2", 1450, 28), ("10.200.0.2", 1430, 28), ("2001:db8:200::2", 1430, 48)):
        assert ", 0% packet loss" in tunnels.client.run(f"ping -n -c 1 -W 2 -M do -s {mtu - headers} {target}")
        said = tunnels.client.run(f"ping -n -c 2 -i 0.1 -W 1 -M do -s {mtu - headers + 1} {target}", check=False)
        assert re.search(f"mtu.? ?=? ?{mtu}", said), said


class Sniffer:
    """The outer IP packets of tunnels that come in at the server."""

    def __init__(self, tunnels):
        def opened():
            wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            wire.bind(("eth0", 3))
            wire.settimeout(0.3)
            return wire

        self.wire = tunnels.server.inside(opened)

    def stop(self):
        """(family, TOS, TTL, DF, source port, UDP checksum) of each."""
        found = []
        try:
            while True:
                frame, (_, _, kind, _, _) = self.wire.recvfrom(4096)
                v6 = frame[12:14] == b"\x86\xdd"
                udp = frame[54 if v6 else 34:][:8]
                if kind == socket.PACKET_OUTGOING or frame[20 if v6 else 23] != 17 or udp[2:4] != struct.pack("!H", 4789):
                    continue
                tos = (frame[14] << 4 | frame[15] >> 4) & 0xFF if v6 else frame[15]
                found.append((6 if v6 else 4, tos, frame[21] if v6 else frame[22], not v6 and bool(frame[20] & 0x40),
                              *struct.unpack("!H4xH", udp)))
        except TimeoutError:
            self.wire.close()
            return found


def test_outer_headers_are_as_configured(tunnels):
    """IPv4 without a UDP checksum, IPv6 with one; ECN copied, DSCP not."""
    for target, family, has_checksum in (("10.100.0.2", 4, False), ("10.200.0.2", 6, True)):
        sniffer = Sniffer(tunnels)
        tunnels.client.run(f"ping -n -c 1 -W 2 -Q {0xb8 | 2} {target}")
        found = [one for one in sniffer.stop() if one[0] == family]  # the other tunnel has neighbours to discover, too
        assert 2 in [one[1] for one in found], found
        for _, tos, ttl, df, source_port, sum_ in found:
            assert (tos >> 2, ttl, df) == (0, 64, False)
            assert source_port >= 49152
            assert bool(sum_) == has_checksum


@pytest.mark.parametrize("inner, mark, out", [(2, 3, 3), (2, 1, 1), (1, 2, 1), (0, 2, 0), (3, 0, 3)])
def test_ecn_marks_are_combined(tunnels, inner, mark, out):
    with Listener(tunnels.client, 9100) as listener:
        send_from_server(tunnels, outer(100, inner_udp(tunnels, 9100, inner)), tos=mark)
        assert listener.take() == (b"inner", out)


def test_a_mark_that_the_transport_cannot_see_is_a_drop(tunnels):
    assert dropped(tunnels, "vxlan_ecn", lambda: send_from_server(tunnels, outer(100, inner_udp(tunnels)), tos=3)) == 1


@pytest.mark.parametrize("no_check", [False, True])
def test_udp_checksums_over_ipv4_are_taken_either_way(tunnels, no_check):
    with Listener(tunnels.client, 9101) as listener:
        send_from_server(tunnels, outer(100, inner_udp(tunnels, 9101)), no_check=no_check)
        assert listener.take()[0] == b"inner"


def test_a_zero_checksum_over_ipv6_was_not_agreed_on(tunnels):
    frame = outer(200, inner_udp(tunnels, source="10.200.0.2", twin="sl-vx6"))
    assert dropped(tunnels, "vxlan_checksum", lambda: send_from_server(tunnels, frame, "2001:db8:2::1", no_check=True)) == 1


@pytest.mark.parametrize("reason, payload", [
    ("vxlan_unknown_vni", outer(101, bytes(60))),
    ("vxlan_malformed", outer(100, bytes(60), flags=0)),
    ("vxlan_malformed", outer(100, bytes(13))),
    ("vxlan_malformed", b""),
])
def test_what_is_wrong_is_dropped_by_name(tunnels, reason, payload):
    assert dropped(tunnels, reason, lambda: send_from_server(tunnels, payload)) == 1


def test_a_frame_from_elsewhere_is_dropped(tunnels):
    tunnels.server.ip("addr add 10.2.0.77/24 dev eth0")

    def send():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
            wire.bind(("10.2.0.77", 0))
            wire.sendto(outer(100, bytes(60)), ("10.2.0.1", 4789))

    try:
        assert dropped(tunnels, "vxlan_unknown_remote", lambda: tunnels.server.inside(send)) == 1
    finally:
        tunnels.server.ip("addr del 10.2.0.77/24 dev eth0")


def test_rules_see_the_inner_packet(tunnels):
    assert dropped(tunnels, "acl_denied", lambda: send_from_server(tunnels, outer(100, inner_udp(tunnels, 7777)))) == 1


def test_other_traffic_of_the_underlay_is_as_ever(tunnels):
    assert tunnels.reaches("10.2.0.1", tunnels.server)
    assert tunnels.reaches("10.2.0.2", tunnels.router)


def test_figures_add_up(tunnels):
    before = tunnels.figures()
    tunnels.client.run("ping -n -c 10 -i 0.01 -W 2 10.100.0.2")
    after = tunnels.figures()
    for name in ("vxlan_in_frames", "vxlan_out_frames"):
        assert after[name] - before[name] >= 10
    assert after["vxlan_in_bytes"] - before["vxlan_in_bytes"] >= 10 * 98
    assert after["vxlan_fdb_entries"] >= 1, "the server, and whoever a test made up"
    assert after["vxlan_unresolved"] == 0


BRIDGED = """
[engine]
device = "auto"
deadline = "50ms"
poll = "adaptive"
chain = ["vxlan", "bridge"]

[memory]
hugepages = "off"
size = "512M"

[[port]]
name = "lan"
device = "net_af_packet0,iface=lan0"
peer = "vx"

[[port]]
name = "vx"
device = "vxlan"
peer = "lan"

[[port]]
name = "wan"
device = "net_af_packet1,iface=wan0"
twin = "sl-wan"
address = ["10.2.0.1/24"]

[[port]]
name = "wan2"
device = "net_af_packet2,iface=wan2"
twin = "sl-wan2"
address = ["10.3.0.1/24"]

[api]
listen = "127.0.0.1:9230"

[[vxlan.tunnel]]
port = "vx"
vni = 100
local = "10.2.0.1"
remotes = ["10.2.0.2", "10.3.0.2"]
df = "set"
"""


class Bridged(Tunnels):
    """A client and two servers in one network, by tunnels to both servers."""

    def build(self):
        self.client, self.router, self.server, self.other = (self.lab.host(name) for name in ("client", "router", "server", "other"))
        self.lab.join(self.client, "eth0", self.router, "lan0")
        self.lab.join(self.server, "eth0", self.router, "wan0")
        self.lab.join(self.other, "eth0", self.router, "wan2")
        self.client.ip("addr add 10.100.0.1/24 dev eth0")
        self.client.ip("link set eth0 mtu 1450")
        for number, host in ((2, self.server), (3, self.other)):
            host.ip(f"addr add 10.{number}.0.2/24 dev eth0")
            host.ip(f"route add 10.2.0.1/32 via 10.{number}.0.1 dev eth0 onlink")
            host.ip(f"link add vx type vxlan id 100 local 10.{number}.0.2 remote 10.2.0.1 dstport 4789 dev eth0")
            host.ip(f"addr add 10.100.0.{number}/24 dev vx")
            host.ip("link set vx up")
        self.gateway = Gateway(self.router, self.folder, BRIDGED).start()
        for address in ("10.100.0.2", "10.100.0.3"):
            assert wait_until(lambda address=address: self.reaches(address)), (
                f"{address}: nothing comes through 10 s after the start:\n{self.gateway.log()}\n{self.gateway.drops()}\n"
                f"{self.router.ip('neigh')}\n{self.figures()}")


@pytest.fixture(scope="module")
def bridged(tmp_path_factory):
    with Bridged(tmp_path_factory.mktemp("vxlan-bridge")) as made:
        yield made


def test_what_has_no_known_place_goes_to_all(bridged):
    """And what has one to that remote alone."""
    before = bridged.figures()
    assert before["vxlan_flooded_frames"] >= 2 and before["vxlan_fdb_entries"] >= 2, before
    assert ", 0% packet loss" in bridged.client.run("ping -n -c 10 -i 0.01 -W 2 10.100.0.2")
    after = bridged.figures()
    assert after["vxlan_out_frames"] - before["vxlan_out_frames"] >= 10
    assert after["vxlan_flooded_frames"] - before["vxlan_flooded_frames"] < 10, "ARP at most"


def test_bridged_hosts_use_the_tunnel_in_full(bridged):
    assert ", 0% packet loss" in bridged.client.run("ping -n -c 2 -i 0.01 -W 2 -M do -s 1422 10.100.0.3")
    assert iperf(bridged, bridged.client, bridged.server, "10.100.0.2") > 1_000_000
    assert iperf(bridged, bridged.client, bridged.server, "10.100.0.2", "-R") > 1_000_000


def test_what_is_too_long_for_the_underlay_is_dropped_by_name(bridged):
    bridged.client.ip("link set eth0 mtu 1500")
    try:
        assert dropped(bridged, "vxlan_too_long",
                       lambda: bridged.client.run("ping -n -c 1 -W 1 -M do -s 1423 10.100.0.2", check=False)) == 1
    finally:
        bridged.client.ip("link set eth0 mtu 1450")


def reload(bridged, text):
    bridged.gateway.config_path.write_text(text, encoding="utf-8")
    return bridged.gateway.control("reload", check=False)


def test_a_reload_changes_remotes(bridged):
    one = BRIDGED.replace('"10.2.0.2", "10.3.0.2"', '"10.3.0.2"')
    try:
        assert "the tunnels are in force" in reload(bridged, one)
        assert not bridged.reaches("10.100.0.2")
        assert bridged.reaches("10.100.0.3"), "its station is still known"
        assert dropped(bridged, "vxlan_unknown_remote", lambda: bridged.server.run("ping -n -c 1 -W 1 10.100.0.1", check=False)) >= 1
        nobody = one + f'\n[[vxlan.tunnel.fdb]]\nmac = "{bridged.server.run("cat /sys/class/net/vx/address").strip()}"\nremote = "10.2.0.99"\n'
        assert "the tunnels are in force" in reload(bridged, nobody)
        assert dropped(bridged, "vxlan_unresolved", lambda: bridged.reaches("10.100.0.2")) >= 1
        assert wait_until(lambda: bridged.figures()["vxlan_unresolved"] == 1)
    finally:
        assert "the tunnels are in force" in reload(bridged, BRIDGED)
    assert wait_until(lambda: bridged.reaches("10.100.0.2"))


def test_a_reload_with_a_mistake_changes_nothing(bridged):
    try:
        assert "is the tunnel's own address" in reload(bridged, BRIDGED.replace('"10.3.0.2"]', '"10.2.0.1"]'))
        assert "max_fdb is memory" in reload(bridged, BRIDGED + "\n[vxlan]\nmax_fdb = 99\n")
        assert bridged.reaches("10.100.0.3")
    finally:
        bridged.gateway.config_path.write_text(BRIDGED, encoding="utf-8")
