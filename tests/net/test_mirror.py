"""chain = ["mirror", "route"]: what passes between two hosts is copied to a third, who captures it."""

import pytest
from film import Capture
from gateway import Gateway, config
from hosts import wait_until
from topology import CLIENT4, PORTS, ROUTER_LAN4, SERVER4, Topology

MARK = bytes.fromhex("5a17c0de")  # what pings of a test carry
ACL_DENY = '[[acl.rule]]\nprotocol = "icmp"\nsource = "10.1.0.2"\naction = "deny"\n'


def session(*lines, rules=()):
    text = "\n[mirror]\n[[mirror.session]]\n" + "".join(f"{line}\n" for line in ('name = "watch"', 'to = "monitor0"', *lines))
    return text + "".join(f"[[mirror.session.rule]]\n{rule}\n" for rule in rules)


class Mirrored(Topology):
    """With a port that a host `watcher` sees, or one of `device`."""

    def __init__(self, folder, *lines, device=None, **configuration):
        super().__init__(folder, chain=["mirror", *(["acl"] if "acl" in configuration else []), "route"], **configuration)
        self.lines, self.device = lines, device

    def __enter__(self):
        super().__enter__()
        self.watcher = self.lab.host("watcher")
        self.lab.join(self.watcher, "eth0", self.router, "mon0")
        return self

    def start(self, before_addresses=None):
        device = self.device or "net_af_packet9,iface=mon0"
        text = config(self.ports, **self.configuration)
        self.gateway = Gateway(self.router, self.folder,
                               text + f'\n[[port]]\nname = "monitor0"\ndevice = "{device}"\n' + session(*self.lines)).start()
        self.address()
        return self.gateway

    def change(self, *lines, rules=()):
        """Puts other sessions into the file and reloads; the answer."""
        path = self.gateway.config_path
        path.write_text(path.read_text(encoding="utf-8").split("\n[mirror]\n")[0] + session(*lines, rules=rules), encoding="utf-8")
        return self.gateway.control("reload", check=False)

    def figures(self):
        """Those of the element, without "mirror_" and "_frames"."""
        names = {f"mirror_{name}_frames": name for name in ("copied", "cut", "skipped", "lost")}
        return {names[one["name"]]: one["value"] for one in self.gateway.stats()["figures"] if one["name"] in names}

    def misses(self):
        return sum(lane["misses"] for lane in self.gateway.stats()["lanes"])

    def ping(self, count=1, size=400):
        return self.client.run(f"ping -n -c {count} -i 0.01 -W 1 -s {size} -p {MARK.hex()} {SERVER4}", check=False)

    def copies(self, send, least):
        """Copies of ICMP that the watcher has of what `send()` causes: at least so many, then a little more."""
        with Capture(self.watcher, "eth0") as capture:
            send()
            wait_until(lambda: len(pings(capture)) >= least, 3)
            # What is sent behind it says that no more copies are on their way.
            stats = self.gateway.stats()
            assert stats["conserved"], stats
        return pings(capture)


def pings(capture):
    return [frame for frame in capture.frames if frame[12:14] == b"\x08\x00" and frame[23] == 1 and MARK in frame]


def mac(host, interface="eth0"):
    return bytes.fromhex(host.run(["cat", f"/sys/class/net/{interface}/address"]).strip().replace(":", ""))


def kind(frame):
    """8: a request, 0: a reply."""
    return frame[34]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    with Mirrored(tmp_path_factory.mktemp("mirror"), 'from = ["lan"]', acl="") as topology:
        topology.start()
        yield topology


def test_rx_copies_are_frames_as_they_came_in(network):
    assert "1 mirror session is in force" in network.change('from = ["lan"]', 'direction = "rx"')
    frames = network.copies(lambda: network.ping(3), 3)
    assert [kind(frame) for frame in frames] == [8, 8, 8]
    router = bytes.fromhex(network.router_mac().replace(":", ""))
    assert {(frame[:6], frame[6:12]) for frame in frames} == {(router, mac(network.client))}
    assert {len(frame) for frame in frames} == {442}
    assert {frame[22] for frame in frames} == {64}, "the hop limit of the sender"


def test_tx_copies_are_frames_as_they_leave(network):
    network.change('from = ["wan"]', 'direction = "tx"')
    frames = network.copies(lambda: network.ping(3), 3)
    assert [kind(frame) for frame in frames] == [8, 8, 8]
    router = bytes.fromhex(network.router_mac("sl-wan").replace(":", ""))
    assert {(frame[:6], frame[6:12]) for frame in frames} == {(mac(network.server), router)}
    assert {frame[22] for frame in frames} == {63}


def test_both_copies_requests_and_replies(network):
    network.change('from = ["lan"]', 'direction = "both"')
    frames = network.copies(lambda: network.ping(3), 6)
    assert sorted(kind(frame) for frame in frames) == [0, 0, 0, 8, 8, 8]


def test_what_the_host_sends_is_copied(network):
    network.change('from = ["lan"]', 'direction = "tx"')
    frames = network.copies(lambda: network.router.run(f"ping -n -c 2 -i 0.2 -p {MARK.hex()} -I {ROUTER_LAN4} {CLIENT4}"), 2)
    assert [kind(frame) for frame in frames] == [8, 8]


def test_what_the_host_gets_is_copied(network):
    network.change('from = ["lan"]', 'direction = "rx"')
    frames = network.copies(lambda: network.client.run(f"ping -n -c 2 -i 0.2 -p {MARK.hex()} {ROUTER_LAN4}"), 2)
    assert [kind(frame) for frame in frames] == [8, 8]


def test_copies_are_cut_and_counted(network):
    network.change('from = ["lan"]', 'direction = "rx"', "length = 64")
    before = network.figures()
    frames = network.copies(lambda: network.ping(3), 3)
    assert {len(frame) for frame in frames} == {64}
    after = network.figures()
    assert after["copied"] - before["copied"] >= 3
    assert after["cut"] - before["cut"] >= 3
    assert after["lost"] == after["skipped"] == 0


def test_only_what_a_rule_matches_is_copied(network):
    assert "in force" in network.change('direction = "both"', 'from = ["lan"]', rules=['protocol = "icmp"\nicmp_type = "echo-reply"'])
    frames = network.copies(lambda: network.ping(3), 3)
    assert [kind(frame) for frame in frames] == [0, 0, 0]


def test_what_a_later_element_drops_is_copied(network):
    network.change('from = ["lan"]', 'direction = "rx"')
    text = network.gateway.config_path.read_text(encoding="utf-8")
    try:
        network.gateway.config_path.write_text(text.replace("\n[acl]\n", "\n[acl]\n" + ACL_DENY), encoding="utf-8")
        assert "1 ACL rule is in force" in network.gateway.control("reload", check=False)
        before = network.gateway.drops().get("acl_denied", 0)
        assert len(network.copies(lambda: network.ping(2), 2)) == 2
        assert network.gateway.drops()["acl_denied"] - before == 2
    finally:
        network.gateway.config_path.write_text(text, encoding="utf-8")
        network.gateway.control("reload")


def test_what_comes_in_by_the_monitor_port_is_dropped(network):
    before = network.gateway.drops().get("mirror_port", 0)
    network.watcher.ip("addr replace 10.9.0.2/24 dev eth0")
    network.watcher.run("ping -n -c 2 -i 0.1 -W 1 10.9.0.1", check=False)
    assert wait_until(lambda: network.gateway.drops().get("mirror_port", 0) > before, 3)
    assert network.gateway.stats()["conserved"]


@pytest.mark.parametrize("line, mistake", [
    ('from = ["monitor0"]', "is the port that the copies leave by"),
    ('from = ["dmz"]', 'there is no port "dmz"'),
    ("length = 63", "64 bytes at least"),
])
def test_a_mistake_leaves_the_sessions_in_force(network, line, mistake):
    network.change('from = ["lan"]', 'direction = "rx"')
    assert mistake in network.change(line)
    assert len(network.copies(network.ping, 1)) == 1


def test_a_reload_without_sessions_ends_them(network):
    path = network.gateway.config_path
    path.write_text(path.read_text(encoding="utf-8").split("\n[mirror]\n")[0], encoding="utf-8")
    assert "0 mirror sessions are in force" in network.gateway.control("reload")
    assert not network.copies(lambda: network.ping(2), 1)


def test_a_blocked_monitor_costs_originals_nothing(tmp_path):
    """The port takes no frame, for nobody is at the other end."""
    blocked = f"net_memif9,role=server,id=0,socket={tmp_path}/memif.sock,socket-abstract=no"
    with Mirrored(tmp_path, 'from = ["lan", "wan"]', device=blocked) as network:
        network.start()
        network.change()
        network.ping(200)
        before, misses = network.figures(), network.misses()
        assert ", 0% packet loss" in network.ping(500)
        after, stats = network.figures(), network.gateway.stats()
        lost = after["lost"] - before["lost"]
        assert lost >= 4 * 500, (before, after)
        assert stats["conserved"]
        assert network.gateway.drops()["mirror_full"] >= lost
        assert "tx_full" not in network.gateway.drops()
        assert network.misses() == misses, "misses rise with a blocked monitor"
