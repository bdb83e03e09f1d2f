"""Intrusion prevention as its user sees it: a web server behind Sluice, a browser, attacks, alerts in files.

Inline in a bridge between two hosts of one link and inline in a router, with examples/local.rules and a few rules of its own.
"""

import errno
import http.client
import ipaddress
import json
import os
import re
import socket
import struct
import time

import pytest
from frames import ACK, PUSH, SYN, packet4
from gateway import ROOT, Gateway, config
from hosts import Lab, wait_until
from topology import SERVER4, SERVER6, Topology
from web import BIG, Web, ask, browse

LOCAL_RULES = ROOT / "examples" / "local.rules"
OWN_RULES = """
reject http any any -> any any (msg:"TEST forbidden"; flow:established,to_server; http.uri; content:"/forbidden"; sid:1; rev:1;)
alert udp any any -> any 9 (msg:"TEST a marker"; content:"flooding"; sid:2; rev:1;)
"""
ADDED_RULE = 'drop http any any -> any any (msg:"TEST new"; flow:established,to_server; http.uri; content:"/new"; sid:3; rev:1;)\n'
ATTACK = "/show?file=../../etc/passwd"


class Inspected:
    """What the tests ask of a network behind `inspect`: its files, and its traffic by `self.client` and `self.web`."""

    def write_rules(self, more=""):
        self.rules.write_text(OWN_RULES + more, encoding="utf-8")

    def lines(self):
        """Of [inspect]."""
        return [f'rules = ["{LOCAL_RULES}", "{self.rules}"]', f'eve = "{self.eve}"', f'fast = "{self.fast}"',
                "alerts_per_second = 100", "flows = 4096", 'stream_memory = "16M"', 'http_memory = "16M"']

    def name_files(self, folder):
        self.rules, self.eve, self.fast = folder / "own.rules", folder / "eve.json", folder / "fast.log"
        self.write_rules()

    def events(self, kind):
        if not self.eve.exists():
            return []
        text = self.eve.read_text(encoding="utf-8")
        whole = text[:text.rfind("\n") + 1]  # the last line may be on its way
        return [event for event in map(json.loads, whole.splitlines())
                if event["event_type"] == kind]

    def alerts(self, sid):
        return [event for event in self.events("alert") if event["alert"]["signature_id"] == sid]

    def figures(self):
        return self.gateway.figures()


class Wire(Inspected):
    """client -- Sluice as a bridge -- server, all on one link; `lossy`: both cables lose and reorder frames."""

    servers = ("10.1.0.3", "2001:db8:1::3")

    def __init__(self, folder, inspect=(), engine=(), lossy=False, prepare=lambda router: None):
        self.lab = Lab()
        self.name_files(folder)
        try:
            self.client, router, self.server = (self.lab.host(label) for label in ("client", "router", "server"))
            for host, interface in ((self.client, "lan0"), (self.server, "wan0")):
                (self.lab.join_lossy if lossy else self.lab.join)(host, "eth0", router, interface)
            for number, host in ((2, self.client), (3, self.server)):
                host.ip(f"addr add 10.1.0.{number}/24 dev eth0")
                host.ip(f"addr add 2001:db8:1::{number}/64 dev eth0 nodad")
            prepare(router)
            given = [line.split("=")[0].strip() for line in inspect]
            lines = [line for line in self.lines() if line.split("=")[0].strip() not in given] + list(inspect)
            self.gateway = Gateway(router, folder, config([("lan", "lan0", ""), ("wan", "wan0", "")], engine=engine,
                                                          size="256M", inspect=lines, last="bridge")).start()
            self.web = Web(self.server, folder)
        except BaseException:
            self.lab.__exit__()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *error):
        try:
            if not any(error):
                self.gateway.interrupt()
        finally:
            self.lab.__exit__()


class Routed(Topology, Inspected):
    """The same with a router, behind a packet filter."""

    servers = (SERVER4, SERVER6)

    def __init__(self, folder):
        self.name_files(folder)
        super().__init__(folder, inspect=self.lines(), acl="")

    def __enter__(self):
        super().__enter__()
        try:
            self.start()
            self.web = Web(self.server, self.folder)
        except BaseException:
            self.lab.__exit__()
            raise
        return self


@pytest.fixture(scope="module", params=[Wire, Routed])
def inline(request, tmp_path_factory):
    with request.param(tmp_path_factory.mktemp(request.param.__name__.lower())) as network:
        yield network


def test_on_a_wire_the_kernel_neither_merges_what_arrives_nor_answers(tmp_path):
    """A packet socket reads behind GRO: merged segments would be lost. And who is on the wire does not see the host."""
    def merges(router, interface):
        return "generic-receive-offload: on" in router.run(f"ethtool -k {interface}")

    routers = []

    def prepare(router):
        routers.append(router)
        for interface in ("lan0", "wan0"):
            router.run(f"ethtool -K {interface} gro on")
        router.ip("addr add 10.1.0.1/24 dev lan0")

    with Wire(tmp_path, prepare=prepare) as wire:
        began = time.monotonic()
        assert browse(wire.client, wire.servers[0], "/big", timeout=30) == (200, BIG)
        assert time.monotonic() - began < 10
        assert not merges(routers[0], "lan0") and not merges(routers[0], "wan0")
        assert "0 received" in wire.client.run("ping -c 2 -i 0.2 -W 1 10.1.0.1", check=False)
        assert "port lan: 'lan0' still has the address 10.1.0.1: while Sluice runs nothing that arrives here comes to it" \
            in wire.gateway.log()


@pytest.mark.parametrize("family", [0, 1], ids=["ipv4", "ipv6"])
def test_an_attack_is_dropped_with_its_flow_and_browsing_goes_on(inline, family):
    server, asked = inline.servers[family], f"{ATTACK}&family={family}"
    assert browse(inline.client, server) == (200, b"hello\n")
    dropped = inline.gateway.drops().get("inspect_dropped", 0)

    def attack_and_go_on():
        connection = http.client.HTTPConnection(server, 80, timeout=1)
        assert ask(connection, "/before") == (200, b"hello\n")
        with pytest.raises(TimeoutError):
            ask(connection, asked)
        connection.sock.sendall(b"GET /behind HTTP/1.1\r\nHost: x\r\n\r\n")
        with pytest.raises(TimeoutError):
            connection.sock.recv(100)
        connection.close()

    inline.client.inside(attack_and_go_on)
    assert browse(inline.client, server, f"/after{family}") == (200, b"hello\n")
    arrived = inline.web.requests()
    assert "/before" in arrived and f"/after{family}" in arrived
    assert asked not in arrived and "/behind" not in arrived
    assert inline.gateway.drops()["inspect_dropped"] >= dropped + 2

    of_family = [alert for alert in inline.alerts(1000002) if same(alert["dest_ip"], server)]
    assert len(of_family) == 1, of_family
    alert = of_family[0]
    assert alert["alert"]["action"] == "blocked"
    assert (alert["proto"], alert["dest_port"], alert["in_iface"]) == ("TCP", 80, "lan")
    assert f"{asked} HTTP/1.1" in alert["payload_printable"]
    assert any("[Drop]" in line and "[1:1000002:1]" in line and f"{alert['dest_ip']}:80" in line
               for line in inline.fast.read_text(encoding="utf-8").splitlines())

    def drops():
        return [event for event in inline.events("drop") if event["flow_id"] == alert["flow_id"]]

    assert wait_until(lambda: len(drops()) >= 2, 3)
    told = [(event["drop"]["reason"], event.get("alert", {}).get("signature_id")) for event in drops()]
    assert told[0] == ("rules", 1000002) and set(told[1:]) == {("flow drop", None)}, told


def same(one, other):
    return ipaddress.ip_address(one) == ipaddress.ip_address(other)


def test_what_lies_across_segments_does_not_pass_whole(inline):
    assert browse(inline.client, inline.servers[0], "/shell") in (TimeoutError, http.client.IncompleteRead)
    assert wait_until(lambda: len(inline.alerts(1000004)) == 1, 3)


@pytest.mark.parametrize("family", [0, 1], ids=["ipv4", "ipv6"])
def test_reject_tells_the_client_at_once(inline, family):
    server = inline.servers[family]
    began = time.monotonic()
    assert browse(inline.client, server, "/forbidden", timeout=10) is ConnectionResetError
    assert browse(inline.client, server, port=23, timeout=10) is ConnectionRefusedError
    told = inline.client.udp_error(server, 69, b"\0\1file\0octet\0")
    assert told in [os.strerror(number) for number in (errno.EHOSTUNREACH, errno.EACCES, errno.ECONNREFUSED)]
    assert time.monotonic() - began < 5, "each by an answer, not by a timeout"
    assert "/forbidden" not in inline.web.requests()
    assert browse(inline.client, server) == (200, b"hello\n")


@pytest.mark.parametrize("family", [0, 1], ids=["ipv4", "ipv6"])
def test_datagrams_in_fragments_are_inspected_whole(inline, family):
    server, kind = inline.servers[family], socket.AF_INET6 if family else socket.AF_INET
    # Across the end of the first fragment, which lies 1,472 or 1,440 bytes behind the UDP header.
    content = b"not in one fragment, " * 5
    evil, harmless = (bytes(1410) + part + bytes(2500) for part in (content, content.upper()))
    inline.write_rules(f'drop udp any any -> any 7000 (msg:"TEST fragments"; content:"{content.decode()}"; sid:5; rev:1;)\n')
    inline.gateway.control("reload")
    before = inline.figures()["inspect_fragments_datagrams"]
    receiver = inline.server.inside(socket.socket, kind, socket.SOCK_DGRAM)
    sender = inline.client.inside(socket.socket, kind, socket.SOCK_DGRAM)
    with receiver, sender:
        receiver.bind((server, 7000))
        receiver.settimeout(2)
        for number in range(3):
            for payload in (harmless, evil):
                sender.sendto(bytes([number]) + payload, (server, 7000))
            assert receiver.recv(5000) == bytes([number]) + harmless
        receiver.settimeout(0.5)
        with pytest.raises(TimeoutError):
            receiver.recv(5000)
    assert inline.figures()["inspect_fragments_datagrams"] == before + 6
    assert inline.figures()["inspect_fragments_refused"] == 0
    assert wait_until(lambda: len([alert for alert in inline.alerts(5) if same(alert["dest_ip"], server)]) == 3, 3)
    assert all(alert["alert"]["action"] == "blocked" and alert["dest_port"] == 7000 for alert in inline.alerts(5))
    assert " 0% packet loss" in inline.client.run(f"ping -n -i 0.05 -c 5 -W 1 -s 4000 {server}")
    inline.write_rules()
    inline.gateway.control("reload")


def test_figures_are_in_stats_and_metrics(inline):
    browse(inline.client, inline.servers[0], ATTACK, timeout=0.5)
    figures = inline.figures()
    for name in ("inspect_frames", "inspect_candidates", "inspect_alerts", "inspect_flows_made", "inspect_flows"):
        assert figures[name] > 0, name
    text = inline.gateway.control("stats")
    assert re.search(r"inspect_alerts +[1-9]", text) and re.search(r"inspect_dropped +[1-9]", text), text
    metrics = inline.gateway.get("/metrics")
    assert re.search(r"^sluice_inspect_alerts_total [1-9]", metrics, re.M), metrics
    assert re.search(r"^sluice_inspect_flows [0-9]", metrics, re.M), metrics


def test_a_reload_brings_a_rule_into_force_in_flows_that_are_there(inline):
    def go_on():
        connection = http.client.HTTPConnection(inline.servers[0], 80, timeout=1)
        assert ask(connection, "/new?1") == (200, b"hello\n"), "the rule is not there yet"
        inline.write_rules(ADDED_RULE)
        answer = inline.gateway.control("reload")
        assert ask(connection, "/other") == (200, b"hello\n"), "the flow goes on"
        with pytest.raises(TimeoutError):
            ask(connection, "/new?2")
        connection.close()
        return answer

    assert "13 rules inspect" in inline.client.inside(go_on)
    assert inline.figures()["inspect_rules"] == 13
    assert "/new?2" not in inline.web.requests()
    assert browse(inline.client, inline.servers[0]) == (200, b"hello\n")


def test_files_that_cannot_be_read_leave_the_rules_in_force(inline):
    inline.write_rules(ADDED_RULE)
    inline.gateway.control("reload")
    inline.rules.write_bytes(b"alert tcp\0")
    answer = inline.gateway.control("reload", check=False)
    assert f"{inline.rules}:1" in answer and "NUL" in answer
    inline.rules.unlink()
    answer = inline.gateway.control("reload", check=False)
    line = next(number for number, text in enumerate(inline.gateway.config_path.read_text(encoding="utf-8").splitlines(), 1)
                if text.startswith("rules ="))
    assert f"{inline.gateway.config_path}:{line}: [inspect] rules" in answer and f"{inline.rules}" in answer, answer
    config = inline.gateway.config_path.read_text(encoding="utf-8")
    for rules in ("", "rules = []", "rules = [1, 2]"):
        inline.gateway.config_path.write_text(re.sub("(?m)^rules =.*$", rules, config), encoding="utf-8")
        assert "[inspect] rules" in inline.gateway.control("reload", check=False), rules
    inline.gateway.config_path.write_text(config, encoding="utf-8")
    assert browse(inline.client, inline.servers[0], "/new?3", timeout=0.5) is TimeoutError, "the old rules"
    assert browse(inline.client, inline.servers[0]) == (200, b"hello\n")
    inline.write_rules()
    assert "12 rules inspect" in inline.gateway.control("reload")


def test_a_rule_that_does_not_load_is_said_by_the_reload(inline):
    inline.write_rules('alert tcp any any -> any any (msg:"TEST"; contents:"x"; sid:4;)\n')
    answer = inline.gateway.control("reload")
    assert "12 rules inspect" in answer
    assert f"1 rule of 13 does not load, such as {inline.rules}:4" in inline.gateway.log()
    inline.write_rules()
    inline.gateway.control("reload")


def test_strict_refuses_a_reload_with_a_rule_that_does_not_load(inline):
    path = inline.gateway.config_path
    config_before = path.read_text(encoding="utf-8")
    path.write_text(re.sub("(?m)^(rules =.*)$", r"\1\nstrict = true", config_before), encoding="utf-8")
    assert "12 rules inspect" in inline.gateway.control("reload"), "the setting is one that a reload takes"
    inline.write_rules('alert tcp any any -> any any (msg:"TEST"; contents:"x"; sid:4;)\n')
    answer = inline.gateway.control("reload", check=False)
    assert re.search(rf"{path}:[0-9]+: \[inspect\] strict: 1 rule of 13 does not load: {inline.rules}:4: ", answer), answer
    assert inline.figures()["inspect_rules"] == 12
    assert browse(inline.client, inline.servers[0], ATTACK, timeout=0.5) is TimeoutError, "the old rules"
    inline.write_rules()
    path.write_text(config_before, encoding="utf-8")
    inline.gateway.control("reload")


def test_rotation(inline):
    browse(inline.client, inline.servers[0], ATTACK, timeout=0.5)
    assert wait_until(lambda: inline.alerts(1000002), 3)
    old = inline.eve.with_suffix(".json.1")
    inline.eve.rename(old)
    inline.gateway.control("reload")
    assert wait_until(inline.eve.exists, 3)
    assert not inline.alerts(1000002)
    size = old.stat().st_size
    browse(inline.client, inline.servers[0], ATTACK, timeout=0.5)
    assert wait_until(lambda: inline.alerts(1000002), 3)
    assert old.stat().st_size == size


# Each payload holds the contents of all these rules, which would drop it, and each regular expression tries long and in vain.
EXPENSIVE = "".join(
    f'drop udp any any -> any 9 (msg:"TEST {i}"; content:"expensive-{i:03}"; pcre:"/(a+)+(b+)+{i:03}$/"; sid:{100 + i};)\n'
    for i in range(100))
EXPENSIVE_PAYLOAD = b"".join(b"expensive-%03d" % i for i in range(100)) + b"a" * 40


def all_lines_are_counted(figures):
    return figures["inspect_alerts"] == figures["inspect_alerts_written"] + figures["inspect_alerts_suppressed"]


@pytest.mark.parametrize("policy", ["drop", "pass"])
def test_what_an_attack_on_the_engine_leaves_is_counted(tmp_path, policy):
    """Payloads made from the rules' own contents use up the time for confirming: what is left is counted, and alerts that are
    too many are, too, and browsing goes on. How late frames are is measured by `sluice bench inspect`."""
    settings = ['budget = "100us"', f'on_overload = "{policy}"', "alerts_per_second = 10"]
    with Wire(tmp_path, inspect=settings, engine=['deadline = "1s"']) as wire:
        wire.write_rules(EXPENSIVE)
        assert "112 rules inspect" in wire.gateway.control("reload")
        server = wire.servers[0]

        def flood(payload):
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
                udp.connect((server, 9))
                for _ in range(3000):
                    try:
                        udp.send(payload)
                    except ConnectionRefusedError:  # nobody listens there: it has arrived
                        pass

        def is_idle():
            return sum(lane["in_flight"] for lane in wire.gateway.stats()["lanes"]) == 0

        wire.client.inside(flood, EXPENSIVE_PAYLOAD)
        assert wait_until(is_idle, 10)
        if policy == "drop":  # all that is left could have dropped it; of the next flood rules that alert may be, which goes on
            assert wait_until(lambda: wire.gateway.drops()["inspect_overload"] == wire.figures()["inspect_overloaded_frames"], 3)
        wire.client.inside(flood, b"flooding")
        assert wait_until(is_idle, 10)
        assert browse(wire.client, server) == (200, b"hello\n")
        stats, figures, drops = wire.gateway.stats(), wire.figures(), wire.gateway.drops()
        assert figures["inspect_overloaded_frames"] > 100 and figures["inspect_left"] > 100, figures
        if policy == "drop":
            assert 100 < drops["inspect_overload"] <= figures["inspect_overloaded_frames"]
            assert {event["drop"]["reason"] for event in wire.events("drop")} == {"inspection budget"}
        else:
            assert "inspect_overload" not in drops and not wire.events("drop")
        # The lines are some milliseconds behind.
        assert wait_until(lambda: all_lines_are_counted(wire.figures()), 10), wire.figures()
        assert wire.figures()["inspect_alerts_suppressed"] > 100
        assert wait_until(lambda: any(event["stats"]["detect"]["alerts_suppressed"] > 100 for event in wire.events("stats")), 5)
        said = wire.gateway.log()
        assert "lines suppressed since this was last said" in said
        assert ("were dropped because a rule that drops might hold" if policy == "drop" else "went on though they were not looked at to the end") in said
        assert stats["conserved"]


def drops_of_streams(wire):
    return {reason: count for reason, count in wire.gateway.drops().items() if reason in ("inspect_conflict", "inspect_no_room")}


def test_a_lossy_link_that_reorders_frames_is_no_attack(tmp_path):
    """What is lost is sent again, with whatever boundaries: nothing of it is taken for a conflict, and all of it arrives. (On a
    machine that is busy besides, more waits for what is lost than a stream holds: that is dropped, and sent again, too.)"""
    with Wire(tmp_path, lossy=True) as wire:
        for number in range(3):
            assert browse(wire.client, wire.servers[0], f"/big?{number}", timeout=20) == (200, BIG), number
        figures = wire.figures()
        assert figures["inspect_stream_conflicts"] == 0 and figures["inspect_stream_gaps"] == 0, figures
        assert "inspect_conflict" not in drops_of_streams(wire)
        assert wire.gateway.stats()["conserved"]


def attack_behind_a_decoy(server):
    """A request for ATTACK in a connection, and before it in its place as many other bytes whose checksum is wrong: the server does
    not take those. What it answers; None: nothing."""
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(0x0800)) as wire:
        wire.bind(("eth0", 0x0800))
        wire.settimeout(5)
        with socket.create_connection((server, 80), timeout=2) as connection:
            port = connection.getsockname()[1]
            while True:
                frame, address = wire.recvfrom(2000)
                theirs, mine, sequence, acknowledgment, _, flags = struct.unpack("!HHIIBB", frame[34:48])
                if address[2] != socket.PACKET_OUTGOING and (theirs, mine, flags) == (80, port, SYN | ACK):
                    break
            request = f"GET {ATTACK} HTTP/1.1\r\nHost: www.example\r\n\r\n".encode()
            header = struct.pack("!HHIIBBHHH", port, 80, acknowledgment, sequence + 1, 0x50, PUSH | ACK, 65000, 0xBAD, 0)
            decoy = packet4(6, header + b"." * len(request), connection.getsockname()[0], server)
            wire.send(frame[6:12] + frame[:6] + decoy[12:])
            connection.sendall(request)
            try:
                return connection.recv(100)
            except TimeoutError:
                return None


@pytest.mark.parametrize("policy", ["drop", "pass"])
def test_an_attack_behind_a_decoy_does_not_get_through(tmp_path, policy):
    with Wire(tmp_path, inspect=[f'on_conflict = "{policy}"']) as wire:
        server = wire.servers[0]
        assert browse(wire.client, server, "/before") == (200, b"hello\n")
        answer = wire.client.inside(attack_behind_a_decoy, server)
        assert browse(wire.client, server, "/after") == (200, b"hello\n")
        assert wire.figures()["inspect_stream_conflicts"] > 0
        if policy == "pass":
            assert answer.startswith(b"HTTP/1.1 200"), "the attack is one"
            assert ATTACK in wire.web.requests() and not drops_of_streams(wire)
            return
        assert answer is None and ATTACK not in wire.web.requests()
        assert list(drops_of_streams(wire)) == ["inspect_conflict"]
        assert wait_until(lambda: wire.events("drop"), 3)
        assert {event["drop"]["reason"] for event in wire.events("drop")} == {"stream conflict"}


def attacks_behind_a_limit(server):
    """Requests for ATTACK in connections of their own, each behind more than is looked at: what is answered to them."""
    fields = "".join(f"h{number}: v\r\n" for number in range(1100))
    answers = {}
    for name, before in {"line": f"GET /{'a' * 30_000} HTTP/1.1\r\nHost: x\r\n\r\n",
                         "header": f"GET /before HTTP/1.1\r\nHost: x\r\nX: {'a' * 19_000}\r\n\r\n",
                         "fields": f"GET /before HTTP/1.1\r\nHost: x\r\n{fields}\r\n"}.items():
        with socket.create_connection((server, 80), timeout=1) as connection:
            try:
                connection.sendall(before.encode())
                time.sleep(0.1)
                connection.sendall(f"GET {ATTACK}&{name} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
                answers[name] = connection.recv(100)
            except OSError:
                answers[name] = None
    return answers


@pytest.mark.parametrize("policy", ["drop", "pass"])
def test_an_attack_behind_a_limit_of_http_does_not_get_through(tmp_path, policy):
    with Wire(tmp_path, inspect=[f'on_http_limit = "{policy}"']) as wire:
        server = wire.servers[0]
        answers = wire.client.inside(attacks_behind_a_limit, server)
        assert browse(wire.client, server, "/after") == (200, b"hello\n")
        reached = [path for path in wire.web.requests() if path.startswith(ATTACK)]
        assert wire.figures()["inspect_http_limited"] == 3
        assert wait_until(lambda: "beyond a limit since this was last said" in wire.gateway.log(), 3)
        assert re.search(r"\(on_http_limit\): header_limit", wire.gateway.log()), wire.gateway.log()
        if policy == "pass":
            assert f"{ATTACK}&header" in reached, "the attack is one"
            assert not wire.events("drop") or {e["drop"]["reason"] for e in wire.events("drop")} <= {"rules", "flow drop"}
            return
        assert not reached and answers == {"line": None, "header": None, "fields": None}
        assert wire.gateway.drops()["inspect_http_limit"] >= 3
        assert wait_until(lambda: wire.events("drop"), 3)
        assert {event["drop"]["reason"] for event in wire.events("drop")} <= {"applayer error", "flow drop"}


def attack_and_close(server, times):
    """Each time with a FIN, which goes the way of what was dropped before it."""
    for _ in range(times):
        with socket.create_connection((server, 80), timeout=3) as connection:
            connection.sendall(f"GET {ATTACK} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        time.sleep(0.01)  # the server's backlog is short


def hold_open(server, number):
    connections = [socket.create_connection((server, 80), timeout=3) for _ in range(number)]
    for connection in connections:
        connection.sendall(b"GET /held HTTP/1.1\r\n")
    time.sleep(0.1)
    for connection in connections:
        connection.close()


def test_dropped_conversations_leave_streams_to_others_and_the_log_says_when_there_are_none(tmp_path):
    said = "because all [inspect] streams are in use"
    with Wire(tmp_path, inspect=["streams = 16"]) as wire:
        server = wire.servers[0]
        wire.client.inside(attack_and_close, server, 20)
        assert browse(wire.client, server, ATTACK, timeout=1) is TimeoutError
        assert ATTACK not in wire.web.requests()
        assert wire.figures()["inspect_streams_refused"] == 0 and said not in wire.gateway.log()
        wire.client.inside(hold_open, server, 20)
        assert wait_until(lambda: said in wire.gateway.log(), 3)
        assert wire.figures()["inspect_streams_refused"] > 0


def test_the_log_says_when_room_for_http_has_run_out(tmp_path):
    said = "room for HTTP has run out"
    with Wire(tmp_path, inspect=["http = 16"]) as wire:
        server = wire.servers[0]
        wire.client.inside(hold_open, server, 8)
        assert wire.figures()["inspect_http_evicted"] == 0 and said not in wire.gateway.log()
        wire.client.inside(hold_open, server, 40)
        assert wait_until(lambda: said in wire.gateway.log(), 3)
        figures = wire.figures()
        assert figures["inspect_http_evicted"] > 0
        assert figures["inspect_http_limited"] == figures["inspect_http_evicted"]
