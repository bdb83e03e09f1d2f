"""Rules of the stage acl that ask for ports, sets and ICMP types by name, that reject and log: ping, curl and UDP between hosts."""

import json
import socket
import subprocess

import pytest
from gateway import SLUICE
from hosts import wait_until
from topology import CLIENT4, CLIENT6, SERVER4, SERVER6, Topology

WEB, CLOSED = 8080, 2222


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    folder = tmp_path_factory.mktemp("acl-sets")
    with Topology(folder, acl="") as topology:
        topology.start()
        topology.eve = folder / "acl.json"
        sockets = [topology.server.inside(lambda f=family, p=port: socket.create_server(("", p), family=f, backlog=100))
                   for family in (socket.AF_INET, socket.AF_INET6) for port in (WEB, CLOSED)]
        assert topology.reaches(SERVER4) and topology.reaches(SERVER6)
        yield topology
        for one in sockets:
            one.close()


REJECT = f"""
[[acl.rule]]
name = "no-ssh"
comment = "as of today"
protocol = "tcp"
destination_port = {CLOSED}
ingress = "lan"
egress = "wan"
action = "reject"
[[acl.rule]]
protocol = "udp"
destination_port = [5353, "7000-7010"]
action = "reject"
"""


@pytest.mark.parametrize("server", [SERVER4, SERVER6])
def test_what_is_rejected_is_answered_at_once(network, server):
    assert "2 ACL rules are in force" in network.gateway.reload_acl(REJECT)
    assert network.client.connects(server, WEB) == "open"
    assert network.client.connects(server, CLOSED) == "Connection refused"
    reported = network.client.udp_error(server, 7003, b"x" * 100)
    assert reported in ("No route to host", "Permission denied", "Network is unreachable"), reported
    client = CLIENT6 if ":" in server else CLIENT4
    listener = network.client.inside(
        lambda: socket.create_server(("", CLOSED), family=socket.AF_INET6 if ":" in server else socket.AF_INET))
    with listener:
        assert network.server.connects(client, CLOSED) == "open", "the rule is of what comes in by lan"
    stats = network.gateway.stats()
    answered = {one["reason"]: one["frames"] for one in stats["icmp_errors"]}
    assert answered["acl_rejected"] >= 2
    assert stats["conserved"]
    listing = network.gateway.control("acl").splitlines()
    assert listing[0].split() == ["RULE", "NAME", "ACTION", "FRAMES", "BYTES", "MATCH", "COMMENT"]
    assert listing[1].split()[:3] == ["1", "no-ssh", "reject"]
    assert "ingress=lan egress=wan" in listing[1] and listing[1].endswith("as of today")


def test_a_capture_says_what_was_rejected(network, tmp_path):
    network.gateway.reload_acl(REJECT)
    path = tmp_path / "rejected.pcapng"
    with network.router.spawn([SLUICE, "capture", "lan", "--direction", "in", "-c", "1", "-w", path, "tcp", "port", str(CLOSED)],
                              stderr=subprocess.PIPE) as capture:
        assert b"capturing" in capture.stderr.readline()
        assert network.client.connects(SERVER4, CLOSED) == "Connection refused"
        assert capture.wait(timeout=20) == 0
    assert b"not forwarded, but answered: acl_rejected (an ACL rule rejects it" in path.read_bytes()


SETS = """
[[acl.set]]
name = "blocked"
file = "{file}"
[[acl.rule]]
source = "@blocked"
protocol = ["icmp", "icmpv6"]
icmp_type = "echo-request"
action = "deny"
"""


def test_sets_change_while_traffic_runs(network):
    file = network.gateway.config_path.parent / "blocked.txt"
    file.write_text("".join(f"198.{18 + i // 65536}.{i // 256 % 256}.{i % 256}\n" for i in range(0, 5000)) + "2001:db8:bad::/48 # more\n",
                    encoding="ascii")
    assert "1 ACL rule is in force" in network.gateway.reload_acl(SETS.format(file=file))
    pings = network.client.spawn(["ping", "-i", "0.05", "-w", "30", SERVER4])
    assert network.reaches(SERVER4) and network.reaches(SERVER6)
    assert network.gateway.control("acl", "set", "add", "blocked", CLIENT4, "2001:db8:1::/64").startswith(
        "2 entries added to blocked, which has 5003 now")
    assert not network.reaches(SERVER4) and not network.reaches(SERVER6)
    assert "1 entry removed" in network.gateway.control("acl", "set", "remove", "blocked", CLIENT4)
    assert network.reaches(SERVER4) and not network.reaches(SERVER6)
    assert "5002" in network.gateway.control("acl", "set", "list")
    entries = network.gateway.control("acl", "set", "list", "blocked", "--limit", "10000").splitlines()
    assert "2001:db8:1::/64" in entries and CLIENT4 not in entries
    many = [f"203.0.{i // 256}.{i % 256}" for i in range(1000)]
    network.gateway.control("acl", "set", "add", "blocked", *many)
    assert json.loads(network.gateway.get("/api/v1/acl/sets?name=blocked"))[0]["entries"] == 6002
    answer = network.gateway.control("acl", "set", "add", "blocked", "203.0.113.1/24", check=False)
    assert "203.0.113.1/24" in answer
    assert "there is no set" in network.gateway.control("acl", "set", "add", "blokced", "203.0.113.1", check=False)
    assert "1 ACL rule is in force\n" in network.gateway.reload_acl(SETS.format(file=file)), "as configured: it stays as it is"
    assert not network.reaches(SERVER6)
    file.write_text("", encoding="ascii")
    assert "is gone of blocked" in network.gateway.reload_acl(SETS.format(file=file))
    assert network.reaches(SERVER6)
    pings.terminate()
    pings.wait(5)
    assert network.gateway.stats()["conserved"]


def test_a_long_change_is_whole_or_not_at_all(network, tmp_path):
    def entries():
        return json.loads(network.gateway.get("/api/v1/acl/sets?name=blocked"))[0]["entries"]

    def change(*words, check=False):
        return network.gateway.control("acl", "set", *words, check=check)

    configured = tmp_path / "blocked.txt"
    configured.write_text("", encoding="ascii")
    network.gateway.reload_acl(SETS.format(file=configured))
    before = entries()
    many = [f"203.0.{i // 256}.{i % 256}" for i in range(20_000)]
    wrong = [*many[:15_000], "203.0.113.300", *many[15_000:]]
    answer = change("add", "blocked", *wrong)
    assert "entry 15001 of 20001, '203.0.113.300'" in answer and "nothing is changed" in answer
    file = tmp_path / "more.txt"
    file.write_text("# of today\n" + "\n".join(wrong) + "\nhost\n", encoding="ascii")
    answer = change("add", "blocked", "-f", file)
    assert f'{file}:15002: "203.0.113.300"' in answer and f'{file}:20003: "host"' in answer and "nothing is changed" in answer
    assert entries() == before
    file.write_text("# of today\n" + "\n".join(many) + "\n", encoding="ascii")
    assert change("add", "blocked", "192.0.2.77", "-f", file, check=True).startswith("20001 entries added")
    assert entries() == before + 20_001
    removed = network.router.run(["sh", "-c", f"{SLUICE} ctl acl set remove blocked -f - < {file}"])
    assert removed.startswith("20000 entries removed")
    assert entries() == before + 1
    file.write_text("# none\n", encoding="ascii")
    assert f"{file}: has no entries" in change("add", "blocked", "-f", file)
    assert "there is no set" in change("add", "blokced", "-f", file)
    assert "ENTRY or -f FILE" in change("add", "blocked")


def test_a_million_of_the_longest_entries_come_and_go(network, tmp_path):
    """78 MB as a file, 82 MB as a request; what the change took is given back."""
    network.gateway.reload_acl('[[acl.set]]\nname = "million"\n[[acl.rule]]\nsource = "@million"\naction = "deny"\n')
    file = tmp_path / "million.txt"
    # Those in the middle of each four, which are no prefix and do not abut; no group of digits is short.
    net = "2001:1db8:1111:1111:1111:1111"
    with open(file, "w", encoding="ascii") as out:
        for i in range(0, 4_000_000, 4):
            high, low = 0x1000 + i // 0xE000, 0x1000 + i % 0xE000
            out.write(f"{net}:{high:x}:{low + 1:x}-{net}:{high:x}:{low + 2:x}\n")
    before = network.gateway.resident_bytes()
    assert network.gateway.control("acl", "set", "add", "million", "-f", file).startswith("1000000 entries added to million, which has 1000000 now")
    assert network.gateway.resident_bytes() - before < 150e6
    assert network.gateway.control("acl", "set", "remove", "million", "-f", file).startswith("1000000 entries removed from million, which has 0 now")
    assert network.gateway.resident_bytes() - before < 50e6


def test_check_names_the_line_of_a_set_s_file(network):
    file = network.gateway.config_path.parent / "wrong.txt"
    file.write_text("192.0.2.1\n192.0.2.1/24\n", encoding="ascii")
    answer = network.gateway.reload_acl(SETS.format(file=file))
    assert f'{file}:2: "192.0.2.1/24"' in answer


LOG = """eve = "{eve}"
log_per_second = 5
[[acl.rule]]
name = "rejected"
comment = "a \\\\ b"
protocol = "udp"
destination_port = 7100
action = "deny"
log = true
[[acl.rule]]
protocol = "icmp"
action = "permit"
log = true
"""


def test_what_is_logged_is_limited_and_counted(network):
    assert "2 ACL rules are in force" in network.gateway.reload_acl(LOG.format(eve=network.eve))

    network.client.send_udp(SERVER4, 7100, [bytes(100)] * 50)
    assert wait_until(lambda: network.metrics()["acl_log_lines"] + network.metrics()["acl_log_suppressed"] == 50, 5), network.metrics()
    assert network.metrics()["acl_log_suppressed"] > 0
    assert network.reaches(SERVER4)

    def lines():
        return [json.loads(line) for line in network.eve.read_text(encoding="utf-8").splitlines()] if network.eve.exists() else []

    assert wait_until(lambda: any(line["event_type"] == "acl" for line in lines()), 5)
    dropped = [line for line in lines() if line["event_type"] == "drop"]
    assert 5 <= len(dropped) < 50
    line = dropped[0]
    assert (line["src_ip"], line["dest_ip"], line["dest_port"], line["proto"]) == (CLIENT4, SERVER4, 7100, "UDP")
    assert line["in_iface"] == "lan" and line["drop"]["reason"] == "acl" and line["drop"]["len"] == 128
    assert line["acl"]["rule"] == 1 and line["acl"]["name"] == "rejected" and line["acl"]["comment"] == "a \\ b"
    assert line["acl"]["action"] == "deny" and line["acl"]["out_iface"] == "wan"
    passed = next(line for line in lines() if line["event_type"] == "acl")
    assert passed["proto"] == "ICMP" and passed["acl"]["verdict"] == "passed"
