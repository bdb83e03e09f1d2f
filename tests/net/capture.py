"""What passes an interface, seen by a packet socket: its frames, its datagrams, and what TCP and RTP carried."""

import socket
import struct
import threading

RTP_FIXED = 12
RTCP_FIXED = 8
HALF = 1 << 31  # of TCP's sequence numbers
SOL_PACKET, PACKET_IGNORE_OUTGOING = 263, 23  # Linux's packet sockets


class Capture:
    """All that passes an interface, while it is there; or only what it receives, which of a veth is all that the other end sends. A
    driver of packet sockets sends past those who listen at its own end."""

    def __init__(self, host, interface, received_only=False):
        self.frames, self._end = [], threading.Event()

        def watch():
            wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
            wire.setsockopt(SOL_PACKET, PACKET_IGNORE_OUTGOING, received_only)
            wire.bind((interface, 0))
            wire.settimeout(0.2)
            return wire

        self._wire = host.inside(watch)
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self):
        while not self._end.is_set():
            try:
                self.frames.append(self._wire.recv(65535))
            except TimeoutError:
                pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()
        self._wire.close()

    def has(self, octets):
        """Whether any frame has these octets in it."""
        return any(octets in frame for frame in self.frames)

    def _packets(self, protocol):
        """(source, destination, what IP carries) of each packet of that protocol, whole, without extension headers."""
        for frame in self.frames:
            kind, = struct.unpack_from("!H", frame, 12)
            if kind == 0x0800 and frame[23] == protocol:
                length, = struct.unpack_from("!H", frame, 16)
                yield (socket.inet_ntop(socket.AF_INET, frame[26:30]), socket.inet_ntop(socket.AF_INET, frame[30:34]),
                       frame[14 + (frame[14] & 15) * 4:14 + length])
            elif kind == 0x86dd and frame[20] == protocol:
                length, = struct.unpack_from("!H", frame, 18)
                yield (socket.inet_ntop(socket.AF_INET6, frame[22:38]), socket.inet_ntop(socket.AF_INET6, frame[38:54]),
                       frame[54:54 + length])

    def udp(self):
        """((source, port), (destination, port), payload) of each datagram, in order."""
        for source, destination, packet in self._packets(17):
            ports = struct.unpack_from("!HHH", packet)
            yield (source, ports[0]), (destination, ports[1]), packet[8:ports[2]]

    def tcp_text(self):
        """Everything that TCP carried, of each direction of each connection in its own order, each octet once."""
        streams = {}
        for source, destination, packet in self._packets(6):
            from_port, to_port, sequence = struct.unpack_from("!HHI", packet)
            ends = (source, from_port, destination, to_port)
            first, octets = streams.setdefault(ends, (sequence, {}))
            at = (sequence - first + HALF) % (2 * HALF) - HALF
            octets.update(enumerate(packet[(packet[12] >> 4) * 4:], at))
        return b"\r\n".join(bytes(octet for _, octet in sorted(octets.items())) for _, octets in streams.values())

    def media(self, source):
        """What has come from an address: RTP by (SSRC, sequence number) in the order in which it came, and RTCP as a list with
        SSRCs."""
        rtp, rtcp = {}, []
        for (address, _), _, payload in self.udp():
            if address != source or len(payload) < RTCP_FIXED or payload[0] >> 6 != 2:
                continue
            if 192 <= payload[1] <= 223:
                rtcp.append((payload[4:8], payload))
            elif len(payload) >= RTP_FIXED:
                rtp[payload[8:12], payload[2:4]] = payload
        return rtp, rtcp
