"""A flow table of a million under a flood of SYNs, behind a running gateway."""

import pathlib
import socket
import sys
import time

import pytest
from hosts import stop, wait_until
from inspected import Wire

FLOWS = 1_048_576
# docs/inspect.md, Memory: with a quarter as many streams, and a quarter of these of HTTP, by default.
MEMORY = FLOWS * 144 + FLOWS // 4 * 384 + FLOWS // 16 * 1936
SYNS = 2_400_000  # that have become flows
RATE = 120_000  # a second
SYN_FLOOD = pathlib.Path(__file__).parent / "syn_flood.py"
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


@pytest.fixture(name="wire")
def fixture_wire(tmp_path):
    with Wire(tmp_path, inspect=[f"flows = {FLOWS}"]) as wire:
        wire.write_rules(RULES)
        wire.gateway.control("reload")
        wire.server.spawn([sys.executable, "-B", "-c", ECHO])
        assert wait_until(lambda: ":7 " in wire.server.run("ss -Hltn")), "the echo server does not listen"
        yield wire


def test_established_conversations_outlive_a_flood_of_syns(wire):
    gateway = wire.gateway
    before = gateway.resident_bytes()
    connections = wire.client.inside(
        lambda: [socket.create_connection(("10.1.0.3", 7), timeout=20) for _ in range(CONVERSATIONS)])
    for connection in connections:
        exchange(connection, b"opening words")
    flood = wire.client.spawn([sys.executable, "-B", SYN_FLOOD, "eth0", str(RATE)])
    exchanges, end = 0, time.monotonic() + 80
    while wire.metrics()["inspect_flows_made"] < SYNS:
        assert flood.poll() is None and time.monotonic() < end, wire.metrics()
        exchange(connections[exchanges % CONVERSATIONS], b"%09d " % exchanges * 1000)
        exchanges += 1
        time.sleep(0.1)
    stop(flood)
    for connection in connections:
        exchange(connection, b"closing words")
        connection.close()
    after = gateway.resident_bytes()

    metrics = wire.metrics()
    assert metrics["inspect_flows"] <= FLOWS
    assert metrics["inspect_flows"] > FLOWS * 0.99, metrics
    # What was made is there, or was evicted, or has expired.
    gone = metrics["inspect_flows_made"] - metrics["inspect_flows"]
    assert gone * 0.99 < metrics["inspect_flows_evicted"] <= gone, metrics
    assert metrics["inspect_without_flow"] == 0
    assert exchanges > 20, "the conversations went on during it"
    assert wait_until(lambda: len(wire.alerts(12)) >= CONVERSATIONS, 5), "each is still the flow that it was"
    assert len({alert["src_port"] for alert in wire.alerts(12)}) == CONVERSATIONS
    assert after - before < 8 << 20, "all memory was taken at start"
    assert gateway.stats()["conserved"]


def test_a_million_flows_take_the_memory_that_is_said(wire, tmp_path):
    with Wire(tmp_path, inspect=["flows = 4096"]) as small:
        more = wire.gateway.resident_bytes() - small.gateway.resident_bytes()
    assert MEMORY * 0.95 < more < MEMORY * 1.05
