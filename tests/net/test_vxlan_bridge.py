"""A bridge whose one end is a tunnel of the element `vxlan`; the other ends are the kernel's own vxlan devices.

        client                       router                                   server
        10.100.0.1/24  lan0 | lan = bridge = vx                  | wan0       eth0 10.2.0.2, vx 10.100.0.2/24
                            |    10.2.0.1 == VNI 100 == 10.2.0.2 |            other
                            |                           10.3.0.2 | wan2       eth0 10.3.0.2, vx 10.100.0.3/24
                            |                                    | mon0       eth0 watcher, who gets copies
"""

import re

import pytest
from capture import Capture
from frames import ethernet
from gateway import Gateway, config
from hosts import Lab, iperf3, wait_until
from tunnels import dropped, mac

EXPERIMENT = 0x88B5  # an EtherType for such

PORTS = [("lan", "lan0", "", 'peer = "vx"'), ("vx", "vxlan", "", 'peer = "lan"'),
         ("wan", "wan0", "sl-wan", 'address = ["10.2.0.1/24"]'), ("wan2", "wan2", "sl-wan2", 'address = ["10.3.0.1/24"]')]
TUNNEL = """
[vxlan]
max_fdb = 8
ageing = 300

[[vxlan.tunnel]]
port = "vx"
vni = 100
local = "10.2.0.1"
remotes = ["10.2.0.2", "10.3.0.2"]
df = "set"
"""
BRIDGED = config([*PORTS, ("monitor0", "mon0", "")], chain=["vxlan", "mirror", "bridge"], more=TUNNEL)
MARK = bytes.fromhex("5a17c0de")  # what pings carry whose copies are looked for


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

    def metrics(self):
        return self.gateway.metrics()

    def build(self):
        self.client, self.router, self.server, self.other, self.watcher = (
            self.lab.host(name) for name in ("client", "router", "server", "other", "watcher"))
        for host in (self.client, self.server, self.other):
            host.sysctl(net__ipv6__conf__default__accept_ra=0)  # and none asks for one
        self.watcher.sysctl(net__ipv6__conf__default__disable_ipv6=1)  # who says nothing at all
        self.lab.join(self.client, "eth0", self.router, "lan0")
        self.lab.join(self.server, "eth0", self.router, "wan0")
        self.lab.join(self.other, "eth0", self.router, "wan2")
        self.lab.join(self.watcher, "eth0", self.router, "mon0")
        self.client.ip("addr add 10.100.0.1/24 dev eth0")
        self.client.ip("addr add 2001:db8:100::1/64 dev eth0 nodad")
        self.client.ip("link set eth0 mtu 1450")
        for number, host in ((2, self.server), (3, self.other)):
            host.ip(f"addr add 10.{number}.0.2/24 dev eth0")
            host.ip(f"route add 10.2.0.1/32 via 10.{number}.0.1 dev eth0 onlink")
            host.ip(f"link add vx type vxlan id 100 local 10.{number}.0.2 remote 10.2.0.1 dstport 4789 dev eth0")
            host.ip(f"addr add 10.100.0.{number}/24 dev vx")
            host.ip(f"addr add 2001:db8:100::{number}/64 dev vx nodad")
            host.ip("link set vx up")
        self.gateway = Gateway(self.router, self.folder, BRIDGED).start()
        for address in ("10.100.0.2", "10.100.0.3"):
            assert wait_until(lambda address=address: self.client.reaches(address)), (
                f"{address}: nothing comes through 10 s after the start:\n{self.gateway.log()}\n{self.gateway.drops()}\n"
                f"{self.router.ip('neigh')}\n{self.metrics()}")


@pytest.fixture(scope="module")
def bridged(tmp_path_factory):
    with Bridged(tmp_path_factory.mktemp("vxlan-bridge")) as made:
        yield made


def test_what_has_no_known_place_goes_to_all(bridged):
    """And what has one to that remote alone."""
    before = bridged.metrics()
    assert before["vxlan_flooded_frames"] >= 2 and before["vxlan_fdb_entries"] >= 2, before
    assert bridged.client.reaches("10.100.0.2", 10)
    after = bridged.metrics()
    assert after["vxlan_out_frames"] - before["vxlan_out_frames"] >= 10
    assert after["vxlan_flooded_frames"] - before["vxlan_flooded_frames"] < 10, "ARP at most"


def test_bridged_hosts_use_the_tunnel_in_full(bridged):
    for host, address in ((bridged.client, "10.100.0.3"), (bridged.server, "10.100.0.1")):
        assert wait_until(lambda host=host, address=address: host.reaches(address, 3, 1422, "-M", "do")), host.label
    for back in ((), ("-R",)):
        assert iperf3(bridged.client, bridged.server, "10.100.0.2", *back)["sum_received"]["bytes"] > 1_000_000


@pytest.fixture
def long_frames(bridged):
    """A client whose MTU is larger than what the tunnels carry, and who does not know that yet; the server asks for more, too."""
    bridged.client.ip("link set eth0 mtu 1500")
    bridged.server.ip("route change 10.100.0.0/24 dev vx src 10.100.0.2 advmss 1460")
    yield
    bridged.client.ip("link set eth0 mtu 1450")
    bridged.server.ip("route change 10.100.0.0/24 dev vx src 10.100.0.2")
    for family in ("-4", "-6"):
        bridged.client.ip(f"{family} route flush cache")


@pytest.mark.parametrize("address, headers", [("10.100.0.2", 28), ("2001:db8:100::2", 48)])
def test_the_sender_of_what_is_too_long_is_notified(bridged, long_frames, address, headers):
    """And sends what fits from then on: the error comes from the address that it sent to, as a bridge has none."""
    answered = bridged.metrics()["vxlan_size_answers"]

    def send():
        said = bridged.client.run(f"ping -n -c 1 -W 1 -M do -s {1450 - headers + 1} {address}", check=False)
        assert re.search(rf"From {address} .*mtu.? ?=? ?1450", said), said

    assert dropped(bridged, "vxlan_too_long", send) == 1
    assert bridged.metrics()["vxlan_size_answers"] == answered + 1
    assert bridged.client.reaches(address, 2, 3000), "in pieces of what fits"


def test_tcp_finds_the_size_that_fits(bridged, long_frames):
    before = bridged.metrics()["vxlan_size_answers"]
    assert iperf3(bridged.client, bridged.server, "10.100.0.2")["sum_received"]["bytes"] > 1_000_000
    assert bridged.metrics()["vxlan_size_answers"] > before
    assert bridged.gateway.stats()["conserved"]


def test_the_sender_of_what_may_be_cut_up_hears_nothing(bridged, long_frames):
    """Sluice cuts nothing up: it is dropped by name."""
    before = bridged.metrics()["vxlan_size_answers"]
    assert dropped(bridged, "vxlan_too_long", lambda: bridged.client.run("ping -n -c 1 -W 1 -M dont -s 1423 10.100.0.2", check=False)) == 1
    assert bridged.metrics()["vxlan_size_answers"] == before


def station(number):
    return f"02:00:00:00:0b:{number:02x}"


def say(bridged, number):
    """The station behind the kernel's device speaks to everyone."""
    bridged.server.send_frames([ethernet(EXPERIMENT, to=b"\xff" * 6, source=mac(station(number))) + bytes(46)], "vx")


def copies_of_one_for(bridged, number):
    """How many remotes get a frame that the client sends to a station; the server is always one of them."""
    before = bridged.metrics()
    frame = ethernet(EXPERIMENT, to=mac(station(number)), source=bridged.client.mac()) + number.to_bytes(46, "big")
    with Capture(bridged.server, "vx") as capture:
        bridged.client.send_frames([frame])
        assert wait_until(lambda: frame in capture.frames, 3), bridged.gateway.drops()
    after = bridged.metrics()
    return max(after["vxlan_flooded_frames"] - before["vxlan_flooded_frames"], 1)


def forget_all(bridged):
    """By a time in which none of them speaks: hosts ask after neighbours that they know."""
    for host in (bridged.client, bridged.server, bridged.other):
        host.ip("neigh flush all")
    assert "the tunnels are in force" in bridged.gateway.reload(BRIDGED.replace("ageing = 300", "ageing = 1"))
    try:
        assert wait_until(lambda: bridged.metrics()["vxlan_fdb_entries"] == 0, 10), bridged.metrics()
    finally:
        assert "the tunnels are in force" in bridged.gateway.reload(BRIDGED)


def test_a_silent_station_is_forgotten_and_learned_again(bridged):
    forget_all(bridged)
    assert copies_of_one_for(bridged, 1) == 2, "nobody knows where it is"
    say(bridged, 1)
    assert wait_until(lambda: bridged.metrics()["vxlan_fdb_entries"] == 1, 3), bridged.metrics()
    assert copies_of_one_for(bridged, 1) == 1
    forget_all(bridged)
    assert copies_of_one_for(bridged, 1) == 2


def test_a_full_table_floods_what_it_has_no_place_for(bridged):
    """Eight places, against twenty stations behind the kernel's device; once those are silent there is capacity for others."""
    forget_all(bridged)
    full = bridged.metrics()["vxlan_fdb_full"]
    for number in range(1, 21):
        say(bridged, number)
    assert wait_until(lambda: bridged.metrics()["vxlan_fdb_full"] - full == 20 - 8, 5), bridged.metrics()
    assert bridged.metrics()["vxlan_fdb_entries"] == 8
    copies = [copies_of_one_for(bridged, number) for number in range(1, 21)]
    assert sorted(copies) == [1] * 8 + [2] * 12, copies
    forget_all(bridged)
    for number in range(21, 29):
        say(bridged, number)
    assert wait_until(lambda: bridged.metrics()["vxlan_fdb_entries"] == 8, 5), bridged.metrics()
    assert [copies_of_one_for(bridged, number) for number in range(21, 29)] == [1] * 8


def test_a_reload_changes_remotes(bridged):
    one = BRIDGED.replace('"10.2.0.2", "10.3.0.2"', '"10.3.0.2"')
    known = f"10.100.0.2 lladdr {bridged.server.run('cat /sys/class/net/vx/address').strip()} dev eth0"
    bridged.client.ip(f"neigh replace {known} nud permanent")
    try:
        assert "the tunnels are in force" in bridged.gateway.reload(one)
        assert not bridged.client.reaches("10.100.0.2")
        assert bridged.client.reaches("10.100.0.3"), "its station is still known"
        assert dropped(bridged, "vxlan_unknown_remote", lambda: bridged.server.run("ping -n -c 1 -W 1 10.100.0.1", check=False)) >= 1
        nobody = one + f'\n[[vxlan.tunnel.fdb]]\nmac = "{bridged.server.run("cat /sys/class/net/vx/address").strip()}"\nremote = "10.2.0.99"\n'
        assert "the tunnels are in force" in bridged.gateway.reload(nobody)
        assert dropped(bridged, "vxlan_unresolved", lambda: bridged.client.reaches("10.100.0.2")) >= 1
        assert wait_until(lambda: bridged.metrics()["vxlan_unresolved"] == 1)
        assert wait_until(lambda: "vxlan: 10.2.0.99 cannot be reached from 10.2.0.1: nobody answers" in bridged.gateway.why_degraded(), 8)
        assert 'sluice_ailments{check="function_ailing"} 1' in bridged.gateway.get("/metrics")
    finally:
        assert "the tunnels are in force" in bridged.gateway.reload(BRIDGED)
        bridged.client.ip(f"neigh del {known}")
    assert wait_until(lambda: bridged.client.reaches("10.100.0.2"))
    assert wait_until(lambda: bridged.gateway.why_degraded() == "", 5), bridged.gateway.why_degraded()


def test_a_reload_with_a_mistake_changes_nothing(bridged):
    try:
        assert "is the tunnel's own address" in bridged.gateway.reload(BRIDGED.replace('"10.3.0.2"]', '"10.2.0.1"]'))
        assert "max_fdb is memory" in bridged.gateway.reload(BRIDGED.replace("max_fdb = 8", "max_fdb = 99"))
        assert bridged.client.reaches("10.100.0.3")
    finally:
        bridged.gateway.reload(BRIDGED)


def mirrored(*lines):
    return BRIDGED + "\n[mirror]\n[[mirror.session]]\nname = \"watch\"\n" + "".join(f"{line}\n" for line in lines)


def kinds(capture):
    """Of the marked pings that the watcher has: "outer" in a tunnel, or the kind of ICMP, 8 a request and 0 a reply."""
    return {"outer" if frame[23] == 17 else frame[34] for frame in capture.frames if frame[12:14] == b"\x08\x00" and MARK in frame}


@pytest.mark.parametrize("port, direction, expected", [
    ("vx", "rx", {0}), ("vx", "tx", {8}), ("vx", "both", {0, 8}), ("wan", "tx", {"outer"}), ("wan", "rx", set()),
])
def test_a_mirror_of_a_tunnels_port_has_inner_frames(bridged, port, direction, expected):
    """And one of the port under it outer frames, as they leave; those that come in the tunnel's end has taken out by then."""
    ping = f"ping -n -c 2 -i 0.1 -W 1 -p {MARK.hex()}"
    try:
        assert "1 mirror session is in force" in bridged.gateway.reload(mirrored(
            f'from = ["{port}"]', f'direction = "{direction}"', 'to = "monitor0"'))
        with Capture(bridged.watcher, "eth0") as capture:
            def comes():
                bridged.client.run(f"{ping} 10.100.0.2", check=False)
                return kinds(capture) == expected

            if expected:
                assert wait_until(comes, 5), (kinds(capture), bridged.metrics())
            else:  # what is no tunnel's comes, behind what is
                bridged.client.run(f"{ping} 10.100.0.2")
                assert wait_until(lambda: bridged.server.run(f"{ping} 10.2.0.1", check=False) and kinds(capture) == {8}, 5), bridged.metrics()
            assert bridged.gateway.stats()["conserved"]
        assert kinds(capture) == (expected or {8})
    finally:
        assert "0 mirror sessions are in force" in bridged.gateway.reload(BRIDGED)


def test_copies_do_not_leave_by_a_tunnel(bridged):
    try:
        assert '"vx" is the end of a tunnel' in bridged.gateway.reload(mirrored('to = "vx"'))
        assert bridged.client.reaches("10.100.0.3")
    finally:
        bridged.gateway.reload(BRIDGED)
