"""inspect and srtp in one chain: an inspector in front of the protection reads what goes in, one behind it what came out."""

import base64

import pytest
from hosts import wait_until
from srtp_peer import Peer, rtp
from test_srtp import BACK, MARK, OUT, RTP
from topology import CLIENT4, SERVER4, Topology

PACKETS = 50
RULES = f"""alert udp any any -> any {RTP} (msg:"in clear"; content:"{MARK.decode()}"; sid:1;)
drop udp any any -> any {RTP} (msg:"not this one"; content:"{MARK.decode()} nor let through"; sid:2;)
"""


def streams():
    return "".join(f'[[srtp.stream]]\naction = "{action}"\nsource = "{source}"\nsource_port = {RTP}\n'
                   f'destination = "{destination}"\ndestination_port = {RTP}\n'
                   f'crypto = "1 AES_CM_128_HMAC_SHA1_80 inline:{base64.b64encode(key).decode()}"\n'
                   for action, source, destination, key in (("protect", CLIENT4, SERVER4, OUT), ("unprotect", SERVER4, CLIENT4, BACK)))


@pytest.fixture(scope="module", params=[["inspect", "srtp", "route"], ["srtp", "inspect", "route"]], ids="-".join)
def network(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("both")
    rules = folder / "media.rules"
    rules.write_text(RULES, encoding="utf-8")
    with Topology(folder, srtp=streams(), inspect=(f'rules = ["{rules}"]',), chain=request.param, engine=('device = "cpu"',)) as topology:
        topology.inspects_first = request.param[0] == "inspect"
        topology.start()
        yield topology


def drops(network):
    return network.gateway.drops().get("inspect_dropped", 0)


def exchange(network, send, receive, protect, unprotect):
    """Sends PACKETS with the mark, one that a rule drops, and one more. Returns how many alerts and drops there were meanwhile."""
    before = network.metric("inspect_alerts"), drops(network)
    for number in range(PACKETS):
        packet = rtp(number, MARK + bytes([number]) * (number * 29 % 900))
        send(protect(packet))
        assert unprotect(receive()) == packet, number
    forbidden, last = rtp(PACKETS, MARK + b" nor let through"), rtp(PACKETS + 1, b"the last one")
    send(protect(forbidden))
    send(protect(last))
    got = unprotect(receive())
    if got == forbidden:
        got = unprotect(receive())
    assert got == last
    return lambda: (network.metric("inspect_alerts") - before[0], drops(network) - before[1])


@pytest.mark.parametrize("protects", [True, False], ids=["protected", "unprotected"])
def test_what_is_in_clear_where_it_is_inspected_is_seen(network, protects):
    """In front of the protection what is protected, and behind it what was unprotected."""
    peer = Peer(OUT, inbound=True) if protects else Peer(BACK, inbound=False)
    with network.client.udp(CLIENT4, RTP) as client, network.server.udp(SERVER4, RTP) as server:
        sender, listener, to = (client, server, SERVER4) if protects else (server, client, CLIENT4)
        as_it_is = bytes
        counted = exchange(network, lambda packet: sender.sendto(packet, (to, RTP)), lambda: listener.recv(2048),
                           *((as_it_is, peer.unprotect) if protects else (peer.protect, as_it_is)))
        expected = (PACKETS + 2, 1) if network.inspects_first == protects else (0, 0)
        assert wait_until(lambda: counted() == expected), counted()
