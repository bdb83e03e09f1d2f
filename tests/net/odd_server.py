"""odd_server.py ADDRESS PORT: an RTSP server whose answers keep to no RFC. rtsp://ADDRESS:PORT/NAME answers as CASES[NAME] has it, and
plays A-law whose octets are SOUND. "ready" says that it listens. So does REFUSED, of what no proxy may let pass.

CASES are what servers of the field send and players take all the same.
"""

import contextlib
import dataclasses
import socket
import socketserver
import struct
import sys
import threading

SOUND = bytes(range(160))  # of a packet, 20 ms
AUDIO = "m=audio 0 RTP/AVP 8\r\na=rtpmap:8 PCMA/8000\r\na=control:track1\r\n"
SESSION = "v=0\r\no=- 1 1 IN IP4 10.2.0.2\r\ns=odd\r\nc=IN IP4 0.0.0.0\r\nt=0 0\r\n"
TYPE = "Content-Type: application/sdp\r\n"
TRANSPORT = "RTP/AVP;unicast;client_port={client};server_port={server}"


@dataclasses.dataclass
class Case:
    sdp: str = SESSION + AUDIO
    describe: str = TYPE  # headers
    setup: str = "Transport: " + TRANSPORT + "\r\nSession: 7;timeout=60\r\n"
    play: str = "Session: 7\r\nRTP-Info: url={base}/track1;seq=0;rtptime=0\r\n"
    head: str = "RTSP/1.0 {status} OK\r\nCSeq: {cseq}\r\n"
    options: int = 200
    before: bytes = b""  # each answer
    length: str = "{0}"
    players: tuple = ("ffmpeg", "rtspsrc")
    left_out: str = ""  # what the proxy counts for it


def transport(text):
    return Case(setup=f"Transport: {text}\r\nSession: 7\r\n")


def headers(play, **more):
    return Case(play=play, **more)


CASES = {
    "proper": Case(),
    # Five that were reported.
    "odd-medium": Case(SESSION + AUDIO + "m=application/TP-LINK 0 RTP/AVP smart/1/90000\r\na=rtpmap:95 TP-LINK/90000\r\n"
                       "a=control:track2\r\n", left_out="medium"),
    "port-out-of-range": Case(SESSION + AUDIO.replace(" 0 ", " -1353744643 ")),
    "no-version": Case(AUDIO),
    "no-type": Case(describe=""),
    "blank-continuation": headers("Session: 7\r\n \r\nRTP-Info: url={base}/track1;seq=0;rtptime=0\r\n"),
    # Descriptions.
    "odd-medium-first": Case(SESSION + "m=application/TP-LINK 0 RTP/AVP smart/1/90000\r\na=control:track2\r\n" + AUDIO,
                             left_out="medium"),
    "port-of-words": Case(SESSION + AUDIO.replace(" 0 ", " 99999/x ")),
    "transport-of-its-own": Case(SESSION + "m=application 0 vnd.x/udp *\r\na=control:track2\r\n" + AUDIO, left_out="medium"),
    "transport-with-tcp": Case(SESSION + AUDIO.replace("RTP/AVP ", "RTP/AVP/TCP ")),
    "secure-beside-clear": Case(SESSION + AUDIO + AUDIO.replace("RTP/AVP ", "RTP/SAVP ").replace("track1", "track2"),
                                left_out="medium"),
    "line-feeds": Case((SESSION + AUDIO).replace("\r\n", "\n")),
    "carriage-returns": Case((SESSION + AUDIO).replace("\r\n", "\r")),
    "empty-lines": Case("\r\n" + (SESSION + AUDIO).replace("\r\n", "\r\n\r\n")),
    "blanks": Case("  " + (SESSION + AUDIO).replace("\r\n", " \r\n").replace("m=audio 0 ", "m= audio  0   ")),
    "byte-order-mark": Case("\ufeff" + SESSION + AUDIO),
    "nul-behind": Case(SESSION + AUDIO + "\0\0"),
    "no-line": Case(SESSION + "this is no line\r\n" + AUDIO, left_out="description_line"),
    "no-control": Case((SESSION + AUDIO).replace("a=control:track1\r\n", "")),
    "control-with-query": Case((SESSION + AUDIO).replace("track1", "{base}/track1?ctype=audio&x=1/2")),
    "control-twice": Case(SESSION + AUDIO + "a=control:track1\r\n"),
    "version-one": Case((SESSION + AUDIO).replace("v=0", "v=1")),
    "no-connection": Case((SESSION + AUDIO).replace("c=IN IP4 0.0.0.0\r\n", "c=\r\nc=IN IP4 camera.local\r\n")),
    "odd-attributes": Case(SESSION + AUDIO + "a=fmtp:x\r\na=fmtp\r\na=rtpmap:99 x\r\n"),
    "transport-of-words": Case((SESSION + AUDIO).replace("RTP/AVP", "RTP//AVP/UNICAST"), players=("ffmpeg",)),
    "many-ssrcs": Case(SESSION + AUDIO + "".join(f"a=ssrc:{number} cname:x\r\n" for number in range(1, 41))),
    "control-of-a-star": Case((SESSION + AUDIO).replace("track1", "*"), players=("ffmpeg",)),
    "control-from-the-root": Case((SESSION + AUDIO).replace("track1", "/control-from-the-root/track1")),
    "control-upwards": Case((SESSION + AUDIO).replace("track1", "../control-upwards/track1")),
    "control-with-percent": Case((SESSION + AUDIO).replace("track1", "track%3D1")),
    # The answer that has them.
    "charset": Case(describe="content-type:application/SDP; charset=utf-8\r\n"),
    "text-plain": Case(describe="Content-Type: text/plain\r\n"),
    "relative-base": Case(describe=TYPE + "Content-Base: relative-base/\r\n"),
    "empty-base": Case(describe=TYPE + "Content-Base: \r\nContent-Location:\r\n"),
    "another-base": Case(describe=TYPE + "Content-Base: rtsp://camera.local/another-base/\r\n"),
    "blank-behind-base": Case(describe=TYPE + "Content-Base: rtsp://10.2.0.2:8554/blank-behind-base/ \r\n"),
    "base-in-brackets": Case(describe=TYPE + "Content-Base: <rtsp://10.2.0.2:8554/base-in-brackets/>\r\n"),
    "encoding-of-text": Case(describe=TYPE + "Content-Encoding: utf-8\r\n"),
    # SETUP's.
    "server-port-alone": transport("RTP/AVP;unicast;client_port={client};server_port={one}"),
    "trailing-semicolon": transport(" RTP/AVP/UDP;unicast;client_port={client};server_port={server};mode=\"PLAY\";ssrc=0xZZ;;"),
    "unknown-parameters": transport("RTP/AVP;unicast;ttl=16;x-y;layers=;client_port={client};server_port={server};mode=play;ssrc="),
    "doubled-parameters": transport("RTP/AVP;unicast;unicast;server_port=9-10;client_port={client};server_port={server}"),
    "empty-source": transport("RTP/AVP;unicast;source=;client_port={client};server_port={server};destination="),
    "source-of-zeros": transport("RTP/AVP;unicast;source=0.0.0.0;client_port={client};server_port={server}"),
    "comma-behind": transport(TRANSPORT + ","),
    "two-transports": transport(TRANSPORT + ",RTP/AVP/TCP;unicast;interleaved=0-1"),
    "two-transport-headers": transport(TRANSPORT + "\r\nTransport: RTP/AVP;multicast"),
    "no-client-port": transport("RTP/AVP;unicast;client_port=;server_port={server}"),
    "open-quote": transport('RTP/AVP;unicast;mode="PLAY;client_port={client};server_port={server}'),
    "commas-between": transport("RTP/AVP;unicast,client_port={client};server_port={server}"),
    "comma-before-semicolon": transport("RTP/AVP;unicast;ssrc=deadbeef,;client_port={client};server_port={server}"),
    "nameless-parameters": transport("RTP/AVP;unicast;=;=x;client_port={client};server_port={server}"),
    "rtcp-port-of-zero": transport("RTP/AVP;unicast;client_port={client};server_port={one}-0"),
    "ports-and-more": transport("RTP/AVP;unicast;client_port={client};server_port={server}-7"),
    "another-client-port": transport("RTP/AVP;unicast;client_port=5;server_port={server}"),
    "another-destination": transport("RTP/AVP;unicast;destination=192.168.1.1;client_port={client};server_port={server}"),
    "null-ends": transport("RTP/AVP;unicast;source=(null);destination=(null);client_port={client};server_port={server}"),
    "source-of-itself": transport("RTP/AVP;unicast;source=127.0.0.1;client_port={client};server_port={server}"),
    "feedback-profile": transport("RTP/AVPF;unicast;client_port={client};server_port={server}"),
    "unicast-below": transport("RTP/AVP/UDP/unicast;unicast;client_port={client};server_port={server}"),
    "no-session": Case(setup="Transport: " + TRANSPORT + "\r\n", play=""),
    "session-of-parts": Case(setup="Transport: " + TRANSPORT + "\r\nSession: 7 ; timeout = \"60\" ;\r\nsession: 7\r\n"),
    # Any.
    "no-colon": headers("no colon here\r\nSession: 7\r\n: nothing\r\n", left_out="header_line"),
    "blank-before-colon": headers("Server : x\r\nSession: 7\r\n"),
    "folded": headers("Session: 7\r\nServer: a\r\n b\r\n\tc\r\n"),
    "no-cseq": Case(head="RTSP/1.0 {status} OK\r\n"),
    "cseq-twice": Case(head="RTSP/1.0 {status} OK\r\ncSEQ: {cseq}\r\nCSeq: {cseq}\r\n"),
    "cseq-of-one": Case(head="RTSP/1.0 {status} OK\r\nCSeq: 1\r\n"),
    "cseq-of-zero": Case(head="RTSP/1.0 {status} OK\r\nCSeq: 0\r\n"),
    "nul-in-headers": Case(head="RTSP/1.0 {status} OK\r\nServer: a\0b\r\nCSeq: {cseq}\0\r\n", left_out="header_line"),
    "tabs-in-status": Case(head="RTSP/1.0\t{status}\tOK\r\nCSeq: {cseq}\r\n"),
    "control-in-reason": Case(head="RTSP/1.0 {status} O\1K\r\nCSeq: {cseq}\r\n"),
    "glued-status": Case(head="RTSP/1 {status}OK\r\nCSeq: {cseq}\r\n", players=("ffmpeg",)),
    "length-with-plus": Case(length="+{0}"),
    "length-with-words": Case(length="{0} bytes"),
    "no-reason": Case(head="RTSP/1.0 {status}\r\nCSeq: {cseq}\r\n"),
    "bare-line-feeds": Case(head="RTSP/1.0 {status} OK\nCSeq: {cseq}\n"),
    "options-fail": Case(options=551, players=("rtspsrc",)),  # ffmpeg gives up
    "no-options": Case(options=405, players=("rtspsrc",)),
    "interleaved-between": Case(before=b"$\1\0\4rtcp"),
    "nul-between": Case(before=b"\0"),
}

# What nobody may guess at: by name (the answer to DESCRIBE, what the log says of it). Ten at most: as many lines a second has the log.
REFUSED = {
    "two-lengths": (Case(describe=TYPE + "Content-Length: 5\r\n"), "bad_content_length: line 6, two of Content-Length that differ"),
    "length-without-colon": (Case(describe="Content-Length 10\r\n"), "bad_content_length: line 3, a Content-Length that not all readers"),
    "two-sessions": (Case(describe=TYPE + "Session: 1\r\nSession: 2\r\n"), "bad_header: line 7, two of Session that differ"),
    "cr-within": (Case(describe="A: b\rSession: 2\r\n"), "bad_header: line 3, a CR or NUL within it"),
    "overlong": (Case(describe="A: " + "b" * 9000 + "\r\n"), "line_too_long: line 3, over 8192 bytes"),
    "endless": (Case(describe="A: b\r\n" * 200), "too_many_headers: line 130, over 128 headers"),
    "no-description": (Case("<html>\r\n", describe="Content-Type: text/html\r\n"), "it has neither v= nor m="),
    "nothing-left": (Case(SESSION + AUDIO.replace("RTP/AVP", "RTP/SAVP")), "line 6: a medium of 'RTP/SAVP' cannot be protected"),
    "overlong-line": (Case(SESSION + AUDIO + "a=" + "b" * 9000 + "\r\n"), "line 9: a line has at most 8000 bytes"),
}


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        self.over = threading.Event()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as self.media:
            self.media.bind((self.server.server_address[0], 0))
            self.client_port, self.name, self.player = 0, None, None
            with contextlib.suppress(ConnectionError):  # players do not wait for the last answer
                while lines := self.asked():
                    self.answer(lines[0].split(), {name.lower(): value.strip() for name, _, value in
                                                   (one.partition(":") for one in lines[1:])})
            self.over.set()
            if self.player:
                self.player.join()

    def asked(self):
        lines = []
        while line := self.rfile.readline().decode().strip():
            lines.append(line)
        return lines

    def answer(self, request, asked):
        method, uri = request[:2]
        self.name = name = self.name or uri.split("/")[3].split("?")[0]  # players make what they like of the base
        case = CASES.get(name) or REFUSED[name][0]
        base = f"rtsp://{self.server.server_address[0]}:{self.server.server_address[1]}/{name}"
        status, more, body = 200, "", b""
        if method == "OPTIONS":
            status, more = case.options, "Public: OPTIONS, DESCRIBE, SETUP, PLAY, TEARDOWN\r\n"
        elif method == "DESCRIBE":
            body = case.sdp.replace("{base}", base).encode()
            more = case.describe + f"Content-Length: {case.length.format(len(body))}\r\n"
        elif method == "SETUP":
            self.client_port = int(asked["transport"].partition("client_port=")[2].partition("-")[0])
            port = self.media.getsockname()[1]
            more = case.setup.format(client=f"{self.client_port}-{self.client_port + 1}", server=f"{port}-{port + 1}", one=port)
        elif method == "PLAY":
            more = case.play.format(base=base)
            self.player = threading.Thread(target=self.play, daemon=True)
            self.player.start()
        head = case.head.format(status=status, cseq=asked["cseq"])
        self.wfile.write(case.before + (head + more + "\r\n").encode() + body)

    def play(self):
        for number in range(5000):
            if self.over.wait(0.02):
                break
            packet = struct.pack("!BBHII", 0x80, 8, number, 160 * number, 0x51ce) + SOUND
            self.media.sendto(packet, (self.client_address[0], self.client_port))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 64


if __name__ == "__main__":
    with Server((sys.argv[1], int(sys.argv[2])), Connection) as server:
        print("ready", flush=True)
        server.serve_forever()
