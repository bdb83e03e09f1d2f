"""Frames and capture files made by hand, independent of Sluice's own builder: what must come out is written down here."""

import socket
import struct

HOST_MAC, ROUTER_MAC, NEXT_MAC = (bytes.fromhex(text) for text in ("0200000000fe", "020000000001", "02000000aa02"))


def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ethernet(kind, to=ROUTER_MAC, source=HOST_MAC):
    return to + source + struct.pack("!H", kind)


def ipv4(number, destination, ttl=64, size=100, **macs):
    """A UDP datagram of `size` payload bytes that carry its number."""
    payload = struct.pack("!I", number).ljust(size, b"\x5a")
    header = bytearray(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 28 + len(payload), number & 0xFFFF, 0, ttl, 17, 0,
                                   socket.inet_aton("198.18.0.1"), socket.inet_aton(destination)))
    header[10:12] = struct.pack("!H", checksum(bytes(header)))
    return ethernet(0x0800, **macs) + bytes(header) + struct.pack("!HHHH", 4000, 9, 8 + len(payload), 0) + payload


def ipv6(number, destination, hop_limit=64, size=100, **macs):
    payload = struct.pack("!I", number).ljust(size, b"\x6b")
    header = struct.pack("!IHBB16s16s", 0x60000000, 8 + len(payload), 17, hop_limit,
                         socket.inet_pton(socket.AF_INET6, "2001:db8:99::1"), socket.inet_pton(socket.AF_INET6, destination))
    return ethernet(0x86DD, **macs) + header + struct.pack("!HHHH", 4000, 9, 8 + len(payload), 1) + payload


def arp_request(sender, target):
    """To everyone: who has `target`, tell `sender`."""
    return ethernet(0x0806, to=b"\xff" * 6) + struct.pack("!HHBBH6s4s6s4s", 1, 0x0800, 6, 4, 1, HOST_MAC,
                                                          socket.inet_aton(sender), bytes(6), socket.inet_aton(target))


def neighbour_solicitation(sender, target):
    """The same in IPv6, to the target's solicited-node group."""
    source, wanted = (socket.inet_pton(socket.AF_INET6, address) for address in (sender, target))
    group = socket.inet_pton(socket.AF_INET6, "ff02::1:ff00:0")[:13] + wanted[13:]
    message = bytearray(struct.pack("!BBHI16sBB6s", 135, 0, 0, 0, wanted, 1, 1, HOST_MAC))
    message[2:4] = struct.pack("!H", checksum(source + group + struct.pack("!II", len(message), 58) + bytes(message)))
    header = struct.pack("!IHBB16s16s", 0x60000000, len(message), 58, 255, source, group)
    return ethernet(0x86DD, to=b"\x33\x33" + group[12:]) + header + bytes(message)


CLIENT, SERVER = "198.18.0.1", "198.18.0.2"


def packet4(protocol, content, source=CLIENT, destination=SERVER, **macs):
    """An IPv4 frame with this protocol's header and data."""
    header = bytearray(struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(content), 1, 0, 64, protocol, 0,
                                   socket.inet_aton(source), socket.inet_aton(destination)))
    header[10:12] = struct.pack("!H", checksum(bytes(header)))
    return ethernet(0x0800, **macs) + bytes(header) + content


def udp4(payload, port, source=CLIENT, destination=SERVER, source_port=4000, **macs):
    return packet4(17, struct.pack("!HHHH", source_port, port, 8 + len(payload), 0) + payload, source, destination, **macs)


def ping4(size):
    message = bytearray(struct.pack("!BBHHH", 8, 0, 0, 1, 1) + b"\x5a" * size)
    message[2:4] = struct.pack("!H", checksum(bytes(message)))
    return packet4(1, bytes(message))


SYN, PUSH, ACK = 0x02, 0x08, 0x10


class Tcp4:
    """A connection from its handshake on, as frames; checksums of TCP are 0."""

    def __init__(self, port=80, client_port=40000, client=CLIENT, server=SERVER):
        self.ends = (client, client_port), (server, port)
        self.next = [1000, 5000]
        self.frames = []
        self.send(0, SYN)
        self.send(1, SYN | ACK)
        self.send(0, ACK)

    def send(self, side, flags, data=b"", options=b""):
        """A segment of the client's (side 0) or the server's (1)."""
        (source, source_port), (destination, destination_port) = self.ends[side], self.ends[1 - side]
        ack = self.next[1 - side] if flags & ACK else 0
        words = 5 + len(options) // 4
        header = struct.pack("!HHIIBBHHH", source_port, destination_port, self.next[side], ack, words << 4, flags, 65000, 0, 0)
        self.frames.append(packet4(6, header + options + data, source, destination))
        self.next[side] += len(data) + (1 if flags & SYN else 0)

    def says(self, *pieces):
        """The client sends these, a segment each, and each is acknowledged."""
        for piece in pieces:
            self.send(0, PUSH | ACK, piece)
            self.send(1, ACK)
        return self

    def says_in_one_place(self, *pieces):
        """The client sends these for the same place, and none is acknowledged."""
        for piece in pieces:
            self.send(0, PUSH | ACK, piece)
            self.next[0] -= len(piece)
        return self

    def answers(self, *pieces):
        for piece in pieces:
            self.send(1, PUSH | ACK, piece)
            self.send(0, ACK)
        return self


def write_pcap(path, frames, link=1, snapshot=65535, order="<", magic=0xA1B2C3D4):
    """`snapshot`: what the header says; frames are whole. `magic`: 0xA1B23C4D nanoseconds, 0xA1B2CD34 a modified one."""
    more = bytes(8) if magic == 0xA1B2CD34 else b""
    with open(path, "wb") as file:
        file.write(struct.pack(f"{order}IHHiIII", magic, 2, 4, 0, 0, snapshot, link))
        for number, frame in enumerate(frames):
            file.write(struct.pack(f"{order}IIII", 1, number, len(frame), len(frame)) + more + frame)


def write_pcapng(path, frames, links=(1,), snapshots=(0,)):
    """An interface for each of `links`, with each of `snapshots`, and the frames in turn from all of them, as they come."""
    interfaces = [(link, snapshot) for link in links for snapshot in snapshots]
    blocks = [(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))]
    blocks += [(1, struct.pack("<HHI", link, 0, snapshot)) for link, snapshot in interfaces]
    for number, frame in enumerate(frames):
        header = struct.pack("<IIIII", number % len(interfaces), 0, 1_000_000 + number, len(frame), len(frame))
        blocks.append((6, header + frame + bytes(-len(frame) % 4)))
    with open(path, "wb") as file:
        for kind, body in blocks:
            file.write(struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body)))


def read_pcap(path):
    data = path.read_bytes()
    frames, at = [], 24
    while at < len(data):
        _, _, stored, original = struct.unpack_from("<IIII", data, at)
        assert stored == original, "a frame was cut in the capture"
        frames.append(data[at + 16:at + 16 + stored])
        at += 16 + stored
    return frames
