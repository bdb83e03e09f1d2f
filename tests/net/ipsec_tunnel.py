"""A Sluice with a tunnel to a host whose ESP and AH are scapy's (esp_host.py).

        client                             router                              server
        10.1.0.2/24      lan0 | sl-lan 10.1.0.1   sl-wan 10.2.0.1 | wan0      eth0 10.2.0.2/24
        10.11.0.2, 2001:db8:11::2          ======= tunnel =======            tun0 10.20.0.1/24, 2001:db8:20::1/64

What goes between the addresses of the second line goes by the tunnel alone.
"""

import json
import pathlib
import struct
import sys

from frames import packet4
from hosts import wait_until
from topology import Topology

ESP_HOST = pathlib.Path(__file__).with_name("esp_host.py")
INSIDE4, INSIDE6 = "10.11.0.2", "2001:db8:11::2"
FAR4, FAR6 = "10.20.0.1", "2001:db8:20::1"
ENDS = {4: ("10.2.0.1", "10.2.0.2"), 6: ("2001:db8:2::1", "2001:db8:2::2")}
OUT_SPI, IN_SPI = 0x1001, 0x2002
AH_SPI = 0x10000  # so much more has AH around ESP


def key(length, first=0x10):
    return bytes((first + n) % 256 for n in range(length)).hex()


# Sluice's proposal: (scapy's cipher, bytes of its key with the salt, scapy's hash, bytes of its key)
ALGORITHMS = {
    "aes128-sha1": ("AES-CBC", 16, "HMAC-SHA1-96", 20),
    "aes192-sha256": ("AES-CBC", 24, "SHA2-256-128", 32),
    "aes256-sha512": ("AES-CBC", 32, "SHA2-512-256", 64),
    "aes128ctr-sha384": ("AES-CTR", 20, "SHA2-384-192", 48),
    "aes256ctr-sha256": ("AES-CTR", 36, "SHA2-256-128", 32),
    "aes128gcm16": ("AES-GCM", 20, None, 0),
    "aes256gcm16": ("AES-GCM", 36, None, 0),
    "chacha20poly1305": ("CHACHA20-POLY1305", 36, None, 0),
    "null-sha256": ("NULL", 0, "SHA2-256-128", 32),
    "null-sha512": ("NULL", 0, "SHA2-512-256", 64),
}


def udp4(source, destination, payload, ports=(4000, 4000)):
    """An IPv4 packet of UDP."""
    return packet4(17, struct.pack("!HHHH", *ports, 8 + len(payload), 0) + payload, source=source, destination=destination)[14:]


class Tunnel(Topology):
    """`outer`: the family of the tunnel; `sa`: more lines of both SAs, `peer`: more of what scapy knows of them; `around`: the
    proposal of AH that is around ESP; `peer_mtu`: of what the peer sends through the tunnel."""

    def __init__(self, folder, proposal="aes128gcm16", outer=4, protocol="esp", sa=(), peer=None, chain=("ipsec", "route"), around=None, peer_mtu=1300,
                 **configuration):
        self.around, self.number, self.peer_mtu = around, 1, peer_mtu
        self.proposal, self.outer, self.protocol, self.sa_lines, self.peer_more = proposal, outer, protocol, sa, peer or {}
        self.log = pathlib.Path(folder) / "esp_host.log"
        super().__init__(folder, chain=list(chain), more=self.ipsec(), **configuration)

    def algorithm(self):
        return (None, 0, *ALGORITHMS[f"null-{self.proposal}"][2:]) if self.protocol == "ah" else ALGORITHMS[self.proposal]

    def ipsec(self):
        """The section [ipsec]."""
        here, there = ENDS[self.outer]
        text = "\n[ipsec]\nmax_sas = 64\n"
        text += self.sa_text("out", here, there, OUT_SPI) + self.sa_text("in", there, here, IN_SPI)
        for inside, far in (("10.11.0.0/24", "10.20.0.0/24"), ("2001:db8:11::/64", "2001:db8:20::/64")):
            for direction, source, destination, ends in (("out", inside, far, (here, there)), ("in", far, inside, (there, here))):
                text += self.policy_text(direction, source, destination, f'tunnel_source = "{ends[0]}"\ntunnel_destination = "{ends[1]}"\n')
        return text

    def sa_text(self, direction, source, destination, spi, mode="tunnel", name=""):
        """The SA of a direction, and that of AH around it."""
        _, cipher_key, _, auth_key = self.algorithm()
        ends = f'direction = "{direction}"\nsource = "{source}"\ndestination = "{destination}"\n'
        text = (f'\n[[ipsec.sa]]\nname = "{name or direction}"\n{ends}spi = {spi}\nmode = "{mode}"\nprotocol = "{self.protocol}"\n'
                f'proposal = "{self.proposal}"\nreqid = 7\n')
        text += f'key = "{key(cipher_key)}"\n' if cipher_key else ""
        text += f'auth_key = "{key(auth_key, 0x80)}"\n' if auth_key else ""
        text += "".join(f"{line}\n" for line in self.sa_lines)
        if self.around:
            text += (f'\n[[ipsec.sa]]\nname = "ah {name or direction}"\n{ends}spi = {spi + AH_SPI}\nmode = "transport"\nprotocol = "ah"\n'
                     f'proposal = "{self.around}"\nreqid = 8\nauth_key = "{key(ALGORITHMS["null-" + self.around][3], 0x33)}"\n')
        return text

    def policy_text(self, direction, source, destination, lines):
        """`lines`: more of it."""
        text = (f'\n[[ipsec.policy]]\ndirection = "{direction}"\nsource = "{source}"\ndestination = "{destination}"\n'
                f'protocol = "{self.protocol}"\nreqid = 7\n{lines}')
        return text + ("ah_around = true\nah_reqid = 8\n" if self.around else "")

    def around_of(self, spi, source, destination, first=0x33):
        if not self.around:
            return {}
        auth, auth_key = ALGORITHMS["null-" + self.around][2:]
        return {"around": {"protocol": "ah", "auth": auth, "auth_key": key(auth_key, first), "spi": spi + AH_SPI, "source": source,
                           "destination": destination, "first": self.number}}

    def peer_sa(self):
        """What scapy has to know of both."""
        crypt, cipher_key, auth, auth_key = self.algorithm()
        return {"protocol": self.protocol, "crypt": crypt, "key": key(cipher_key), "auth": auth, "auth_key": key(auth_key, 0x80), **self.peer_more}

    def sealed(self, inner, **more):
        """A frame from the peer that holds this packet, with a number that it has not had before. `around`: None for no AH; `key`: AH's."""
        here, there = ENDS[self.outer]
        self.number += 1000
        sa = {**self.peer_sa(), "spi": IN_SPI, "source": there, "destination": here, "first": self.number,
              "id": self.number % 65536 if self.outer == 4 else None,
              **self.around_of(IN_SPI, there, here, more.pop("key", 0x33)), **more}
        sa = {name: value for name, value in sa.items() if value is not None}
        said = self.server.run(["/usr/bin/python3", str(ESP_HOST), "seal", json.dumps({"sa": sa, "packet": inner.hex()})])
        to = bytes.fromhex(self.router_mac("sl-wan").replace(":", ""))
        return to + bytes.fromhex("0200000000fe") + (b"\x08\x00" if self.outer == 4 else b"\x86\xdd") + bytes.fromhex(said.strip())

    def __enter__(self):
        super().__enter__()
        try:
            self.prepare()
        except BaseException:
            self.lab.__exit__()
            raise
        return self

    def prepare(self):
        """The hosts, before the gateway starts."""
        for host, address in ((self.client, f"{INSIDE4}/32"), (self.client, f"{INSIDE6}/128")):
            host.ip(f"addr add {address} dev eth0 {'nodad' if ':' in address else ''}".strip())

    def start(self, before_addresses=None):
        super().start(before_addresses)
        self.router.ip("route add 10.11.0.0/24 via 10.1.0.2 dev sl-lan")
        self.router.ip("route add 10.20.0.0/24 via 10.2.0.2 dev sl-wan")
        self.router.ip("-6 route add 2001:db8:11::/64 via 2001:db8:1::2 dev sl-lan")
        self.router.ip("-6 route add 2001:db8:20::/64 via 2001:db8:2::2 dev sl-wan")
        self.start_peer()
        self.resolve()
        return self.gateway

    def start_peer(self):
        here, there = ENDS[self.outer]
        sa = self.peer_sa()
        given = {"device": "tun0", "addresses": [f"{FAR4}/24", f"{FAR6}/64"], "routes": ["10.11.0.0/24", "2001:db8:11::/64"], "log": str(self.log),
                 "mtu": self.peer_mtu,
                 "out": [{**sa, "spi": IN_SPI, "source": there, "destination": here, "inner": inner, **self.around_of(IN_SPI, there, here)}
                         for inner in (4, 6)],
                 "in": [{**sa, "spi": OUT_SPI, "source": here, "destination": there, **self.around_of(OUT_SPI, here, there)}]}
        # One SA sends both families, so one sequence of numbers.
        self.spawn_peer(given)

    def spawn_peer(self, given):
        """esp_host.py, until it is ready."""
        self.peer = self.server.spawn(["/usr/bin/python3", str(ESP_HOST), json.dumps(given)], stdout=open(f"{self.log}.out", "wb"), stderr=sys.stderr)
        # Python reads scapy for a second, on a busy machine for many.
        assert wait_until(lambda: "ready" in pathlib.Path(f"{self.log}.out").read_text() or self.peer.poll() is not None, 60), "esp_host.py does not start"
        assert self.peer.poll() is None, f"esp_host.py has ended with {self.peer.poll()}"

    def resolve(self):
        """Of the first packets to a neighbour one may be lost while the kernel resolves it."""
        for far in (FAR4, FAR6):
            assert wait_until(lambda far=far: self.ping(3, 8, far) == 3), (far, self.gateway.drops(), self.gateway.log())

    def seen(self):
        """What the peer has written down."""
        return [json.loads(line) for line in self.log.read_text().splitlines()]

    def ping(self, count=3, size=56, far=FAR4, *more):
        """How many of `count` were answered."""
        inside = INSIDE6 if ":" in far else INSIDE4
        return self.client.pings(far, count, size, "-I", inside, *more)
