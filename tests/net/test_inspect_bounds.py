"""What an attack on the inspector itself comes to: too much to look at, what cannot be distinguished, limits and capacity that runs out."""

import re
import socket
import struct
import time

import pytest
from frames import ACK, PUSH, SYN, packet4
from hosts import wait_until
from inspected import ATTACK, Wire
from web import BIG, browse

# Each payload holds the contents of all these rules, which would drop it, and each regular expression tries long and in vain.
EXPENSIVE = "".join(
    f'drop udp any any -> any 9 (msg:"TEST {i}"; content:"expensive-{i:03}"; pcre:"/(a+)+(b+)+{i:03}$/"; sid:{100 + i};)\n'
    for i in range(100))
EXPENSIVE_PAYLOAD = b"".join(b"expensive-%03d" % i for i in range(100)) + b"a" * 40


def all_lines_are_counted(metrics):
    return metrics["inspect_alerts"] == metrics["inspect_alerts_written"] + metrics["inspect_alerts_suppressed"]


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
            assert wait_until(lambda: wire.gateway.drops()["inspect_overload"] == wire.metrics()["inspect_overloaded_frames"], 3)
        wire.client.inside(flood, b"flooding")
        assert wait_until(is_idle, 10)
        assert browse(wire.client, server) == (200, b"hello\n")
        stats, metrics, drops = wire.gateway.stats(), wire.metrics(), wire.gateway.drops()
        assert metrics["inspect_overloaded_frames"] > 100 and metrics["inspect_left"] > 100, metrics
        if policy == "drop":
            assert 100 < drops["inspect_overload"] <= metrics["inspect_overloaded_frames"]
            assert {event["drop"]["reason"] for event in wire.events("drop")} == {"inspection budget"}
        else:
            assert "inspect_overload" not in drops and not wire.events("drop")
        # The lines are some milliseconds behind.
        assert wait_until(lambda: all_lines_are_counted(wire.metrics()), 10), wire.metrics()
        assert wire.metrics()["inspect_alerts_suppressed"] > 100
        assert wait_until(lambda: any(event["stats"]["detect"]["alerts_suppressed"] > 100 for event in wire.events("stats")), 5)
        said = wire.gateway.log()
        assert "lines suppressed since this was last said" in said
        assert ("were dropped because a rule that drops might hold" if policy == "drop" else "went on though they were not looked at to the end") in said
        assert stats["conserved"]


def drops_of_streams(wire):
    return {reason: count for reason, count in wire.gateway.drops().items() if reason in ("inspect_conflict", "inspect_no_capacity")}


def test_a_lossy_link_that_reorders_frames_is_no_attack(tmp_path):
    """What is lost is sent again, with whatever boundaries: nothing of it is taken for a conflict, and all of it arrives. (On a
    machine that is busy besides, more waits for what is lost than a stream holds: that is dropped, and sent again, too.)"""
    with Wire(tmp_path, lossy=True) as wire:
        for number in range(3):
            assert browse(wire.client, wire.servers[0], f"/big?{number}", timeout=20) == (200, BIG), number
        metrics = wire.metrics()
        assert metrics["inspect_stream_conflicts"] == 0 and metrics["inspect_stream_gaps"] == 0, metrics
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
        assert wire.metrics()["inspect_stream_conflicts"] > 0
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
        assert wire.metrics()["inspect_http_limited"] == 3
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


def test_dropped_conversations_leave_their_streams_to_others(tmp_path):
    with Wire(tmp_path, inspect=["streams = 16"]) as wire:
        server = wire.servers[0]
        wire.client.inside(attack_and_close, server, 20)
        assert browse(wire.client, server, ATTACK, timeout=1) is TimeoutError
        assert ATTACK not in wire.web.requests()
        assert wire.metrics()["inspect_streams_refused"] == 0 and "[inspect] streams are in use" not in wire.gateway.log()


@pytest.mark.parametrize("setting, said, metric", [
    ("streams = 16", "because all [inspect] streams are in use", "inspect_streams_refused"),
    ("http = 16", "capacity for HTTP has run out", "inspect_http_evicted"),
])
def test_the_log_says_when_capacity_has_run_out(tmp_path, setting, said, metric):
    with Wire(tmp_path, inspect=[setting]) as wire:
        server = wire.servers[0]
        wire.client.inside(hold_open, server, 8)
        assert wire.metrics()[metric] == 0 and said not in wire.gateway.log()
        wire.client.inside(hold_open, server, 40)
        assert wait_until(lambda: said in wire.gateway.log(), 3)
        metrics = wire.metrics()
        assert metrics[metric] > 0
        assert metrics["inspect_http_limited"] == metrics["inspect_http_evicted"]
