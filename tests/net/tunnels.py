"""Hosts behind tunnels of the element `vxlan`; what goes into a tunnel and comes out of one.

        client                            router                             server
        10.1.0.2/24   lan0 | sl-lan 10.1.0.1   sl-wan 10.2.0.1 | wan0        eth0 10.2.0.2/24
        2001:db8:1::2      |   sl-vx4 10.100.0.1 ============ tunnel, VNI 100 ====== vx4 10.100.0.2/24
                           |   sl-vx6 2001:db8:200::1 ======= tunnel, VNI 200 ====== vx6 2001:db8:200::2, 10.200.0.2
                           |                                                 far
                           |                   sl-far 10.3.0.1 | far0        eth0 10.3.0.2, 10.3.0.3, 10.3.0.4
                           |   sl-vx 10.103.0.1 ============= VNI 300 ====== UDP sockets at 10.3.0.2 and .3, not .4
                           |   sl-vy 10.104.0.1 ============= VNI 400 ====== the one at 10.3.0.2, from 10.2.0.1

The server's other ends are the kernel's own vxlan devices: VNI 100 is over IPv4 and learns; VNI 200 is over IPv6, has UDP
checksums and learns nothing. The server reaches the client through them alone. The far host's other ends are sockets that
read and write what is in the tunnel; the stations behind it are made up.
"""

import itertools
import socket
import struct

from frames import checksum, udp4
from hosts import wait_until
from topology import PORTS, Topology

LEARNED, SILENT, FIXED = (f"02:00:00:00:0a:0{n}" for n in (1, 2, 3))
STATIONS = {"10.103.0.21": LEARNED, "10.103.0.22": SILENT, "10.103.0.23": FIXED}
IP_RECVTTL, SO_NO_CHECK, UDP_NO_CHECK6_TX = 12, 11, 101  # of the kernel's headers, which Python does not name
RECEIVED, DENIED = 7777, 7778  # ports of the client's

TUNNEL_PORTS = [("vx4", "vxlan", "sl-vx4", 'address = ["10.100.0.1/24"]'),
                ("vx6", "vxlan", "sl-vx6", "mtu = 1430", 'address = ["10.200.0.1/24", "2001:db8:200::1/64"]'),
                ("vx", "vxlan", "sl-vx", 'address = ["10.103.0.1/24"]'),
                ("vy", "vxlan", "sl-vy", 'address = ["10.104.0.1/24"]')]
TUNNELS = """
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

[[vxlan.tunnel]]
port = "vy"
vni = 400
local = "10.2.0.1"
remotes = ["10.3.0.2"]

[[vxlan.tunnel]]
port = "vx"
vni = 300
local = "10.3.0.1"
remotes = ["10.3.0.2", "10.3.0.3"]
"""
DENY = f'[[acl.rule]]\naction = "deny"\nprotocol = "udp"\ndestination_port = {DENIED}\ningress = "vx"\n'


def mac(text):
    return bytes.fromhex(text.replace(":", ""))


def vxlan(inner, vni=300, flags=8):
    return struct.pack("!B3xI", flags, vni << 8) + inner


class Tunnels(Topology):
    """The picture above; `chain`: the elements behind `vxlan`."""

    def __init__(self, folder, chain=("acl", "route"), **configuration):
        configuration = {"acl": DENY if "acl" in chain else None, "route": ("kernel = true", "max_ipv4 = 20_000", "max_ipv6 = 5_000"),
                         **configuration}
        super().__init__(folder, ports=[*PORTS, ("far", "far0", "sl-far"), *TUNNEL_PORTS], chain=["vxlan", *chain], more=TUNNELS, **configuration)
        self.sockets, self.numbers, self.payload = [], itertools.count(), b""

    def __enter__(self):
        super().__enter__()
        try:
            self.server.ip("link add vx4 type vxlan id 100 local 10.2.0.2 remote 10.2.0.1 dstport 4789 dev eth0")
            self.server.ip("link add vx6 type vxlan id 200 local 2001:db8:2::2 remote 2001:db8:2::1 dstport 4789 dev eth0 udp6zerocsumrx")
            self.server.ip("addr add 10.100.0.2/24 dev vx4")
            self.server.ip("addr add 10.200.0.2/24 dev vx6")
            self.server.ip("addr add 2001:db8:200::2/64 dev vx6 nodad")
            for device in ("vx4", "vx6"):
                self.server.ip(f"link set {device} up")
            self.server.ip("route add 10.1.0.0/24 via 10.100.0.1")
            self.server.ip("-6 route add 2001:db8:1::/64 via 2001:db8:200::1")
            self.far = self.lab.host("far")
            self.lab.join(self.far, "eth0", self.router, "far0", offloads=False)
            for last in (2, 3, 4):
                self.far.ip(f"addr add 10.3.0.{last}/24 dev eth0")
        except BaseException:
            self.lab.__exit__()
            raise
        return self

    def __exit__(self, *error):
        for one in self.sockets:
            one.close()
        super().__exit__(*error)

    def start(self, before_addresses=None):
        super().start(before_addresses)
        for address, link in STATIONS.items():
            self.router.ip(f"neigh add {address} lladdr {link} dev sl-vx nud permanent")
        self.own = self.router.mac("sl-vx")
        self.ends = {last: self.open(self.far, f"10.3.0.{last}", 4789) for last in (2, 3, 4)}
        self.receiver, self.denied = (self.open(self.client, "10.1.0.2", port) for port in (RECEIVED, DENIED))
        for address in ("10.100.0.2", "2001:db8:200::2"):
            assert wait_until(lambda address=address: self.reaches(address)), f"{address}: {self.state()}"
        # One alone may be the kernel's, which forwards what comes before the twins' links and neighbours are known.
        assert wait_until(lambda: all([self.arrives(self.inner()) for _ in range(3)])), self.state()
        assert wait_until(lambda: self.metric("vxlan_unresolved") == 0), self.state()
        return self.gateway

    def state(self):
        return "\n".join([self.gateway.log(), str(self.gateway.drops()), self.router.ip("neigh"), self.server.ip("neigh"), str(self.metrics())])

    def open(self, host, address, port):
        one = host.udp(address, port)
        one.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        one.setsockopt(socket.IPPROTO_IP, IP_RECVTTL, 1)
        self.sockets.append(one)
        return one

    def inner(self, port=RECEIVED, tos=0, source=LEARNED, to=None, sender="10.103.0.21", size=0):
        """A datagram for the client, in its frame to the tunnel's port `vx`, or to the link address `to`; each with a payload of its
        own, of `size` bytes at least, so that none is taken for another that came late."""
        self.payload = (b"inner %d " % next(self.numbers)).ljust(size, b".")
        frame = bytearray(udp4(self.payload, port, sender, "10.1.0.2", to=to or self.own))
        frame[6:12] = mac(source)
        frame[15] = tos
        frame[24:26] = bytes(2)
        frame[24:26] = struct.pack("!H", checksum(bytes(frame[14:34])))
        return bytes(frame)

    def send(self, content, end=2, tos=0, checksum=True):
        """A datagram from 10.3.0.`end` to the tunnel `vx`."""
        one = self.ends[end]
        one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
        one.setsockopt(socket.SOL_SOCKET, SO_NO_CHECK, 0 if checksum else 1)
        one.sendto(content, ("10.3.0.1", 4789))

    def send6(self, content, checksum=True):
        """A datagram from the server to the tunnel `vx6`, beside the kernel's device."""
        def send():
            with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
                one.setsockopt(socket.IPPROTO_UDP, UDP_NO_CHECK6_TX, 0 if checksum else 1)
                one.sendto(content, ("2001:db8:2::1", 4789))

        self.server.inside(send)

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
        reported = {kind: data[0] for _, kind, data in about}
        return payload, reported[socket.IP_TOS], reported[socket.IP_TTL], sender

    def client_sends(self, address, tos=0, size=20):
        def send():
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
                one.bind(("10.1.0.2", 5000))
                one.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
                one.sendto(bytes(size), (address, 9))

        self.client.inside(send)

    def out(self, end, wait=2.0):
        """The next datagram for one of the made-up stations at 10.3.0.`end`, past what hosts send by themselves."""
        while (got := self.received(self.ends[end], wait)) is not None:
            if got[0][8 + 12:8 + 14] == b"\x08\x00" and got[0][8 + 14 + 9] == 17:
                return got
        return None


def dropped(network, reason, act):
    """How many frames more are dropped for this reason once `act()` has been done."""
    before = network.gateway.drops().get(reason, 0)
    act()
    wait_until(lambda: network.gateway.drops().get(reason, 0) > before, 3)
    return network.gateway.drops().get(reason, 0) - before
