"""[srtp.rtsp] unprotected: of what servers send, nothing that could be media reaches a client in clear, whatever the gateway knows of it."""

import socket
import time

import pytest

from capture import Capture
from film import PORT, ffmpeg, film, in_clear
from hosts import wait_until
from rtsp_peers import why_not
from topology import CLIENT4, CLIENT6, SERVER4, SERVER6

_reason = why_not()
pytestmark = pytest.mark.skipif(_reason is not None, reason=str(_reason))

DROPPED = "srtp_unprotected"


def playing(network):
    """A film that does not end by itself."""
    client = network.client.spawn(ffmpeg(SERVER4, 300))
    assert wait_until(lambda: network.metric("rtsp_media") == 2 and network.metric("srtp_protected_rtp") > 20, 20), network.metrics()
    return client


def seen(network, seconds):
    """(payloads of the server that the client's link had in clear, of how many, what was dropped for it meanwhile)."""
    before = network.gateway.drops().get(DROPPED, 0)
    with Capture(network.client, "eth0") as outside, Capture(network.server, "eth0") as inside:
        time.sleep(seconds)
    return *in_clear(outside, inside), network.gateway.drops().get(DROPPED, 0) - before


@pytest.mark.parametrize("policy, leaks", [("drop", False), ("pass", True)])
def test_a_gateway_that_begins_anew(tmp_path, policy, leaks):
    """What the server goes on sending to who played before belongs to no stream any more."""
    with film(tmp_path, f'unprotected = "{policy}"') as network:
        network.start()
        network.serve()
        playing(network)
        # As after a power cut, no FIN ends the server's session.
        network.router.ip(f"rule add pref 1 ipproto tcp to {SERVER4} dport {PORT} blackhole")
        network.gateway.kill()
        network.start()
        hidden, of, dropped = seen(network, 2)
        assert of > 100, "the server has not heard of it"
        assert (hidden > 0, dropped > 0) == (leaks, not leaks), (hidden, of, dropped)


def test_a_server_whose_link_was_gone(tmp_path):
    """Longer than TCP's keep-alive and the guards: it comes back, and sends as if nothing had been."""
    with film(tmp_path) as network:
        network.start()
        network.serve()
        playing(network)
        network.router.ip("link set wan0 down")
        assert wait_until(lambda: network.metric("rtsp_media") == 0, 100), network.metrics()
        assert wait_until(lambda: network.metric("srtp_ended_streams") == 0, 45), network.metrics()
        network.router.ip("link set wan0 up")
        assert wait_until(network.forwards)
        hidden, of, dropped = seen(network, 3)
        assert hidden == 0 and of > 100 and dropped > 100, (hidden, of, dropped)


def test_what_is_no_media_passes(tmp_path):
    """Answers of DNS come from a low port and questions of NTP go to one; clients' own UDP is nobody's secret."""
    with film(tmp_path) as network:
        network.start()

        def arrives(family, source, sender, destination, receiver):
            def bound(address, port):
                one = socket.socket(family, socket.SOCK_DGRAM)
                one.bind((address, port))
                one.settimeout(0.5)
                return one

            with sender[0].inside(bound, source, sender[1]) as out, receiver[0].inside(bound, destination, receiver[1]) as into:
                out.sendto(b"x" * 100, (destination, receiver[1]))
                try:
                    return len(into.recv(2048)) == 100
                except TimeoutError:
                    return False

        before = network.gateway.drops().get(DROPPED, 0)
        for family, client, server in ((socket.AF_INET, CLIENT4, SERVER4), (socket.AF_INET6, CLIENT6, SERVER6)):
            for from_port, to_port, passes in ((53, 40000, True), (40000, 123, True), (5004, 6000, False)):
                found = arrives(family, server, (network.server, from_port), client, (network.client, to_port))
                assert found == passes, (server, from_port, to_port)
            assert arrives(family, client, (network.client, 6001), server, (network.server, 5005))
        assert network.gateway.drops()[DROPPED] == before + 2
