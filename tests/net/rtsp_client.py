"""An RTSP client of its own, for what real ones never do: octets one by one, many requests at once, the same ports again."""

import base64
import re
import socket

from film import AUDIO, PORT, VIDEO
from hosts import wait_until
from rtsp_peers import FILM
from srtp_peer import Peer


class Answer:
    def __init__(self, head, body):
        self.status = int(head.split()[1])
        self.headers = {name.strip().lower(): value.strip() for name, _, value in
                        (line.partition(":") for line in head.split("\r\n")[1:])}
        self.body = body


class Player:
    """Plays both tracks of the film. `write(connection, octets)` puts requests on the wire."""

    def __init__(self, network, server, first_port, write=socket.socket.sendall):
        self.network, self.server, self.write = network, server, write
        host = network.client
        self.family = socket.AF_INET6 if ":" in server else socket.AF_INET
        self.url = FILM.format(f"[{server}]" if self.family == socket.AF_INET6 else server)
        self.connection = host.inside(socket.create_connection, (server, PORT), 10)
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.sequence, self.session = 0, None
        self.ports = [first_port, first_port + 2]
        self.sockets = [host.inside(self._bound, port) for port in range(first_port, first_port + 4)]
        self.keys, self.receivers = {}, {}

    def _bound(self, port):
        one = socket.socket(self.family, socket.SOCK_DGRAM)
        one.bind(("", port))
        one.settimeout(5)
        return one

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for one in (self.connection, *self.sockets):
            one.close()

    def request(self, method, url=None, **headers):
        self.sequence += 1
        lines = [f"{method} {url or self.url} RTSP/1.0", f"CSeq: {self.sequence}",
                 *([f"Session: {self.session}"] if self.session else []), *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join(lines).encode() + b"\r\n\r\n"

    def ask(self, *requests):
        """All of them at once; their answers, in order."""
        first = self.sequence - len(requests) + 1
        self.write(self.connection, b"".join(requests))
        answers = [self.answer() for _ in requests]
        assert [int(answer.headers["cseq"]) for answer in answers] == list(range(first, self.sequence + 1))
        return answers

    def _more(self):
        octets = self.connection.recv(65536)
        assert octets, f"the connection ended after {self.received!r}"
        self.received += octets

    def answer(self):
        while b"\r\n\r\n" not in self.received:
            self._more()
        head, _, self.received = self.received.partition(b"\r\n\r\n")
        answer = Answer(head.decode(), b"")
        length = int(answer.headers.get("content-length", 0))
        while len(self.received) < length:
            self._more()
        answer.body, self.received = self.received[:length], self.received[length:]
        return answer

    def learn(self, answer):
        """Keys and controls, by payload type, of a description."""
        assert answer.status == 200 and int(answer.headers["content-length"]) == len(answer.body)
        self.base = answer.headers["content-base"]
        media = re.split(rb"(?m)^m=", answer.body)[1:]
        self.controls = [self.base + re.search(rb"a=control:(\S+)", one)[1].decode() for one in media]
        for one in media:
            assert b" RTP/SAVP " in one
            self.keys[int(re.match(rb"\S+ \d+ \S+ (\d+)", one)[1])] = base64.b64decode(re.search(rb"inline:(\S+)", one)[1])
        assert set(self.keys) == {VIDEO, AUDIO}

    def set_up(self, track):
        port = self.ports[track]
        answer, = self.ask(self.request("SETUP", self.controls[track], Transport=f"RTP/SAVP;unicast;client_port={port}-{port + 1}"))
        assert answer.status == 200 and answer.headers["transport"].startswith("RTP/SAVP;"), (answer.status, answer.headers)
        self.session = answer.headers["session"].split(";")[0]

    def play(self):
        """DESCRIBE, both SETUPs, and PLAY of the whole."""
        self.learn(self.ask(self.request("DESCRIBE", Accept="application/sdp"))[0])
        for track in (0, 1):
            self.set_up(track)
        answer, = self.ask(self.request("PLAY", self.base))
        assert answer.status == 200
        return self

    def packets(self, track, count):
        """So many, as libsrtp has opened them: all that come."""
        found = []
        for _ in range(count):
            packet = self._receive(track, len(found))
            receiver = self.receivers.setdefault(track, Peer(self.keys[packet[1] & 0x7f], inbound=True))
            found.append(receiver.unprotect(packet))
            assert found[-1] is not None, f"packet {len(found)} of track {track} is not as it was sealed"
        return found

    def _receive(self, track, so_far):
        try:
            return self.sockets[2 * track].recv(2048)
        except TimeoutError:
            gateway = self.network.gateway
            raise AssertionError(f"after {so_far} packets of track {track} nothing for 5 s: {gateway.drops()},"
                                 f" {gateway.stats()['metrics']}") from None

    def silent(self, seconds):
        """Whether nothing more comes by any of the ports, once what is there is read."""
        def drained():
            got = 0
            for one in self.sockets:
                one.setblocking(False)
                try:
                    while one.recv(2048):
                        got += 1
                except BlockingIOError:
                    pass
            return got

        drained()
        return not wait_until(drained, seconds)
