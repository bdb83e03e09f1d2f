"""chain = ["srtp", ...] between two hosts: what one sends in clear, libsrtp of the other takes as SRTP, and back."""

import base64
import json
import os
import threading
import time

import pytest
from capture import Capture
from hosts import wait_until
from srtp_peer import Peer, receiver_report, rtp
from topology import CLIENT4, CLIENT6, SERVER4, SERVER6, Topology

OUT, BACK = os.urandom(30), os.urandom(30)
RTP, RTCP = 5004, 5005
PACKETS = 400
OTHER_SSRC = 0x99aabbcc
MARK = b"this payload must be seen by nobody on the way"
FAMILIES = [(CLIENT4, SERVER4), (CLIENT6, SERVER6)]


def streams():
    """Both directions of both families; RTCP out beside RTP, RTCP back alone."""
    text = ""
    for client, server in FAMILIES:
        for action, source, destination, port, key in (("protect", client, server, RTP, OUT),
                                                       ("unprotect", server, client, RTCP, BACK)):
            text += (f'[[srtp.stream]]\naction = "{action}"\nsource = "{source}"\nsource_port = {port}\n'
                     f'destination = "{destination}"\ndestination_port = {port}\n'
                     f'crypto = "1 AES_CM_128_HMAC_SHA1_80 inline:{base64.b64encode(key).decode()}"\n')
    return text


@pytest.fixture(scope="module")
def network(tmp_path_factory):
    with Topology(tmp_path_factory.mktemp("srtp"), srtp=streams(), engine=('device = "cpu"',)) as topology:
        topology.start()
        yield topology


def payload(sequence):
    return MARK + bytes([sequence & 0xff]) * (sequence * 37 % 1300)  # odd lengths too


@pytest.mark.parametrize("client, server", FAMILIES)
def test_clear_out_and_srtp_in(network, client, server):
    before = network.metric("srtp_protected_rtp")
    receiver = Peer(OUT, inbound=True)
    with network.client.udp(client, RTP) as sender, network.server.udp(server, RTP) as listener:
        for sequence in range(65400, 65400 + PACKETS):  # over the end of the sequence numbers
            packet = rtp(sequence, payload(sequence))
            sender.sendto(packet, (server, RTP))
            sealed = listener.recv(2048)
            assert MARK not in sealed and len(sealed) == len(packet) + 10
            assert receiver.unprotect(sealed) == packet
        report = receiver_report()
        sender.sendto(report, (server, RTP))
        assert receiver.unprotect_rtcp(listener.recv(2048)) == report
    assert network.metric("srtp_protected_rtp") == before + PACKETS


@pytest.mark.parametrize("client, server", FAMILIES)
def test_srtcp_in_and_clear_out(network, client, server):
    before = network.gateway.drops()
    sender = Peer(BACK, inbound=False)
    with network.client.udp(client, RTCP) as listener, network.server.udp(server, RTCP) as source:
        good = [sender.protect_rtcp(receiver_report()) for _ in range(20)]
        for packet in good:
            source.sendto(packet, (client, RTCP))
            assert listener.recv(2048) == receiver_report()
        falsified = bytearray(sender.protect_rtcp(receiver_report()))
        falsified[-1] ^= 1
        source.sendto(falsified, (client, RTCP))
        source.sendto(good[0], (client, RTCP))
        source.sendto(receiver_report() + bytes(40), (client, RTCP))  # in clear
        source.sendto(sender.protect_rtcp(receiver_report()), (client, RTCP))
        assert listener.recv(2048) == receiver_report(), "the next good one, and none of those before it"
        listener.settimeout(0.3)
        with pytest.raises(TimeoutError):
            listener.recv(2048)

    def counted():
        drops = network.gateway.drops()
        return [drops.get(name, 0) - before.get(name, 0) for name in ("srtp_auth_failed", "srtp_replayed")]

    assert wait_until(lambda: counted() == [2, 1]), counted()


def test_a_wire_sees_no_clear_payload(network):
    """Everything that reaches the server's link, whatever it is: fragments and datagrams too big for it too."""
    before = network.gateway.drops().get("srtp_not_plain", 0)
    too_big = network.gateway.drops().get("srtp_too_big", 0)
    with Capture(network.server, "eth0") as capture, network.client.udp(CLIENT4, RTP) as sender:
        for size in (10, 1440, 1455, 4000):
            sender.sendto(rtp(1000 + size, MARK * (size // len(MARK) + 1))[:size + 12], (SERVER4, RTP))
        assert wait_until(lambda: network.gateway.drops().get("srtp_too_big", 0) > too_big, 5), "1,455 bytes, their headers and the tag"
        assert wait_until(lambda: network.gateway.drops().get("srtp_not_plain", 0) >= before + 2, 5), "the fragments of 4,000 bytes"
        assert wait_until(lambda: sum(to == (SERVER4, RTP) for _, to, _ in capture.udp()) >= 2, 5)
    assert not capture.has(MARK[:20])


def test_reload_keeps_what_stays_and_says_no_key(network):
    receiver = Peer(OUT, inbound=True)
    path = network.gateway.config_path
    with network.client.udp(CLIENT4, RTP) as sender, \
            network.server.udp(SERVER4, RTP) as listener:
        sender.sendto(rtp(9000, MARK, OTHER_SSRC), (SERVER4, RTP))
        first = listener.recv(2048)
        extra = streams().split("[[srtp.stream]]")[1].replace(f"source_port = {RTP}", "source_port = 9")
        path.write_text(path.read_text(encoding="utf-8") + "\n[[srtp.stream]]" + extra, encoding="utf-8")
        assert "5 SRTP streams are in force" in network.gateway.control("reload")
        sender.sendto(rtp(9000, MARK, OTHER_SSRC), (SERVER4, RTP))  # whose index is taken
        sender.sendto(rtp(9001, MARK, OTHER_SSRC), (SERVER4, RTP))
        second = listener.recv(2048)
        assert receiver.unprotect(first) == rtp(9000, MARK, OTHER_SSRC)
        assert receiver.unprotect(second) == rtp(9001, MARK, OTHER_SSRC)
    for said in (network.gateway.log(), network.gateway.get("/api/v1/config"), network.gateway.get("/api/v1/stats"),
                 network.gateway.get("/metrics"), network.gateway.control("stats")):
        for key in (OUT, BACK):
            assert base64.b64encode(key).decode()[:12] not in said


def test_streams_over_the_api(network, tmp_path):
    """One more, given to the gateway while it runs, protects; once it is taken away, nothing of it goes on in clear
    until it is released."""
    port = 7004
    receiver = Peer(OUT, inbound=True)
    stream = tmp_path / "stream.toml"
    ends = (f'source = "{CLIENT4}"\nsource_port = {port}\ndestination = "{SERVER4}"\ndestination_port = {port}\n')
    whole = f'action = "protect"\ncrypto = "1 AES_CM_128_HMAC_SHA1_80 inline:{base64.b64encode(OUT).decode()}"\n' + ends
    stream.write_text(whole, encoding="utf-8")
    assert "of the file protect with keys of the file" in network.gateway.log()
    with network.client.udp(CLIENT4, port) as sender, \
            network.server.udp(SERVER4, port) as listener:
        packet = rtp(1, MARK)
        sender.sendto(packet, (SERVER4, port))
        assert listener.recv(2048) == packet
        assert f"{CLIENT4}:{port} -> {SERVER4}:{port} is in force" in network.gateway.control("srtp", "add", stream)
        assert "is in the table already" in network.gateway.control("srtp", "add", stream, check=False)
        listed = network.gateway.control("srtp", "list")
        assert f"{CLIENT4}:{port} -> {SERVER4}:{port}" in listed and base64.b64encode(OUT).decode()[:12] not in listed
        sender.sendto(packet, (SERVER4, port))
        assert receiver.unprotect(listener.recv(2048)) == packet
        assert "in force" in network.gateway.control("reload"), "which leaves it as it is"
        sender.sendto(rtp(2, MARK), (SERVER4, port))
        assert receiver.unprotect(listener.recv(2048)) == rtp(2, MARK)
        assert "is gone" in network.gateway.control("srtp", "remove", stream), "the file that was added"
        stream.write_text(ends, encoding="utf-8")
        assert "was added over the API" in network.gateway.control("srtp", "remove", stream, check=False)
        before = network.gateway.drops().get("srtp_ended", 0)
        sender.sendto(packet, (SERVER4, port))
        assert wait_until(lambda: network.gateway.drops().get("srtp_ended", 0) == before + 1)
        assert "is released" in network.gateway.control("srtp", "release", stream)
        sender.sendto(packet, (SERVER4, port))
        assert listener.recv(2048) == packet
    again = f"the SRTP stream {CLIENT4}:{port} -> {SERVER4}:{port} protects with a key that it has had before"
    assert again not in network.gateway.log()
    stream.write_text(whole, encoding="utf-8")
    network.gateway.control("srtp", "add", stream)
    assert wait_until(lambda: again in network.gateway.log())
    network.gateway.control("srtp", "release", stream)


def test_new_keys_over_the_api_while_packets_come(network, tmp_path):
    """Nothing is lost and nothing is clear, from the first key to the last, and after it."""
    port, keys = 7010, [os.urandom(30) for _ in range(8)]
    stream = tmp_path / "stream.toml"
    with network.client.udp(CLIENT4, port) as sender, \
            network.server.udp(SERVER4, port) as listener:
        over, sent = threading.Event(), []

        def send():
            while not over.is_set():
                sent.append(rtp(len(sent), MARK))
                sender.sendto(sent[-1], (SERVER4, port))
                time.sleep(0.0005)

        sending = threading.Thread(target=send)
        for number, key in enumerate(keys):
            stream.write_text(f'action = "protect"\nsource = "{CLIENT4}"\nsource_port = {port}\ndestination = "{SERVER4}"\n'
                              f'destination_port = {port}\ncrypto = "1 AES_CM_128_HMAC_SHA1_80 inline:{base64.b64encode(key).decode()}"\n',
                              encoding="utf-8")
            said = network.gateway.control("srtp", "replace", stream)
            assert ("in place of the one before" in said) == (number > 0), said
            if number == 0:
                sending.start()
            time.sleep(0.1)
        assert "is gone" in network.gateway.control("srtp", "remove", stream)
        time.sleep(0.2)
        over.set()
        sending.join()
        listener.settimeout(0.5)
        peers, opened = [Peer(key, inbound=True) for key in keys], 0
        try:
            while True:
                sealed = listener.recv(2048)
                assert MARK not in sealed
                while peers[0].unprotect(sealed) != sent[opened]:
                    peers.pop(0)
                opened += 1
        except TimeoutError:
            pass
        assert len(peers) == 1 and 500 < opened < len(sent), "each key had its time, and so had none"
        assert "is released" in network.gateway.control("srtp", "release", stream)


def test_forged_first_frames_take_no_stream(network, tmp_path):
    """What is SRTP belongs to who has the key; what is clear to who comes by the right port. Each port has a lane of its own here."""
    def drops(name):
        return network.gateway.drops().get(name, 0)

    def add(action, source, destination, port, key, more=""):
        stream = tmp_path / f"{action}.toml"
        stream.write_text(f'action = "{action}"\nsource = "{source}"\nsource_port = {port}\ndestination = "{destination}"\n'
                          f'destination_port = {port}\ncrypto = "1 AES_CM_128_HMAC_SHA1_80 inline:{base64.b64encode(key).decode()}"\n'
                          + more, encoding="utf-8")
        network.gateway.control("srtp", "add", stream)

    forged = rtp(1, bytes(60))
    add("unprotect", SERVER4, CLIENT4, 7006, BACK)
    before = drops("srtp_auth_failed")
    network.forge(network.client, "sl-lan", forged, (SERVER4, 7006), (CLIENT4, 7006))
    assert wait_until(lambda: drops("srtp_auth_failed") == before + 1)
    with network.client.udp(CLIENT4, 7006) as listener, network.server.udp(SERVER4, 7006) as source:
        source.sendto(Peer(BACK, inbound=False).protect(rtp(1, MARK)), (CLIENT4, 7006))
        assert listener.recv(2048) == rtp(1, MARK)

    add("protect", CLIENT4, SERVER4, 7008, OUT, 'ingress = "lan"\n')
    before = drops("srtp_wrong_port")
    network.forge(network.server, "sl-wan", forged, (CLIENT4, 7008), (SERVER4, 7008))
    assert wait_until(lambda: drops("srtp_wrong_port") == before + 1)
    with network.client.udp(CLIENT4, 7008) as source, network.server.udp(SERVER4, 7008) as listener:
        source.sendto(rtp(1, MARK), (SERVER4, 7008))
        assert Peer(OUT, inbound=True).unprotect(listener.recv(2048)) == rtp(1, MARK)
    row, = (line for line in network.gateway.control("srtp", "list").splitlines() if ":7008" in line)
    assert " lan " in row
    row, = (row for row in json.loads(network.gateway.get(f"/api/v1/srtp?address={CLIENT4}"))["streams"] if ":7008" in row["stream"])
    assert row["ingress"] == "lan" and row["rtp_packets"] == row["ssrcs"] == row["drops"]["wrong_port"] == 1, row
    assert 0 <= row["age_ms"] < 60_000 and row["drops"]["auth_failed"] == 0, row
