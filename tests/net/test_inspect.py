"""Intrusion prevention as its user sees it: attacks, alerts in files, and reloads (inspected.py)."""

import errno
import http.client
import ipaddress
import os
import re
import socket
import time

import pytest
from hosts import wait_until
from inspected import ADDED_RULE, ATTACK, Routed, Wire
from web import BIG, ask, browse

BROKEN_RULE = 'alert tcp any any -> any any (msg:"TEST"; contents:"x"; sid:4;)\n'


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
    reported = [(event["drop"]["reason"], event.get("alert", {}).get("signature_id")) for event in drops()]
    assert reported[0] == ("rules", 1000002) and set(reported[1:]) == {("flow drop", None)}, reported


def same(one, other):
    return ipaddress.ip_address(one) == ipaddress.ip_address(other)


def test_what_lies_across_segments_does_not_pass_whole(inline):
    assert browse(inline.client, inline.servers[0], "/shell") in (TimeoutError, http.client.IncompleteRead)
    assert wait_until(lambda: len(inline.alerts(1000004)) == 1, 3)


@pytest.mark.parametrize("family", [0, 1], ids=["ipv4", "ipv6"])
def test_reject_notifies_the_client_at_once(inline, family):
    server = inline.servers[family]
    began = time.monotonic()
    assert browse(inline.client, server, "/forbidden", timeout=10) is ConnectionResetError
    assert browse(inline.client, server, port=23, timeout=10) is ConnectionRefusedError
    reported = inline.client.udp_error(server, 69, b"\0\1file\0octet\0")
    assert reported in [os.strerror(number) for number in (errno.EHOSTUNREACH, errno.EACCES, errno.ECONNREFUSED)]
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
    before = inline.metrics()["inspect_fragments_datagrams"]
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
    assert inline.metrics()["inspect_fragments_datagrams"] == before + 6
    assert inline.metrics()["inspect_fragments_refused"] == 0
    assert wait_until(lambda: len([alert for alert in inline.alerts(5) if same(alert["dest_ip"], server)]) == 3, 3)
    assert all(alert["alert"]["action"] == "blocked" and alert["dest_port"] == 7000 for alert in inline.alerts(5))
    assert " 0% packet loss" in inline.client.run(f"ping -n -i 0.05 -c 5 -W 1 -s 4000 {server}")
    inline.write_rules()
    inline.gateway.control("reload")


def test_metrics_are_in_stats_and_metrics(inline):
    browse(inline.client, inline.servers[0], ATTACK, timeout=0.5)
    metrics = inline.metrics()
    for name in ("inspect_frames", "inspect_prefilter_matches", "inspect_alerts", "inspect_flows_made", "inspect_flows"):
        assert metrics[name] > 0, name
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
    assert inline.metrics()["inspect_rules"] == 13
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
    inline.write_rules(BROKEN_RULE)
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
    inline.write_rules(BROKEN_RULE)
    answer = inline.gateway.control("reload", check=False)
    assert re.search(rf"{path}:[0-9]+: \[inspect\] strict: 1 rule of 13 does not load: {inline.rules}:4: ", answer), answer
    assert inline.metrics()["inspect_rules"] == 12
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
