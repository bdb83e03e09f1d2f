"""A bridge whose one end is a tunnel of the element `vxlan`; the other ends are the kernel's own vxlan devices.

        client                       router                                   server
        10.100.0.1/24  lan0 | lan = bridge = vx                  | wan0       eth0 10.2.0.2, vx 10.100.0.2/24
                            |    10.2.0.1 == VNI 100 == 10.2.0.2 |            other
                            |                           10.3.0.2 | wan2       eth0 10.3.0.2, vx 10.100.0.3/24
"""

import pytest
from gateway import Gateway, config
from hosts import Lab, iperf3, wait_until
from tunnels import dropped

PORTS = [("lan", "lan0", "", 'peer = "vx"'), ("vx", "vxlan", "", 'peer = "lan"'),
         ("wan", "wan0", "sl-wan", 'address = ["10.2.0.1/24"]'), ("wan2", "wan2", "sl-wan2", 'address = ["10.3.0.1/24"]')]
TUNNEL = """
[[vxlan.tunnel]]
port = "vx"
vni = 100
local = "10.2.0.1"
remotes = ["10.2.0.2", "10.3.0.2"]
df = "set"
"""
BRIDGED = config(PORTS, chain=["vxlan", "bridge"], more=TUNNEL)


class Bridged:
    """The picture above."""

    def __init__(self, folder):
        self.folder, self.lab, self.gateway = folder, Lab(), None

    def __enter__(self):
        try:
            self.build()
        except BaseException:
            self.lab.__exit__()
            raise
        return self

    def __exit__(self, *error):
        try:
            if self.gateway and not any(error):
                self.gateway.interrupt()
        finally:
            self.lab.__exit__()

    def figures(self):
        return self.gateway.figures()

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
            assert wait_until(lambda address=address: self.client.reaches(address)), (
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
    assert bridged.client.reaches("10.100.0.2", 10)
    after = bridged.figures()
    assert after["vxlan_out_frames"] - before["vxlan_out_frames"] >= 10
    assert after["vxlan_flooded_frames"] - before["vxlan_flooded_frames"] < 10, "ARP at most"


def test_bridged_hosts_use_the_tunnel_in_full(bridged):
    for host, address in ((bridged.client, "10.100.0.3"), (bridged.server, "10.100.0.1")):
        assert host.reaches(address, 3, 1422, "-M", "do"), host.label
    for back in ((), ("-R",)):
        assert iperf3(bridged.client, bridged.server, "10.100.0.2", *back)["sum_received"]["bytes"] > 1_000_000


def test_what_is_too_long_for_the_underlay_is_dropped_by_name(bridged):
    bridged.client.ip("link set eth0 mtu 1500")
    try:
        assert dropped(bridged, "vxlan_too_long",
                       lambda: bridged.client.run("ping -n -c 1 -W 1 -M do -s 1423 10.100.0.2", check=False)) == 1
    finally:
        bridged.client.ip("link set eth0 mtu 1450")


def test_a_reload_changes_remotes(bridged):
    one = BRIDGED.replace('"10.2.0.2", "10.3.0.2"', '"10.3.0.2"')
    try:
        assert "the tunnels are in force" in bridged.gateway.reload(one)
        assert not bridged.client.reaches("10.100.0.2")
        assert bridged.client.reaches("10.100.0.3"), "its station is still known"
        assert dropped(bridged, "vxlan_unknown_remote", lambda: bridged.server.run("ping -n -c 1 -W 1 10.100.0.1", check=False)) >= 1
        nobody = one + f'\n[[vxlan.tunnel.fdb]]\nmac = "{bridged.server.run("cat /sys/class/net/vx/address").strip()}"\nremote = "10.2.0.99"\n'
        assert "the tunnels are in force" in bridged.gateway.reload(nobody)
        assert dropped(bridged, "vxlan_unresolved", lambda: bridged.client.reaches("10.100.0.2")) >= 1
        assert wait_until(lambda: bridged.figures()["vxlan_unresolved"] == 1)
    finally:
        assert "the tunnels are in force" in bridged.gateway.reload(BRIDGED)
    assert wait_until(lambda: bridged.client.reaches("10.100.0.2"))


def test_a_reload_with_a_mistake_changes_nothing(bridged):
    try:
        assert "is the tunnel's own address" in bridged.gateway.reload(BRIDGED.replace('"10.3.0.2"]', '"10.2.0.1"]'))
        assert "max_fdb is memory" in bridged.gateway.reload(BRIDGED + "\n[vxlan]\nmax_fdb = 99\n")
        assert bridged.client.reaches("10.100.0.3")
    finally:
        bridged.gateway.reload(BRIDGED)
