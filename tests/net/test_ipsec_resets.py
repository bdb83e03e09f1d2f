"""What elements make themselves, for a host behind a tunnel: it goes through the tunnel, as all that goes there, and never in clear."""

import socket

import pytest
from capture import Capture
from hosts import wait_until
from ipsec_tunnel import FAR4, INSIDE4, OUT_SPI, Tunnel

# What inspect does to the connection of a host behind the tunnel that says "forbidden": it resets the client alone, in the packet's
# place; both, the client in a frame of its own; the server alone.
ACTIONS = {"reject": 8081, "rejectboth": 8082, "rejectdst": 8083}
TCP = 6


@pytest.fixture(scope="module")
def inspected(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ipsec-resets")
    rules = folder / "own.rules"
    rules.write_text("".join(f'{action} tcp any any -> any {port} (msg:"forbidden"; content:"forbidden"; sid:{port};)\n'
                             for action, port in ACTIONS.items()), encoding="utf-8")
    lines = [f'rules = ["{rules}"]', f'eve = "{folder / "eve.json"}"', "flows = 4096", 'stream_memory = "16M"', 'http_memory = "16M"']
    with Tunnel(folder, chain=("ipsec", "inspect", "route"), inspect=lines) as one:
        one.start()
        yield one


def listening(host, address, port):
    def listen():
        one = socket.create_server((address, port))
        one.settimeout(10)
        return one

    return host.inside(listen)


def connection(host, source, address, port):
    def connect():
        return socket.create_connection((address, port), timeout=10, source_address=(source, 0))

    return host.inside(connect)


def is_reset(connected):
    """Whether the other end has reset it, or seems to have."""
    try:
        connected.recv(100)
    except ConnectionResetError:
        return True
    except TimeoutError:
        pass
    return False


def converse(inspected, port, words):
    """A host behind the tunnel says `words` to the client's server; both ends of the connection."""
    with listening(inspected.client, INSIDE4, port) as listener:
        client = connection(inspected.server, FAR4, INSIDE4, port)
        server, _ = listener.accept()
    client.settimeout(3)
    server.settimeout(3)
    client.sendall(words)
    return client, server


@pytest.mark.parametrize("action", ACTIONS)
def test_a_reset_goes_through_the_tunnel(inspected, action):
    client, server = converse(inspected, ACTIONS[action], b"welcome")
    with client, server:
        assert server.recv(100) == b"welcome"
        sealed = inspected.metric("ipsec_sealed_packets")
        with Capture(inspected.server, "eth0") as capture:
            client.sendall(b"forbidden")
            assert is_reset(client) == (action != "rejectdst"), (inspected.gateway.drops(), inspected.seen()[-3:])
            assert is_reset(server) == (action != "reject"), (inspected.gateway.drops(), inspected.seen()[-3:])
    if action != "rejectdst":
        assert inspected.metric("ipsec_sealed_packets") > sealed
        assert any(frame[23] == 50 and int.from_bytes(frame[34:38], "big") == OUT_SPI for frame in capture.frames)
    assert not any(frame[12:14] == b"\x08\x00" and frame[23] == TCP for frame in capture.frames), "TCP in clear"
    drops = inspected.gateway.drops()
    assert drops.get("ipsec_unprotected", 0) == 0 and drops.get("departures_full", 0) == 0, drops


def test_connections_that_say_nothing_forbidden_go_on(inspected):
    client, server = converse(inspected, 8090, b"forbidden")
    with client, server:
        assert server.recv(100) == b"forbidden"
        server.sendall(b"yes")
        assert client.recv(100) == b"yes"


def test_nothing_is_lost_without_a_name(inspected):
    assert wait_until(lambda: inspected.metric("ipsec_opened_packets") > 0)
    snapshot = inspected.gateway.stats()
    assert snapshot["conserved"], snapshot["lanes"]
