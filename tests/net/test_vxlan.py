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

import pytest
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
    for target in ("10.100.0.2", "10.200.0.2", "2001:db8:200::2"):
        assert ", 0% packet loss" in tunnels.client.run(f"ping -n -c 5 -i 0.01 -W 2 {target}")
    for target in ("10.1.0.2", "2001:db8:1::2"):
        assert ", 0% packet loss" in tunnels.server.run(f"ping -n -c 5 -i 0.01 -W 2 {target}")
