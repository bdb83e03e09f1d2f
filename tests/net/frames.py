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


def write_pcap(path, frames):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1))
        for number, frame in enumerate(frames):
            file.write(struct.pack("<IIII", 1, number, len(frame), len(frame)) + frame)


def read_pcap(path):
    data = path.read_bytes()
    frames, at = [], 24
    while at < len(data):
        _, _, stored, original = struct.unpack_from("<IIII", data, at)
        assert stored == original, "a frame was cut in the capture"
        frames.append(data[at + 16:at + 16 + stored])
        at += 16 + stored
    return frames
