"""The other end of ESP and AH, by scapy's implementation: packets that a TUN device is given leave as ESP or AH, and what
comes in as such leaves the device. Some hundred packets a second.

    python3 esp_host.py '{"device": "tun0", "addresses": ["10.20.0.1/24"], "routes": ["10.1.0.0/24"], "mtu": 1300,
                          "out": [SA], "in": [SA], "log": "FILE"}'
    SA: {"spi": 4097, "source": "192.0.2.2", "destination": "192.0.2.1", "protocol": "esp", "crypt": "AES-CBC", "key": HEX,
         "auth": "SHA2-256-128", "auth_key": HEX, "udp": [4500, 4500], "esn": false, "inner": 4, "first": 1, "around": SA,
         "transport": false}

    python3 esp_host.py seal '{"sa": SA, "packet": HEX}'      prints the packet that it becomes

`inner`: the family that the SA carries (out). `around`: of AH in transport mode, which is around the packets of this SA. `transport`: mode;
then "link" says where packets leave: {"interface": "eth0", "to": MAC of the other host}. The log has a line of JSON for each packet that came in: its SPI, sequence number,
length, TOS, DF, TTL, and "ok", or why it was refused.
"""

import fcntl
import json
import os
import selectors
import socket
import struct
import subprocess
import sys

from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.ipsec import AH, ESP, SecurityAssociation
from scapy.packet import bind_layers, split_layers

TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 1, 0x1000
PROTOCOLS = {"esp": (ESP, 50), "ah": (AH, 51)}


def association(given):
    """scapy's."""
    v6 = ":" in given["source"]
    header = None if given.get("transport") else (IPv6 if v6 else IP)(src=given["source"], dst=given["destination"])
    if header is not None and given.get("id"):
        header.id = given["id"]
    more = {"nat_t_header": UDP(sport=given["udp"][0], dport=given["udp"][1])} if given.get("udp") else {}
    if given.get("protocol", "esp") == "esp":
        more |= {"crypt_algo": given["crypt"], "crypt_key": bytes.fromhex(given.get("key", "")) or None}
    if given.get("auth"):
        more |= {"auth_algo": given["auth"], "auth_key": bytes.fromhex(given["auth_key"])}
    return SecurityAssociation(PROTOCOLS[given.get("protocol", "esp")][0], spi=given["spi"], tunnel_header=header,
                               seq_num=given.get("first", 1), esn_en=given.get("esn", False), **more)


def put_around(sa, sealed):
    """AH around ESP. Where scapy sees ESP in a packet, it signs that alone."""
    split_layers(IP, ESP, proto=50)
    split_layers(IPv6, ESP, nh=50)
    try:
        return sa.encrypt(type(sealed)(bytes(sealed)))
    finally:
        bind_layers(IP, ESP, proto=50)
        bind_layers(IPv6, ESP, nh=50)


def with_around(sas):
    return [*sas, *({**sa["around"], "transport": True} for sa in sas if "around" in sa)]


def open_tun(name):
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, TUNSETIFF, struct.pack("16sH", name.encode(), IFF_TUN | IFF_NO_PI))
    return device


class Peer:
    def __init__(self, given):
        self.tun = open_tun(given["device"])
        for command in (f"link set {given['device']} mtu {given.get('mtu', 1300)} up",
                        *(f"addr add {one} dev {given['device']} {'nodad' if ':' in one else ''}" for one in given["addresses"]),
                        *(f"{'-6 ' if ':' in one else ''}route add {one} dev {given['device']}" for one in given["routes"])):
            subprocess.run(["ip", *command.split()], check=True)
        made = {sa["spi"]: association(sa) for sa in with_around(given["out"])}  # one for all families that it carries
        self.around = {sa["spi"]: made[sa["around"]["spi"]] for sa in given["out"] if "around" in sa}
        self.out = {sa.get("inner", 4): (made[sa["spi"]], sa) for sa in given["out"]}
        self.inbound = {sa["spi"]: (association(sa), sa) for sa in with_around(given["in"])}
        self.log = open(given["log"], "w", buffering=1, encoding="utf-8")
        self.link = None
        if given.get("link"):
            self.link = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
            self.link.bind((given["link"]["interface"], 0))
            self.to = bytes.fromhex(given["link"]["to"].replace(":", "")) + self.link.getsockname()[4]
        self.raw4 = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
        self.events = selectors.DefaultSelector()
        self.events.register(self.tun, selectors.EVENT_READ, self.leave)
        self.sockets = {}
        for _, number in PROTOCOLS.values():
            for family in (socket.AF_INET, socket.AF_INET6):
                one = socket.socket(family, socket.SOCK_RAW, number)
                self.sockets[family, number] = one
                self.events.register(one, selectors.EVENT_READ, self.arrive4 if family == socket.AF_INET else self.arrive6)
        self.udp = {}
        for family, wildcard in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")):
            one = socket.socket(family, socket.SOCK_DGRAM)
            if family == socket.AF_INET6:
                one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            one.bind((wildcard, 4500))
            self.udp[family] = one
            self.events.register(one, selectors.EVENT_READ, self.arrive_udp)

    def run(self):
        print("ready", flush=True)
        while True:
            for key, _ in self.events.select():
                key.data(key.fileobj)

    def leave(self, device):
        packet = os.read(device, 65536)
        family = packet[0] >> 4
        if family not in self.out or (family == 6 and packet[24] == 0xFF):
            return
        sa, given = self.out[family]
        sealed = sa.encrypt((IP if family == 4 else IPv6)(packet), esn=(sa.seq_num >> 32) if given.get("esn") else None)
        around = self.around.get(given["spi"])
        number = PROTOCOLS["ah" if around else given.get("protocol", "esp")][1]
        if around:
            sealed = put_around(around, sealed)
        if self.link:
            if given.get("udp"):
                sealed[UDP].len = 8 + len(sealed[UDP].payload)
                sealed[UDP].chksum = 0 if family == 4 else None
                sealed = type(sealed)(bytes(sealed))
            self.link.send(self.to + (b"\x08\x00" if family == 4 else b"\x86\xdd") + bytes(sealed))
        elif isinstance(sealed, IP):
            if given.get("udp"):  # scapy leaves the length of the header alone
                sealed[UDP].len, sealed[UDP].chksum = 8 + len(sealed[UDP].payload), 0
            self.raw4.sendto(bytes(sealed), (given["destination"], 0))
        elif given.get("udp"):
            self.udp[socket.AF_INET6].sendto(bytes(sealed[UDP].payload), (given["destination"], given["udp"][1]))
        else:
            self.sockets[socket.AF_INET6, number].sendto(bytes(sealed.payload), (given["destination"], 0))

    def arrive4(self, one):
        packet = one.recv(65536)
        self.take(IP(packet), packet[1], bool(packet[6] & 0x40), packet[8])

    def arrive6(self, one):
        content, _, _, (source, *_) = one.recvmsg(65536)
        given = next((sa for _, sa in self.inbound.values() if sa["source"] == source), None)
        if given:
            header = IPv6(src=source, dst=given["destination"], nh=one.proto)
            self.take(IPv6(bytes(header / content)), None, None, None)

    def arrive_udp(self, one):
        content, (source, port, *_) = one.recvfrom(65536)
        if len(content) < 8 or content[:4] == bytes(4):
            return
        given = self.inbound.get(struct.unpack("!I", content[:4])[0], (None, {}))[1]
        header = (IPv6 if ":" in source else IP)(src=source, dst=given.get("destination", "::" if ":" in source else "0.0.0.0"))
        # In transport mode scapy takes UDP over IPv6 for a part of what is inside.
        packet = header / ESP(content) if given.get("transport") else header / UDP(sport=port, dport=4500) / ESP(content)
        self.take((IPv6 if ":" in source else IP)(bytes(packet)), None, None, None)

    def take(self, packet, tos, df, ttl):
        layer = next((one for one in (ESP, AH) if one in packet), None)
        if layer is None:
            return
        seen = {"spi": packet[layer].spi, "seq": packet[layer].seq, "length": len(packet), "tos": tos, "df": df, "ttl": ttl}
        sa, given = self.inbound.get(seen["spi"], (None, None))
        if sa is None:
            self.log.write(json.dumps({**seen, "why": "no such SPI"}) + "\n")
            return
        try:
            opened = sa.decrypt(packet, esn=0 if given.get("esn") else None)
            if given.get("protocol") == "ah" and ESP in type(opened)(bytes(opened)):
                self.log.write(json.dumps({**seen, "ok": True}) + "\n")
                return self.take(type(opened)(bytes(opened)), tos, df, ttl)
            inner = bytes(opened)
        except Exception as error:  # whatever scapy finds wrong with it
            self.log.write(json.dumps({**seen, "why": f"{type(error).__name__}: {error}"}) + "\n")
            return
        self.log.write(json.dumps({**seen, "ok": True, "inner": len(inner)}) + "\n")
        os.write(self.tun, inner)


def seal(given):
    """One packet, sealed."""
    sa, packet = given["sa"], bytes.fromhex(given["packet"])
    sealed = association(sa).encrypt((IP if packet[0] >> 4 == 4 else IPv6)(packet), esn=0 if sa.get("esn") else None)
    if UDP in sealed and sa.get("udp"):
        sealed[UDP].len, sealed[UDP].chksum = 8 + len(sealed[UDP].payload), 0
    if "around" in sa:
        sealed = put_around(association({**sa["around"], "transport": True}), sealed)
    return bytes(sealed).hex()


if __name__ == "__main__":
    if sys.argv[1] == "seal":
        print(seal(json.loads(sys.argv[2])))
        sys.exit()
    Peer(json.loads(sys.argv[1])).run()
