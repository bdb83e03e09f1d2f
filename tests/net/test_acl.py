"""chain = ["acl", "route"] between two hosts: rules decide, change while it runs, and hold a rate."""

import json
import socket

import pytest
from hosts import iperf3, wait_until
from topology import SERVER4, SERVER6, Topology

WEB, SSH = 8080, 2222
DENY_SSH = f"""
[[acl.rule]]
protocol = "tcp"
destination_port = "{SSH}"
action = "deny"
"""
ONLY_WEB = f"""default = "deny"
[[acl.rule]]
protocol = "tcp"
destination_port = "{WEB}"
action = "permit"
[[acl.rule]]
protocol = "tcp"
source_port = "{WEB}"
tcp_flags = "ack"
action = "permit"
"""
MEGABITS = 8
POLICE_UDP = f"""
[[acl.rule]]
protocol = "udp"
destination = "10.2.0.0/24"
action = "police"
rate = {MEGABITS}_000_000
burst = "32K"
"""


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    with Topology(tmp_path_factory.mktemp("acl"), acl=DENY_SSH) as topology:
        topology.start()
        sockets = [topology.server.inside(listener, family, port)
                   for family in (socket.AF_INET, socket.AF_INET6) for port in (WEB, SSH)]
        yield topology
        for one in sockets:
            one.close()


def listener(family, port):
    return socket.create_server(("", port), family=family, backlog=100)


@pytest.mark.parametrize("server", [SERVER4, SERVER6])
def test_a_denied_port_is_dropped_and_counted(network, server):
    assert "ACL rule is in force" in network.gateway.reload_acl(DENY_SSH)
    assert network.reaches(server)
    assert network.client.connects(server, WEB) == "open"
    before = network.gateway.drops().get("acl_denied", 0)
    assert network.client.connects(server, SSH) is None
    assert network.gateway.drops()["acl_denied"] > before


def test_a_reload_changes_what_is_denied(network):
    assert "2 ACL rules are in force" in network.gateway.reload_acl(ONLY_WEB)
    assert not network.reaches(SERVER4), "ICMP is denied by default"
    assert network.client.connects(SERVER4, WEB) == "open", "ARP and the web are not"
    assert network.client.connects(SERVER4, SSH) is None
    assert "0 ACL rules are in force" in network.gateway.reload_acl("")
    assert network.reaches(SERVER4)
    assert network.client.connects(SERVER4, SSH) == "open"


def test_a_mistake_leaves_the_rules_in_force(network):
    assert "ACL rule is in force" in network.gateway.reload_acl(DENY_SSH)
    answer = network.gateway.reload_acl(DENY_SSH + 'source = "10.0.0.1/8"\n')
    lines = network.gateway.config_path.read_text(encoding="utf-8").splitlines()
    assert f'{network.gateway.config_path}:{len(lines)}: [[acl.rule]] source = "10.0.0.1/8"' in answer
    assert network.client.connects(SERVER4, SSH) is None
    assert network.client.connects(SERVER4, WEB) == "open"


def test_policing_holds_the_rate(network):
    assert "ACL rule is in force" in network.gateway.reload_acl(POLICE_UDP)
    seconds, length = 4, 1000
    sent = iperf3(network.client, network.server, SERVER4, "-u", "-b", "30M", "-l", str(length), seconds=seconds)["sum"]
    arrived = (sent["packets"] - sent["lost_packets"]) * (length + 42) * 8  # whole frames
    assert arrived / seconds == pytest.approx(MEGABITS * 1e6, rel=0.15)
    policed = network.gateway.drops()["acl_policed"]
    assert policed >= sent["lost_packets"] * 0.9
    assert network.reaches(SERVER6), "what is not policed goes on"
    assert network.gateway.stats()["conserved"]


COUNTED = """
[[acl.rule]]
protocol = "udp"
destination_port = "7001"
action = "permit"
[[acl.rule]]
protocol = "udp"
destination_port = "7002"
action = "deny"
[[acl.rule]]
protocol = "udp"
destination_port = "7003"
action = "mark"
mark = 46
"""
OTHER_LAST = COUNTED.replace("mark = 46", "mark = 10")


def hits(network):
    """(frames, bytes) by what a rule matches."""
    table = json.loads(network.gateway.get("/api/v1/acl"))
    assert table["count"] == len(table["rules"])
    return {row["match"].split()[0].removeprefix("destination_port="): (row["frames"], row["bytes"]) for row in table["rules"]}


def totals(network):
    return {name: value for name, value in network.metrics().items() if name.startswith("acl_")}


def send(network, server, port, frames, length):
    network.client.send_udp(server, port, [bytes(length)] * frames)


def test_rules_count_what_they_decide(network):
    assert "3 ACL rules are in force" in network.gateway.reload_acl(COUNTED)
    assert network.reaches(SERVER4) and network.reaches(SERVER6), "their neighbours are known"
    assert hits(network) == {"7001": (0, 0), "7002": (0, 0), "7003": (0, 0)}
    before = totals(network)
    send(network, SERVER4, 7001, 5, 100)
    send(network, SERVER4, 7002, 7, 200)
    send(network, SERVER6, 7002, 2, 200)
    send(network, SERVER4, 7003, 3, 300)
    expected = {"7001": (5, 5 * 142), "7002": (9, 7 * 242 + 2 * 262), "7003": (3, 3 * 342)}
    assert wait_until(lambda: hits(network) == expected, 5), hits(network)

    assert "3 ACL rules are in force" in network.gateway.reload_acl(OTHER_LAST)
    kept = {**expected, "7003": (0, 0)}
    assert hits(network) == kept, "rules that stay keep their counts, the changed one begins again"
    send(network, SERVER4, 7001, 1, 100)
    kept["7001"] = (6, 6 * 142)
    assert wait_until(lambda: hits(network) == kept, 5), hits(network)

    lines = [line.split() for line in network.gateway.control("acl").splitlines()]
    assert lines[0] == ["RULE", "ACTION", "FRAMES", "BYTES", "MATCH"]
    assert lines[1] == ["1", "permit", "6", str(6 * 142), "destination_port=7001", "protocol=udp"]
    assert lines[2][:4] == ["2", "deny", "9", str(7 * 242 + 2 * 262)]
    assert lines[-1][0] == "default" and int(lines[-1][2]) > 0, "ping and what came before"
    after = totals(network)
    grown = {name: value - before[name] for name, value in after.items() if not name.startswith(("acl_default", "acl_log"))}
    decided = {"permit": (6, 6 * 142), "deny": expected["7002"], "mark": expected["7003"], "police": (0, 0), "reject": (0, 0)}
    assert grown == {f"acl_{action}_{unit}": count for action, counts in decided.items()
                     for unit, count in zip(("frames", "bytes"), counts)}, "totals go on, whatever becomes of rules"
    assert after["acl_default_frames"] > before["acl_default_frames"], "of the pings, and what hosts say of closed ports"
    metrics = network.gateway.get("/metrics").splitlines()
    assert f"sluice_acl_deny_frames_total {after['acl_deny_frames']}" in metrics
