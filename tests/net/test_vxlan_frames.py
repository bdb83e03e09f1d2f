"""Tunnels of the element `vxlan` frame by frame: the other ends are UDP sockets that read and write what is in the tunnel.

        client                          router                                far
        10.1.0.2/24   lan0 | sl-lan 10.1.0.1    sl-wan 10.2.0.1 | wan0        eth0 10.2.0.2, 10.2.0.3, 10.2.0.4
                           |  sl-vx 10.100.0.1 ===== VNI 100 ===== 10.2.0.2 and 10.2.0.3, not 10.2.0.4

Stations of the tunnel's network are made up: the router has their link addresses as permanent neighbours.
"""

import itertools
import json
import re
import socket
import struct

import frames
import pytest
from gateway import SLUICE, Gateway
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
address = ["10.1.0.1/24"]

[[port]]
name = "wan"
device = "net_af_packet1,iface=wan0"
twin = "sl-wan"
address = ["10.2.0.1/24"]

[[port]]
name = "vx"
device = "vxlan"
twin = "sl-vx"
address = ["10.100.0.1/24"]

[api]
listen = "127.0.0.1:9230"

[[vxlan.tunnel]]
port = "vx"
vni = 100
local = "10.2.0.1"
remotes = ["10.2.0.2", "10.2.0.3"]
%s

[[acl.rule]]
action = "deny"
protocol = "udp"
destination_port = 7778
ingress = "vx"

[route]
max_ipv4 = 200_000
max_ipv6 = 50_000
"""

LEARNED, SILENT, FIXED = (f"02:00:00:00:0a:0{n}" for n in (1, 2, 3))
STATIONS = {"10.100.0.21": LEARNED, "10.100.0.22": SILENT, "10.100.0.23": FIXED}
IP_RECVTTL, SO_NO_CHECK = 12, 11  # of the kernel's headers, which Python does not name
NOT_ECT, ECT1, ECT0, CE = range(4)


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def vxlan(inner, vni=100, flags=8):
    return struct.pack("!B3xI", flags, vni << 8) + inner


def ecn_after(inner, outer):
    """RFC 6040 figure 4; None: dropped."""
    if outer == CE:
        return None if inner == NOT_ECT else CE
    return ECT1 if inner == ECT0 and outer == ECT1 else inner


class Ends:
    def __init__(self, folder, config=CONFIG):
        self.config = config
        self.folder, self.lab, self.gateway, self.sockets = folder, Lab(), None, []
        self.numbers, self.payload = itertools.count(), b""

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.lab.__exit__()
            raise
        return self

    def build(self):
        self.client, self.router, self.far = (self.lab.host(name) for name in ("client", "router", "far"))
        self.lab.join(self.client, "eth0", self.router, "lan0", offloads=False)
        self.lab.join(self.far, "eth0", self.router, "wan0", offloads=False)
        self.client.ip("addr add 10.1.0.2/24 dev eth0")
        self.client.ip("route add default via 10.1.0.1")
        for last in (2, 3, 4):
            self.far.ip(f"addr add 10.2.0.{last}/24 dev eth0")
        self.router.sysctl(net__ipv4__ip_forward=1)
        self.gateway = Gateway(self.router, self.folder, self.config % "").start()
        for address, link in STATIONS.items():
            self.router.ip(f"neigh add {address} lladdr {link} dev sl-vx nud permanent")
        self.own = mac(re.search(r"link/ether (\S+)", self.router.ip("link show sl-vx"))[1])
        self.ends = {last: self.open(self.far, f"10.2.0.{last}", 4789) for last in (2, 3, 4)}
        self.receiver = self.open(self.client, "10.1.0.2", 7777)
        self.denied = self.open(self.client, "10.1.0.2", 7778)
        assert wait_until(lambda: self.figures()["vxlan_unresolved"] == 0), self.gateway.log()
        # One alone may be the kernel's, which forwards what comes before the twins' links and neighbours are known.
        assert wait_until(lambda: all([self.arrives(self.inner()) for _ in range(3)])), f"{self.gateway.log()}\n{self.gateway.drops()}"

    def open(self, host, address, port):
        def make():
            one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            one.bind((address, port))
            one.settimeout(2)
            one.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
            one.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
            return one

        self.sockets.append(host.inside(make))
        return self.sockets[-1]

    def __exit__(self, *error):
        try:
            for one in self.sockets:
                one.close()
            if self.gateway and not any(error):
                self.gateway.interrupt()
        finally:
            self.lab.__exit__()

    def figures(self):
        text = self.gateway.get("/metrics")
        return {name: int(float(value)) for name, value in re.findall(r"^sluice_(vxlan_\w+?)(?:_total)?(?:\{.*\})? (\S+)$", text, re.M)}

    def inner(self, port=7777, tos=0, source=LEARNED):
        """Each with a payload of its own: none is taken for another that came late."""
        self.payload = b"inner %d" % next(self.numbers)
        frame = bytearray(frames.udp4(self.payload, port, "10.100.0.21", "10.1.0.2", to=self.own, source_port=4000))
        frame[6:12] = mac(source)
        frame[15] = tos
        frame[24:26] = bytes(2)
        frame[24:26] = struct.pack("!H", frames.checksum(bytes(frame[14:34])))
        return bytes(frame)

    def send(self, content, end=2, tos=0, checksum=True):
        one = self.ends[end]
        one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        one.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 0 if checksum else 1)
        one.sendto(content, ("10.2.0.1", 4789))

    def arrives(self, inner, wait=0.3, **how):
        """Whether the client gets what is in the tunnel."""
        self.send(vxlan(inner), **how)
        return self.comes(wait) is not None

    def comes(self, wait=2.0):
        """What the client gets of the last inner()."""
        while (got := self.received(self.receiver, wait)) is not None:
            if got[0] == self.payload:
                return got
        return None

    @staticmethod
    def received(one, wait=2.0):
        """(payload, TOS, TTL, sender), or None after so long."""
        one.settimeout(wait)
        try:
            payload, about, _, sender = one.recvmsg(65536, 256)
        except TimeoutError:
            return None
        told = {kind: data[0] for _, kind, data in about}
        return payload, told[socket.IP_TOS], told[socket.IP_TTL], sender

    def dropped_as(self, reason, act):
        before = self.gateway.drops().get(reason, 0)
        act()
        assert wait_until(lambda: self.gateway.drops().get(reason, 0) == before + 1), f"{reason}: {self.gateway.drops()}"

    def client_sends(self, address, tos=0, size=20, source_port=5000):
        def send():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                one.bind(("10.1.0.2", source_port))
                one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
                one.sendto(bytes(size), (address, 9))

        self.client.inside(send)

    def out(self, end, wait=2.0):
        """The next frame for one of the made-up stations, past what hosts send by themselves."""
        while (got := self.received(self.ends[end], wait)) is not None:
            if got[0][8 + 12:8 + 14] == b"\x08\x00" and got[0][8 + 14 + 9] == 17:
                return got
        return None

    def reload(self, more):
        self.gateway.config_path.write_text(CONFIG % more, encoding="utf-8")
        return self.gateway.control("reload", check=False)


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    with Ends(tmp_path_factory.mktemp("vxlan")) as made:
        yield made


def test_a_datagram_in_the_tunnel_is_routed_with_and_without_an_outer_checksum(ends):
    for checksum in (True, False):
        ends.send(vxlan(ends.inner()), checksum=checksum)
        got = ends.comes()
        assert got is not None, f"with a checksum: {checksum}: {ends.gateway.drops()}"
        assert got[2:] == (63, ("10.100.0.21", 4000))


def test_ecn_comes_out_as_rfc_6040_says(ends):
    for inner in range(4):
        for outer in range(4):
            after = ecn_after(inner, outer)
            if after is None:
                ends.dropped_as("vxlan_ecn", lambda inner=inner, outer=outer: ends.send(vxlan(ends.inner(tos=inner)), tos=outer))
                continue
            ends.send(vxlan(ends.inner(tos=0xB8 | inner)), tos=0x48 | outer)
            got = ends.comes()
            assert got is not None and got[1] == 0xB8 | after, f"inner {inner}, outer {outer}: {got}"


@pytest.mark.parametrize("reason, content, end", [
    ("vxlan_unknown_vni", lambda inner: vxlan(inner, vni=101), 2),
    ("vxlan_malformed", lambda inner: vxlan(inner, flags=0), 2),
    ("vxlan_malformed", lambda inner: vxlan(inner[:13]), 2),
    ("vxlan_malformed", lambda inner: b"\x08", 2),
    ("vxlan_malformed", lambda inner: b"", 2),
    ("vxlan_unknown_remote", vxlan, 4),
    ("acl_denied", lambda inner: vxlan(inner[:36] + struct.pack("!H", 7778) + inner[38:]), 2),
])
def test_what_does_not_come_out_is_counted_by_name(ends, reason, content, end):
    ends.dropped_as(reason, lambda: ends.send(content(ends.inner()), end=end))
    assert ends.comes(0.05) is None
    assert ends.received(ends.denied, 0.05) is None


def test_a_wrong_checksum_and_a_fragment_are_counted_by_name(ends):
    def raw(change):
        udp = struct.pack("!HHHH", 50000, 4789, 8 + 8 + len(ends.inner()), 0x1234) + vxlan(ends.inner())
        frame = bytearray(frames.packet4(17, udp, "10.2.0.2", "10.2.0.1"))
        frame[0:6] = mac(re.search(r"link/ether (\S+)", ends.router.ip("link show sl-wan"))[1])
        change(frame)
        frame[24:26] = bytes(2)
        frame[24:26] = struct.pack("!H", frames.checksum(bytes(frame[14:34])))

        def send():
            with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as one:
                one.bind(("eth0", 0))
                one.send(frame)

        ends.far.inside(send)

    ends.dropped_as("vxlan_checksum", lambda: raw(lambda frame: None))


def test_an_unknown_station_is_flooded_and_a_learned_one_is_not(ends):
    ends.client_sends("10.100.0.22", tos=0x48 | ECT0)
    both = [ends.out(end) for end in (2, 3)]
    for got in both:
        payload, tos, ttl, sender = got
        assert payload[:8] == struct.pack("!B3xI", 8, 100 << 8)
        assert payload[8:14] == mac(SILENT) and payload[14:20] == ends.own
        assert tos == ECT0 and ttl == 64, "ECN is copied, DSCP is the configuration's"
        assert sender[0] == "10.2.0.1" and sender[1] >= 49152
        assert payload[8 + 14 + 8] == 63 and payload[8 + 14 + 1] == 0x48 | ECT0
    assert both[0][3] == both[1][3], "one flow, one source port"
    # The station moves to the other end.
    for end in (2, 3):
        assert ends.arrives(ends.inner(), end=end, wait=2)
        ends.client_sends("10.100.0.21")
        assert ends.out(end) is not None
        assert ends.out(5 - end, 0.05) is None
    assert ends.figures()["vxlan_moved"] >= 1


def test_a_frame_that_is_longer_than_the_tunnel_takes_is_answered(ends):
    assert re.search(r"mtu ?= ?1450", ends.client.run("ping -n -M do -c 1 -W 1 -s 1472 10.100.0.22", check=False))
    ends.client_sends("10.100.0.22", size=1450 - 28)
    assert len(ends.out(2)[0]) == 8 + 14 + 1450
    ends.out(3)


def test_a_reload_moves_a_station_and_takes_a_remote_away(ends):
    fixed = f'[[vxlan.tunnel.fdb]]\nmac = "{FIXED}"\nremote = "10.2.0.3"\n'
    assert "in force" in ends.reload(fixed)
    ends.client_sends("10.100.0.23")
    assert ends.out(3) is not None
    assert ends.out(2, 0.05) is None
    assert ends.arrives(ends.inner(source=FIXED), end=2, wait=2)
    ends.client_sends("10.100.0.23")
    assert ends.out(3) is not None and ends.out(2, 0.05) is None, "what is configured is not learned to be elsewhere"
    without = (CONFIG % "").replace(', "10.2.0.3"]', "]")
    ends.gateway.config_path.write_text(without, encoding="utf-8")
    assert "in force" in ends.gateway.control("reload", check=False)
    ends.dropped_as("vxlan_unknown_remote", lambda: ends.send(vxlan(ends.inner()), end=3))
    ends.client_sends("10.100.0.21")
    assert ends.out(2) is not None, "a station behind a remote that is gone is unknown"
    assert "in force" in ends.reload("")
    assert ends.arrives(ends.inner(), end=3, wait=2)


def test_an_inspector_sees_what_is_in_the_tunnel_and_names_its_port(tmp_path):
    rules, eve = tmp_path / "own.rules", tmp_path / "eve.json"
    rules.write_text('drop udp any any -> any 7777 (msg:"evil"; content:"evil"; sid:1;)\n', encoding="utf-8")
    config = CONFIG.replace('"acl", "route"', '"inspect", "route"').split("[[acl.rule]]")[0]
    config += f'[inspect]\nrules = ["{rules}"]\neve = "{eve}"\n\n[route]\nmax_ipv4 = 200_000\nmax_ipv6 = 50_000\n'
    with Ends(tmp_path, config) as ends:
        good = ends.inner()
        ends.send(vxlan(good))
        assert ends.comes() is not None
        ends.send(vxlan(good[:42] + b"evil" + good[46:]))

        def alerts():
            return [one for one in map(json.loads, eve.read_text().splitlines()) if one["event_type"] == "alert"] if eve.exists() else []

        assert wait_until(lambda: len(alerts()) == 1), f"{ends.gateway.drops()}\n{ends.gateway.log()}"
        assert (alerts()[0]["in_iface"], alerts()[0]["src_ip"]) == ("vx", "10.100.0.21")
        assert ends.received(ends.receiver, 0.05) is None
        ends.gateway.config_path.write_text((config % "").replace("iface=wan0\"", "iface=wan0\"\nlanes = 2"), encoding="utf-8")
        answer = ends.router.run([SLUICE, "check", ends.gateway.config_path], check=False)
        assert '"inspect" follows conversations' in answer and "give all ports as many queues and lanes" in answer


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
name = "wan"
device = "net_af_packet1,iface=wan0"
twin = "sl-wan"
address = ["10.2.0.1/24"]

[[port]]
name = "vx"
device = "vxlan"
peer = "lan"

[api]
listen = "127.0.0.1:9230"

[[vxlan.tunnel]]
port = "vx"
vni = 7
local = "10.2.0.1"
remotes = ["10.2.0.2"]
"""


def test_a_bridge_extends_a_network_to_the_kernels_device(tmp_path):
    with Lab() as lab:
        client, router, server = (lab.host(name) for name in ("client", "router", "server"))
        lab.join(client, "eth0", router, "lan0", offloads=False)
        lab.join(server, "eth0", router, "wan0", offloads=False)
        client.ip("link set eth0 mtu 1450")
        client.ip("addr add 10.7.0.1/24 dev eth0")
        server.ip("addr add 10.2.0.2/24 dev eth0")
        server.ip("link add vx type vxlan id 7 local 10.2.0.2 remote 10.2.0.1 dstport 4789 dev eth0")
        server.ip("addr add 10.7.0.2/24 dev vx")
        server.ip("link set vx up")
        gateway = Gateway(router, tmp_path, BRIDGED).start()
        assert wait_until(lambda: ", 0% packet loss" in client.run("ping -n -c 1 -W 1 10.7.0.2", check=False)), (
            f"{gateway.log()}\n{gateway.drops()}")
        assert ", 0% packet loss" in client.run("ping -n -c 3 -i 0.01 -M do -s 1422 10.7.0.2")
        assert ", 0% packet loss" in server.run("ping -n -c 3 -i 0.01 10.7.0.1")
        for host, peer, address in ((client, server, "10.7.0.2"), (server, client, "10.7.0.1")):
            peer.spawn("iperf3 -s -1")
            assert wait_until(lambda peer=peer: ":5201" in peer.run("ss -Hltn"))
            done = json.loads(host.run(f"iperf3 -J -t 1 -c {address}"))
            assert done["end"]["sum_received"]["bytes"] > 1 << 20, done
        gateway.interrupt()
