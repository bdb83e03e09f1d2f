"""Transport mode between the gateway's host and another one, whose ESP and AH are scapy's: what the host sends by its twin is
sealed, and what comes is opened for it.

        router                                    server
        sl-wan 10.2.0.1, 2001:db8:2::1   wan0 | eth0 10.2.0.9, 2001:db8:2::9
"""

import socket
import struct

import pytest
from capture import Capture
from frames import checksum
from hosts import wait_until
from ipsec_tunnel import IN_SPI, OUT_SPI, Tunnel, udp4

ENDS = {4: ("10.2.0.1", "10.2.0.9"), 6: ("2001:db8:2::1", "2001:db8:2::9")}
IN_UDP = {"sa": ("udp_source_port = 4500", "udp_destination_port = 4500"), "peer": {"udp": [4500, 4500]}}
KINDS = {
    "ESP, AES-GCM": {},
    "ESP, AES-CBC": {"proposal": "aes128-sha1"},
    "ESP in UDP": IN_UDP,
    "AH": {"protocol": "ah", "proposal": "sha256"},
    "AH around ESP": {"around": "sha256"},
}


class Transport(Tunnel):
    """Of both families; SAs of IPv6 have the next SPIs."""

    def ipsec(self):
        text = "\n[ipsec]\nmax_sas = 64\n"
        for family, (here, there) in ENDS.items():
            for direction, source, destination, spi in (("out", here, there, OUT_SPI + family), ("in", there, here, IN_SPI + family)):
                text += self.sa_text(direction, source, destination, spi, "transport", f"{direction}{family}")
                text += self.policy_text(direction, source, destination, 'mode = "transport"\n')
        return text

    def start_peer(self):
        sa = {**self.peer_sa(), "transport": True}
        given = {"device": "tun0", "addresses": [], "routes": [], "log": str(self.log), "mtu": self.peer_mtu,
                 "link": {"interface": "eth0", "to": self.router_mac("sl-wan")},
                 "out": [{**sa, "spi": IN_SPI + family, "source": there, "destination": here, "inner": family, **self.around_of(IN_SPI + family, there, here)}
                         for family, (here, there) in ENDS.items()],
                 "in": [{**sa, "spi": OUT_SPI + family, "source": here, "destination": there, **self.around_of(OUT_SPI + family, here, there)}
                        for family, (here, there) in ENDS.items()]}
        for family, (here, there) in ENDS.items():
            self.server.ip(f"addr add {there}/{32 if family == 4 else 128} dev eth0 {'nodad' if family == 6 else ''}".strip())
        self.spawn_peer(given)
        self.server.sysctl(net__ipv4__conf__all__rp_filter=0, net__ipv4__conf__tun0__rp_filter=0)
        for family, (here, there) in ENDS.items():  # what that address sends goes to scapy
            self.server.ip(f"-{family} rule add from {there} lookup 100")
            self.server.ip(f"-{family} route add {here} dev tun0 table 100")

    def resolve(self):
        for family in ENDS:
            assert wait_until(lambda family=family: self.ping_host(family) == 3), (family, self.gateway.drops(), self.seen()[-3:], self.gateway.log())

    def ping_host(self, family, size=56, back=False):
        """How many of three pings were answered, from the server to the router or `back`."""
        here, there = ENDS[family]
        host, source, destination = (self.router, here, there) if back else (self.server, there, here)
        return host.pings(destination, 3, size, "-I", source)


@pytest.mark.parametrize("kind", KINDS)
def test_the_hosts_own_traffic_goes_both_ways(tmp_path, kind):
    with Transport(tmp_path, **KINDS[kind]) as one:
        one.start()
        with Capture(one.server, "eth0") as capture:
            for family in ENDS:
                for size in (8, 57, 1000):
                    for back in (False, True):
                        assert one.ping_host(family, size, back) == 3, (family, size, back, one.gateway.drops(), one.seen()[-3:])
        # Between these addresses nothing went in clear.
        ends = [tuple(socket.inet_pton(socket.AF_INET if family == 4 else socket.AF_INET6, end) for end in ENDS[family]) for family in ENDS]
        seen = [(frame[23], frame[26:30], frame[30:34]) if frame[12:14] == b"\x08\x00" else (frame[20], frame[22:38], frame[38:54])
                for frame in capture.frames if frame[12:14] in (b"\x08\x00", b"\x86\xdd")]
        protocols = {protocol for protocol, source, destination in seen if (source, destination) in ends or (destination, source) in ends}
        assert protocols - {58} == {17 if "UDP" in kind else 51 if "AH" in kind else 50}, protocols  # 58: neighbour discovery
        assert all(packet.get("ok") for packet in one.seen()), one.seen()


def test_tcp_goes_through_from_both_sides(tmp_path):
    with Transport(tmp_path) as one:
        one.start()
        for family, (here, _) in ENDS.items():
            one.server.ip(f"-{family} route replace {here} dev tun0 src {ENDS[family][1]} table 100")
            said = one.server.run(["python3", "-c", SEND, here, ENDS[family][1]], check=False) if listens(one.router, here) else ""
            assert said.strip() == "60000", (family, said, one.gateway.drops())


LISTEN = """
import socket, sys
one = socket.create_server((sys.argv[1], 5001), family=socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET)
print("ready", flush=True)
peer, _ = one.accept()
with peer:
    data = b""
    while part := peer.recv(65536):
        data += part
    peer.sendall(data[::-1])
"""
SEND = """
import socket, sys
data = bytes(range(240)) * 250
one = socket.create_connection((sys.argv[1], 5001), 20, (sys.argv[2], 0))
one.sendall(data)
one.shutdown(socket.SHUT_WR)
back = b""
while part := one.recv(65536):
    back += part
print(len(back) if back == data[::-1] else "other bytes")
"""


def listens(host, address):
    host.spawn(["python3", "-c", LISTEN, address])
    return wait_until(lambda: ":5001" in host.run("ss -Hltn"))


def test_checksums_are_mended_behind_nat(tmp_path):
    """RFC 3948 section 3.1.2: the sender has counted its address behind the NAT, and the outer packet has another one."""
    with Transport(tmp_path, **IN_UDP) as one:
        one.start()

        def listening():
            at_host = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            at_host.bind(("10.2.0.1", 5000))
            at_host.settimeout(3)
            return at_host

        inner = bytearray(udp4("192.168.7.7", "10.2.0.1", b"behind a NAT", (4000, 5000)))
        pseudo = inner[12:20] + struct.pack("!BBH", 0, 17, len(inner) - 20)
        inner[26:28] = struct.pack("!H", checksum(bytes(pseudo) + bytes(inner[20:])))
        frame = bytearray(one.sealed(bytes(inner), transport=True, spi=IN_SPI + 4, source="192.168.7.7"))
        frame[26:30] = socket.inet_aton("10.2.0.9")
        frame[24:26] = b"\0\0"
        frame[24:26] = struct.pack("!H", checksum(bytes(frame[14:34])))
        with one.router.inside(listening) as at_host:
            one.server.send_frames([bytes(frame)])
            assert at_host.recvfrom(100) == (b"behind a NAT", ("10.2.0.9", 4000)), one.gateway.drops()
