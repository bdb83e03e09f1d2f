"""chain = ["mirror", "route"]: what passes between two hosts is copied to a third, who captures it."""

import base64
import json
import os
import struct

import pytest
from capture import Capture
from gateway import SLUICE
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
        chain = ["mirror", *(name for name in ("acl", "srtp") if name in configuration), "route"]
        super().__init__(folder, ports=[*PORTS, ("monitor0", device or "mon0", "")], chain=chain, more=session(*lines), **configuration)

    def __enter__(self):
        super().__enter__()
        self.watcher = self.lab.host("watcher")
        self.lab.join(self.watcher, "eth0", self.router, "mon0")
        return self

    def change(self, *lines, rules=()):
        """Puts other sessions into the file and reloads; the answer."""
        return self.gateway.reload(self.gateway.text().split("\n[mirror]\n")[0] + session(*lines, rules=rules))

    def mirrored(self):
        """Metrics of the element, without "mirror_" and "_frames"."""
        return {name: self.metric(f"mirror_{name}_frames") for name in ("copied", "cut", "skipped", "lost")}

    def misses(self):
        return sum(lane["misses"] for lane in self.gateway.stats()["lanes"])

    def ping(self, count=1, size=400):
        return self.client.run(f"ping -n -c {count} -i 0.01 -W 1 -s {size} -p {MARK.hex()} {SERVER4}", check=False)

    def copies(self, send, offered):
        """Copies of ICMP that the watcher has of what `send()` causes, of which the sessions choose so many frames. Those that are
        missing have been counted: a program that is slow skips some."""
        before = self.mirrored()

        def missing():
            after = self.mirrored()
            return sum(after[name] - before[name] for name in ("skipped", "lost"))

        with Capture(self.watcher, "eth0") as capture:
            send()
            wait_until(lambda: len(pings(capture)) + missing() >= offered, 3)
            # What is sent behind it says that no more copies are on their way.
            stats = self.gateway.stats()
            assert stats["conserved"], stats
        found = pings(capture)
        assert offered - missing() <= len(found) <= offered, (len(found), before, self.mirrored())
        return found


def pings(capture):
    return [frame for frame in capture.frames if frame[12:14] == b"\x08\x00" and frame[23] == 1 and MARK in frame]


def kind(frame):
    """8: a request, 0: a reply."""
    return frame[34]


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    # Time enough for a copy of every frame, whatever else the machine does.
    with Mirrored(tmp_path_factory.mktemp("mirror"), 'from = ["lan"]', acl="", engine=['deadline = "1s"']) as topology:
        topology.start()
        yield topology


@pytest.mark.parametrize("port, direction, twin, hops", [("lan", "rx", "sl-lan", 64), ("wan", "tx", "sl-wan", 63)])
def test_copies_are_frames_as_they_came_in_or_leave(network, port, direction, twin, hops):
    network.change(f'from = ["{port}"]', f'direction = "{direction}"')
    frames = network.copies(lambda: network.ping(3), 3)
    assert [kind(frame) for frame in frames] == [8, 8, 8]
    router = network.router.mac(twin)
    ends = (router, network.client.mac()) if direction == "rx" else (network.server.mac(), router)
    assert {(frame[:6], frame[6:12]) for frame in frames} == {ends}
    assert {len(frame) for frame in frames} == {442}
    assert {frame[22] for frame in frames} == {hops}


PING = f"ping -n -c 2 -i 0.2 -p {MARK.hex()}"


@pytest.mark.parametrize("direction, host, command, kinds", [
    pytest.param("both", "client", f"{PING} {SERVER4}", [0, 0, 8, 8], id="both"),
    pytest.param("tx", "router", f"{PING} -I {ROUTER_LAN4} {CLIENT4}", [8, 8], id="what the host sends"),
    pytest.param("rx", "client", f"{PING} {ROUTER_LAN4}", [8, 8], id="what the host gets"),
])
def test_a_direction_is_of_the_port(network, direction, host, command, kinds):
    network.change('from = ["lan"]', f'direction = "{direction}"')
    frames = network.copies(lambda: getattr(network, host).run(command), len(kinds))
    assert sorted(kind(frame) for frame in frames) == kinds


def test_copies_are_cut_and_counted(network):
    network.change('from = ["lan"]', 'direction = "rx"', "length = 64")
    before = network.mirrored()
    frames = network.copies(lambda: network.ping(3), 3)
    assert {len(frame) for frame in frames} == {64}
    grown = {name: value - before[name] for name, value in network.mirrored().items()}
    assert len(frames) <= grown["cut"] <= grown["copied"], grown


def test_each_session_shows_its_own_copies(network):
    two = session('from = ["lan"]', 'direction = "rx"', "length = 64") + session('from = ["wan"]', 'direction = "tx"').replace(
        "[mirror]\n", "").replace('"watch"', '"other"')
    assert "2 mirror sessions are in force" in network.gateway.reload(network.gateway.text().split("\n[mirror]\n")[0] + two)

    def counts():
        view = next(one["view"] for one in json.loads(network.gateway.get("/api/v1/functions")) if one["name"] == "mirror")
        return {one["name"]: one["copied"] + one["skipped"] for one in view["sessions"]}

    assert counts()["other"] == 0
    before = counts()
    network.ping(5)
    assert wait_until(lambda: all(counts()[name] - before[name] >= 5 for name in ("watch", "other")), 3), counts()
    assert "other" in network.gateway.control("functions")


def test_only_what_a_rule_matches_is_copied(network):
    assert "in force" in network.change('direction = "both"', 'from = ["lan"]', rules=['protocol = "icmp"\nicmp_type = "echo-reply"'])
    frames = network.copies(lambda: network.ping(3), 3)
    assert [kind(frame) for frame in frames] == [0, 0, 0]


def test_what_a_later_element_drops_is_copied(network):
    network.change('from = ["lan"]', 'direction = "rx"')
    text = network.gateway.text()
    try:
        assert "1 ACL rule is in force" in network.gateway.reload(text.replace("\n[acl]\n", "\n[acl]\n" + ACL_DENY))
        before = network.gateway.drops().get("acl_denied", 0)
        assert len(network.copies(lambda: network.ping(2), 2)) == 2
        assert network.gateway.drops()["acl_denied"] - before == 2
    finally:
        network.gateway.reload(text)


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


def test_a_port_that_is_used_for_something_else_is_no_monitor(network):
    network.change('from = ["lan"]', 'direction = "rx"')
    text = network.gateway.text()
    try:
        assert 'to = "wan": "wan" has a twin' in network.gateway.reload(text.replace('to = "monitor0"', 'to = "wan"'))
        assert network.client.reaches(SERVER4)
    finally:
        network.gateway.reload(text)


def test_a_chain_without_a_session_is_noted(network, tmp_path):
    text, path = network.gateway.text(), tmp_path / "none.toml"
    path.write_text(text.split("\n[mirror]\n")[0], encoding="utf-8")
    assert ": [mirror] has no session" in network.router.run([SLUICE, "check", path])
    path.write_text(text, encoding="utf-8")
    assert "no session" not in network.router.run([SLUICE, "check", path])


def test_a_reload_without_sessions_ends_them(network):
    assert "0 mirror sessions are in force" in network.gateway.reload(network.gateway.text().split("\n[mirror]\n")[0])
    assert not network.copies(lambda: network.ping(2), 0)


def test_a_blocked_monitor_costs_originals_nothing(tmp_path):
    """The port takes no frame, for nobody is at the other end."""
    blocked = f"net_memif9,role=server,id=0,socket={tmp_path}/memif.sock,socket-abstract=no"
    with Mirrored(tmp_path, 'from = ["lan", "wan"]', device=blocked) as network:
        network.start()
        network.change()
        network.ping(50)
        before, misses = network.mirrored(), network.misses()
        assert ", 0% packet loss" in network.ping(150)
        after, stats = network.mirrored(), network.gateway.stats()
        lost = after["lost"] - before["lost"]
        assert lost >= 4 * 150, (before, after)
        assert stats["conserved"]
        assert network.gateway.drops()["mirror_full"] >= lost
        assert "tx_full" not in network.gateway.drops()
        assert network.misses() == misses, "misses rise with a blocked monitor"


def test_copies_in_front_of_srtp_are_in_clear(tmp_path):
    """And what leaves by the wire is not."""
    key = base64.b64encode(os.urandom(30)).decode()
    stream = (f'[[srtp.stream]]\naction = "protect"\nsource = "{CLIENT4}"\nsource_port = 5004\ndestination = "{SERVER4}"\n'
              f'destination_port = 5004\ncrypto = "1 AES_CM_128_HMAC_SHA1_80 inline:{key}"\n')
    with Mirrored(tmp_path, 'from = ["lan"]', 'direction = "rx"', srtp=stream, engine=['deadline = "1s"', 'device = "cpu"']) as network:
        network.start()
        with network.client.udp(CLIENT4, 5004) as sender, network.server.udp(SERVER4, 5004) as listener, Capture(network.watcher, "eth0") as capture:
            for sequence in range(20):
                packet = struct.pack("!BBHII", 0x80, 96, sequence, 9, 7) + MARK * 40
                sender.sendto(packet, (SERVER4, 5004))
                sealed = listener.recv(2048)
                assert MARK not in sealed and len(sealed) == len(packet) + 10
            assert network.mirrored()["skipped"] == 0
            assert wait_until(lambda: sum(MARK * 40 in frame for frame in capture.frames) == 20, 3), network.mirrored()
        assert network.gateway.stats()["conserved"]
