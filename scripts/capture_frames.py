"""Captures as their frames, with an Ethernet header each: pcap and pcapng (draft-ietf-opsawg-pcapng), by hand, so that nothing
has to be installed. For the scripts beside it.
"""

import struct

# Link types of tcpdump.org/linktypes.html whose packet lies behind a header of so many bytes.
LINK_HEADER = {0: 4, 9: 4, 12: 0, 14: 0, 101: 0, 108: 4, 113: 16, 228: 0, 229: 0, 276: 20}


def ethernet(link, frame):
    """The frame with an Ethernet header, from and to address 0; None where it has no IP packet."""
    if link == 1:
        return frame
    packet = frame[LINK_HEADER[link]:]
    kind = {4: b"\x08\x00", 6: b"\x86\xdd"}.get(packet[0] >> 4) if packet else None
    return bytes(12) + kind + packet if kind else None


def check_link(link):
    if link != 1 and link not in LINK_HEADER:
        raise ValueError(f"has frames of link type {link}, which is none of 1, {', '.join(map(str, sorted(LINK_HEADER)))}")


def classic(data, order, per_microsecond):
    link = struct.unpack(order + "I", data[20:24])[0] & 0xffff  # above it: how long checksums of frames are
    check_link(link)
    at = 24
    while at + 16 <= len(data):
        seconds, fraction, size, _ = struct.unpack(order + "4I", data[at:at + 16])
        if at + 16 + size > len(data):
            raise ValueError("ends inside a packet")
        yield seconds * 1_000_000 + fraction // per_microsecond, ethernet(link, data[at + 16:at + 16 + size])
        at += 16 + size


def resolution(order, options):
    """Units of a second that an interface's times are in (if_tsresol)."""
    while len(options) >= 4:
        code, size = struct.unpack(order + "HH", options[:4])
        if code == 9:
            return 2 ** (options[4] & 0x7f) if options[4] & 0x80 else 10 ** options[4]
        options = options[4 + (size + 3) // 4 * 4:]
    return 1_000_000


def next_generation(data):
    """pcapng (draft-ietf-opsawg-pcapng): enhanced and simple packet blocks."""
    order, interfaces, at = "<", [], 0
    while at + 12 <= len(data):
        if data[at:at + 4] == b"\n\r\r\n":
            order = "<" if data[at + 8:at + 12] == b"\x4d\x3c\x2b\x1a" else ">"
            interfaces = []
        kind, size = struct.unpack(order + "II", data[at:at + 8])
        body = data[at + 8:at + size - 4]
        if size < 12 or at + size > len(data):
            raise ValueError("ends inside a block, or is damaged")
        at += size
        if kind == 1:
            check_link(link := struct.unpack(order + "H", body[:2])[0])
            interfaces.append((link, resolution(order, body[8:])))
        elif kind == 6 and len(body) >= 20:
            number, high, low, length, _ = struct.unpack(order + "5I", body[:20])
            link, units = interfaces[number]
            yield (high << 32 | low) * 1_000_000 // units, ethernet(link, body[20:20 + length])
        elif kind == 3:
            yield 0, ethernet(interfaces[0][0], body[4:4 + struct.unpack(order + "I", body[:4])[0]])


def frames(path):
    """(microseconds, Ethernet frame or None) of each of a capture's; ValueError says why there are none."""
    data = path.read_bytes()
    orders = {b"\xd4\xc3\xb2\xa1": ("<", 1), b"\xa1\xb2\xc3\xd4": (">", 1),
              b"\x4d\x3c\xb2\xa1": ("<", 1000), b"\xa1\xb2\x3c\x4d": (">", 1000)}
    if data[:4] == b"\n\r\r\n":
        return list(next_generation(data))
    if data[:4] not in orders or len(data) < 24:
        raise ValueError("is no capture")
    return list(classic(data, *orders[data[:4]]))


def write_header(out):
    out.write(struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 262144, 1))


def write_frame(out, microseconds, frame):
    out.write(struct.pack("<4I", microseconds // 1_000_000, microseconds % 1_000_000, len(frame), len(frame)) + frame)
