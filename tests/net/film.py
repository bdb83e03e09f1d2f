"""A film through [srtp.rtsp] between two hosts, with captures of both links: for tests and for the demo.

GStreamer's server plays it in clear. What the client's link carries is opened by libsrtp with the keys of the description that the
client saw, and must be, packet by packet, what the server's link carried.
"""

import base64
import re
import signal
import struct
import subprocess
import time

from capture import RTP_FIXED, Capture
from hosts import wait_until
from rtsp_peers import FILM, PYTHON, SERVER
from srtp_peer import Peer
from topology import SERVER4, SERVER6, Topology

PORT = 8554
BY_CHANCE = 8  # octets that ciphertext may have in common with anything
VIDEO, AUDIO = 96, 8  # payload types, of H.264 and of A-law


def settings(*more):
    return "\n".join(["[srtp.rtsp]", f'servers = ["{SERVER4}/32", "{SERVER6}/128"]', f"ports = [{PORT}]", *more]) + "\n"


def offered_keys(text):
    """The master keys of a=crypto in the descriptions that were seen, in order."""
    return [base64.b64decode(key) for key in re.findall(rb"inline:([A-Za-z0-9+/=]+)", text)]


class Film(Topology):
    def __enter__(self):
        super().__enter__()
        self.film = None
        return self

    def serve(self, address=SERVER4, *auth):
        log = self.folder / "server.log"
        with open(log, "w", encoding="utf-8") as out:
            self.film = self.server.spawn([PYTHON, str(SERVER), address, str(PORT), *auth], stdout=out)
        assert wait_until(lambda: "ready" in log.read_text(), 30), log.read_text()


def film(folder, *more, sections="", **topology):
    """`more`: lines of [srtp.rtsp]; `sections`: what follows it."""
    return Film(folder, srtp=settings(*more) + sections, engine=('device = "cpu"',), **topology)


def ffmpeg(address, seconds, output=("-f", "null", "-")):
    return ["ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "udp", "-i", FILM.format(address), "-t", str(seconds),
            *output]


def ffmpeg_copies(address, seconds, picture, sound):
    """What comes goes into two files without being decoded."""
    return ["ffmpeg", "-nostdin", "-loglevel", "error", "-rtsp_transport", "udp", "-t", str(seconds), "-i", FILM.format(address),
            "-map", "0:v", "-c", "copy", "-f", "h264", str(picture), "-map", "0:a", "-c", "copy", "-f", "alaw", str(sound)]


def rtspsrc(address):
    return ["gst-launch-1.0", "-q", "-e", "rtspsrc", f"location={FILM.format(address)}", "protocols=udp", "name=s",
            "s.", "!", "application/x-rtp,media=video", "!", "rtph264depay", "!", "avdec_h264", "!", "fakesink",
            "s.", "!", "application/x-rtp,media=audio", "!", "rtppcmadepay", "!", "fakesink"]


def opened(outside, inside, server=SERVER4, sender=None, clients=1):
    """By SSRC: (packets of RTP that the server sent, those that libsrtp has opened on the client's link). All that are there have
    been sealed, and are what was sent; RTCP, too. `sender`: who sends to the client, where that is not the server."""
    clear, clear_rtcp = inside.media(server)
    sealed, sealed_rtcp = outside.media(sender or server)
    keys = offered_keys(outside.tcp_text())
    assert len(set(keys)) == len(keys) == 2 * clients, f"{len(keys)} keys, for video and audio"
    assert not offered_keys(inside.tcp_text()), "a key has reached the server"
    receivers = {}
    for (ssrc, sequence), packet in sealed.items():
        plain = clear[ssrc, sequence]
        assert packet[RTP_FIXED:] != plain[RTP_FIXED:], "in clear"
        if ssrc not in receivers:
            receivers[ssrc] = next(peer for peer in map(lambda key: Peer(key, inbound=True), keys) if peer.unprotect(packet) == plain)
        else:
            assert receivers[ssrc].unprotect(packet) == plain, f"SSRC {ssrc.hex()}"
    assert sealed_rtcp, "the server's reports"
    for ssrc, packet in dict.fromkeys(sealed_rtcp):
        report = receivers[ssrc].unprotect_rtcp(packet)
        assert report is not None and (ssrc, report) in clear_rtcp
    return {ssrc: tuple(sum(one == ssrc for one, _ in packets) for packets in (clear, sealed)) for ssrc in receivers}


def check_secret_and_whole(outside, inside, server=SERVER4, least=60):
    """What the client's link carried is what the server's did, protected, and all of it; nothing of it was seen in clear."""
    counts = opened(outside, inside, server)
    assert len(counts) == 2 and sum(sent for sent, _ in counts.values()) >= least, counts
    assert all(sent == got for sent, got in counts.values()), f"by SSRC, sent and received: {counts}"


def play_all(network, commands, seconds=8, check=True):
    """What the links carried while clients ran to their ends, or were ended as Ctrl-C would after `seconds` of all their media,
    and what each client said."""
    with Capture(network.client, "eth0") as outside, Capture(network.server, "eth0") as inside:
        clients = [network.client.spawn(command, stdout=subprocess.PIPE, text=True) for command in commands]
        endless = [client for command, client in zip(commands, clients) if command[0] == "gst-launch-1.0"]
        if endless:
            assert wait_until(lambda: network.metric("rtsp_media") == 2 * len(commands), 20), network.metrics()
            time.sleep(seconds)
            for client in endless:
                client.send_signal(signal.SIGINT)
        outputs = [client.communicate(timeout=60)[0] for client in clients]
        assert not check or all(client.returncode == 0 for client in clients), (outputs, network.gateway.log()[-4000:])
        assert wait_until(lambda: network.metric("rtsp_connections") == 0, 15), network.metrics()
        time.sleep(0.3)
    return outside, inside, outputs


def play(network, command, seconds=8, check=True):
    """play_all() with one client."""
    outside, inside, (output,) = play_all(network, [command], seconds, check)
    return outside, inside, output


def payloads(capture, server, kind):
    """What the server's RTP of that payload type carried, in order."""
    clear, _ = capture.media(server)
    return [packet[RTP_FIXED:] for packet in clear.values() if packet[1] & 0x7f == kind]


def in_clear(outside, inside, server=SERVER4):
    """(how many of the server's payloads any frame of the client's link has in clear, of how many). Of those that are too long
    to be there by chance."""
    sent = [payload for kind in (VIDEO, AUDIO) for payload in payloads(inside, server, kind) if len(payload) >= BY_CHANCE]
    return sum(outside.has(payload) for payload in sent), len(sent)


def nal_units(rtp):
    """H.264's units in payloads of RFC 6184, whole ones alone."""
    units, part = [], b""
    for payload in rtp:
        kind = payload[0] & 31
        if kind == 24:  # STAP-A
            at = 1
            while at < len(payload):
                length, = struct.unpack_from("!H", payload, at)
                units.append(payload[at + 2:at + 2 + length])
                at += 2 + length
        elif kind == 28:  # FU-A
            if payload[1] & 0x80:
                part = bytes([payload[0] & 0xe0 | payload[1] & 31])
            part += payload[2:]
            if payload[1] & 0x40:
                units.append(part)
        else:
            units.append(payload)
    return [unit.rstrip(b"\0") for unit in units]


def nal_units_of_file(octets):
    return [unit.rstrip(b"\0") for unit in octets.split(b"\0\0\1")[1:]]


def check_as_sent(inside, picture, sound, server=SERVER4):
    """The files that a client has written without decoding are what the server sent. How many pictures' units and octets of
    sound."""
    sent, got = nal_units(payloads(inside, server, VIDEO)), nal_units_of_file(picture)
    assert got, "no picture was written"
    foreign = [unit for unit in got if unit not in sent]
    assert not foreign, f"{len(foreign)} of {len(got)} units of H.264 are not as they were sent"
    assert sound and sound in b"".join(payloads(inside, server, AUDIO)), "the sound is not as it was sent"
    return len(got), len(sound)
