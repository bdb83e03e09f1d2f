"""A flow table of a million under a flood of SYNs, behind a running gateway."""

import re
import socket
import sys
import time

import pytest
from hosts import wait_until
from test_inspect import Wire

FLOWS = 1_048_576
FLOW_BYTES = 144  # docs/inspect.md, Memory
SYNS = 2_500_000
RATE = 120_000  # a second
CONVERSATIONS = 40
# The second holds only in the flow that the first has held in, as long as it is the same one.
RULES = """
alert tcp any any -> any 7 (msg:"TEST opened"; flow:established,to_server; content:"opening words"; flowbits:set,opened; flowbits:noalert; sid:11;)
alert tcp any any -> any 7 (msg:"TEST closed"; flow:established,to_server; content:"closing words"; flowbits:isset,opened; sid:12;)
"""
ECHO = """
import socketserver
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)
socketserver.ThreadingTCPServer.request_queue_size = 100
socketserver.ThreadingTCPServer(("10.1.0.3", 7), Echo).serve_forever()
"""


def exchange(connection, words):
    """Says them and waits until they have come back; how long that took."""
    began = time.monotonic()
    connection.sendall(words)
    back = b""
    while len(back) < len(words):
        piece = connection.recv(65536)
        assert piece, "the server has closed the connection"
        back += piece
    assert back == words
    return time.monotonic() - began


def resident_bytes(gateway):
    with open(f"/proc/{gateway.process.pid}/status", encoding="ascii") as status:
        return 1024 * int(re.search(r"^VmRSS:\s+(\d+) kB", status.read(), re.M)[1])


@pytest.fixture(name="wire")
def fixture_wire(tmp_path):
    with Wire(tmp_path, inspect=[f"flows = {FLOWS}"]) as wire:
        wire.write_rules(RULES)
        wire.gateway.control("reload")
        wire.server.spawn([sys.executable, "-B", "-c", ECHO])
        assert wait_until(lambda: ":7 " in wire.server.run("ss -Hltn")), "the echo server does not listen"
        yield wire


def test_established_conversations_outlive_a_flood_of_syns(wire, tmp_path):
    gateway = wire.gateway
    before = resident_bytes(gateway)
    connections = wire.client.inside(
        lambda: [socket.create_connection(("10.1.0.3", 7), timeout=20) for _ in range(CONVERSATIONS)])
    for connection in connections:
        exchange(connection, b"opening words")
    with open(tmp_path / "sent", "wb") as sent:
        flood = wire.client.spawn([sys.executable, "-B", "tests/net/syn_flood.py", "eth0", str(SYNS), str(RATE)], stdout=sent)
    exchanges, when_full = 0, 0
    while flood.poll() is None:
        exchange(connections[exchanges % CONVERSATIONS], b"%09d " % exchanges * 1000)
        exchanges += 1
        if when_full == 0 and wire.figures()["inspect_flows_evicted"] > 0:
            when_full = resident_bytes(gateway)
        time.sleep(0.1)
    assert flood.returncode == 0 and int((tmp_path / "sent").read_text(encoding="ascii")) >= SYNS
    for connection in connections:
        exchange(connection, b"closing words")
        connection.close()

    figures = wire.figures()
    print(f"{exchanges} exchanges; {figures}; RSS {before} {when_full} {resident_bytes(gateway)}")
    assert figures["inspect_flows_made"] > 2 * FLOWS, "the flood has come through"
    assert FLOWS * 0.99 < figures["inspect_flows"] <= FLOWS
    # Some expire, none is refused, and what is made is there, has expired or was evicted.
    assert figures["inspect_flows_evicted"] > FLOWS / 2
    assert figures["inspect_flows_made"] - figures["inspect_flows_evicted"] >= figures["inspect_flows"]
    assert figures["inspect_without_flow"] == 0
    assert exchanges > 20, "the conversations went on during it"
    assert wait_until(lambda: len(wire.alerts(12)) == CONVERSATIONS, 5), "each is still the flow that it was"
    assert when_full - before < FLOWS * FLOW_BYTES + (32 << 20)
    assert resident_bytes(gateway) - when_full < 8 << 20, "a full table takes no more"
    assert gateway.stats()["conserved"]
