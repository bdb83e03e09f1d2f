"""Inspection of captures, whose alerts are printed: `sluice run` as a user has it; the rules are examples/local.rules."""

import json
import os
import re
import signal
import struct
import subprocess
import time

import pytest
from frames import Tcp4, ping4, udp4, write_pcap, write_pcapng
from gateway import ROOT, SLUICE
from hosts import wait_until

GET = b" HTTP/1.1\r\nHost: www.example\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n"
REFUSED = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
SHELL = b"HTTP/1.1 200 OK\r\nContent-Length: 24\r\n\r\n"
QUERY = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0\3www\x08Evil-C2C\x07example\0\0\1\0\1"


def capture_of_attacks():
    """Something for each rule of examples/local.rules, and how many alerts each is to make."""
    connections = [
        Tcp4(client_port=1).says(b"GET /" + GET).answers(OK),
        Tcp4(client_port=2, port=8081).says(b"GET /%2e%2e/etc/pas", b"swd" + GET),
        Tcp4(client_port=3).says(b"GET /?id=1%20UNION%20all%20SELECT%20name" + GET),
        Tcp4(client_port=4).says(b"GET /" + GET).answers(SHELL + b"uid=0(ro", b"ot) gid=0(root)\n"),
        Tcp4(port=23, client_port=6),
        Tcp4(client_port=7, client="192.0.2.10").says(b"GET /etc/passwd" + GET).answers(OK),
    ]
    guesses = Tcp4(client_port=5)
    for number in range(6):
        guesses.says(b"GET /login?password=%d" % number + GET).answers(REFUSED)
    frames = [frame for connection in [*connections, guesses] for frame in connection.frames]
    frames += [udp4(QUERY, 53), udp4(b"\0\1x\0octet\0", 69), ping4(1000), ping4(1000), ping4(100)]
    return frames, {1000002: 1, 1000003: 1, 1000004: 1, 1000006: 1, 1000007: 1, 1000008: 1, 1000009: 1, 1000010: 1}


def capture_config(folder, frames, write=write_pcap, **replaced):
    """examples/ids-capture.toml on these frames, with other values of [inspect]."""
    write(folder / "in.pcap", frames)
    text = (ROOT / "examples" / "ids-capture.toml").read_text(encoding="utf-8")
    text = text.replace("examples/attacks.pcap", str(folder / "in.pcap"))
    for old, new in replaced.items():
        assert f'\n{old} = "-"' in text
        text = text.replace(f'\n{old} = "-"', f"\n{new}")
    path = folder / "ids.toml"
    path.write_text(text, encoding="utf-8")
    return path


def run_on_capture(folder, frames, write=write_pcap, **replaced):
    path = capture_config(folder, frames, write, **replaced)
    done = subprocess.run([SLUICE, "run", path], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


FAST_LINE = re.compile(r"\d\d/\d\d/\d{4}-\S+ .*\[\*\*\] \[1:(\d+):1\] .* \{\w+\} \S+ -> \S+")


def test_a_capture_is_looked_at_and_it_ends(tmp_path):
    frames, expected = capture_of_attacks()
    done = run_on_capture(tmp_path, frames)
    matches = [FAST_LINE.fullmatch(line) for line in done.stdout.splitlines()]
    assert all(matches), f"standard output is for alerts alone:\n{done.stdout}"
    sids = [int(match[1]) for match in matches]
    assert {sid: sids.count(sid) for sid in sids} == expected, done.stdout
    assert re.search(rf"received +{len(frames)} frames", done.stderr), done.stderr
    assert re.search(r"inspect_alerts +8 ", done.stderr), done.stderr
    assert "tx_errors" not in done.stderr, "answers of reject have nowhere to go, which is no error"


def test_json_of_a_capture_can_be_piped(tmp_path):
    frames, expected = capture_of_attacks()
    done = run_on_capture(tmp_path, frames, fast='eve = "-"')
    events = [json.loads(line) for line in done.stdout.splitlines()]
    alerts = [event for event in events if event["event_type"] == "alert"]
    sids = [event["alert"]["signature_id"] for event in alerts]
    assert {sid: sids.count(sid) for sid in sids} == expected
    # As Suricata says it of a capture: nothing is dropped that would have gone on, and no interface is known.
    assert {event["alert"]["action"] for event in alerts} == {"allowed"}
    assert not any("in_iface" in event or event["event_type"] == "drop" for event in events)
    http = next(event for event in alerts if event["alert"]["signature_id"] == 1000002)
    assert http["app_proto"] == "http" and http["tx_id"] == 0
    assert http["http"] == {"hostname": "www.example", "http_method": "GET", "protocol": "HTTP/1.1", "url": "/%2e%2e/etc/passwd", "length": 0}
    assert re.search(rf"received +{len(frames)} frames", done.stderr), done.stderr


def test_the_example_runs_as_printed(tmp_path):
    """Its capture is there, is what scripts/make-data makes, and has something for each rule that reports."""
    subprocess.run([ROOT / "scripts" / "make-data", "attacks", "--output", tmp_path / "made.pcap"], check=True)
    assert (tmp_path / "made.pcap").read_bytes() == (ROOT / "examples" / "attacks.pcap").read_bytes()
    done = subprocess.run([SLUICE, "run", "examples/ids-capture.toml"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert re.findall(r"\[1:(\d+):1\]", done.stdout) == [str(1000000 + number) for number in (2, 3, 4, 6, 7, 8, 9, 10)], done.stdout


@pytest.mark.parametrize("where", ["file", "output", "pipe"])
def test_a_capture_whose_alerts_are_not_all_written_has_failed(tmp_path, where):
    frames, _ = capture_of_attacks()
    write_pcap(tmp_path / "in.pcap", frames)
    text = (ROOT / "examples" / "ids-capture.toml").read_text(encoding="utf-8")
    text = text.replace("examples/attacks.pcap", str(tmp_path / "in.pcap"))
    if where == "file":
        text = text.replace('\nfast = "-"', '\nfast = "/dev/full"')
    (tmp_path / "ids.toml").write_text(text, encoding="utf-8")
    with open("/dev/full", "wb") as full:
        reader, writer = os.pipe()
        os.close(reader)
        out = {"file": subprocess.DEVNULL, "output": full, "pipe": writer}[where]
        done = subprocess.run([SLUICE, "run", tmp_path / "ids.toml"], cwd=ROOT, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
        os.close(writer)
    name = "/dev/full" if where == "file" else "standard output"
    assert done.returncode == 1, done.stderr
    assert done.stderr.endswith(f"{tmp_path}/ids.toml: 8 lines for {name} are lost: it could not be written\n"), done.stderr


LEFT = "ended before the captures were read to their end: what is said is of a part of them"


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_capture_that_is_not_read_to_its_end_is_said_and_has_a_status(tmp_path, number, status):
    path = capture_config(tmp_path, [udp4(QUERY, 53)] * 100_000)
    with subprocess.Popen([SLUICE, "run", path], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert b" [**] " in process.stdout.readline()
        process.send_signal(number)
        time.sleep(3)  # the alerts wait for who reads them, and the frames for the alerts; it looks for a second whether they end
        out, errors = process.communicate(timeout=30)
    assert process.returncode == status, errors.decode()
    assert errors.decode().endswith(f"{path}: {LEFT}\n"), errors.decode()
    assert len(out.splitlines()) < 99_999


def test_a_signal_behind_the_end_of_a_capture_finds_it_read(tmp_path):
    fast = tmp_path / "fast.log"
    path = capture_config(tmp_path, [udp4(QUERY, 53)], fast=f'fast = "{fast}"')
    with subprocess.Popen([SLUICE, "run", path], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert wait_until(lambda: fast.exists() and fast.read_text(encoding="utf-8"), 20, 0.002)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=30)
    assert process.returncode == 0 and LEFT not in errors, errors


def found(done):
    """Alerts by sid."""
    sids = [int(match[1]) for match in map(FAST_LINE.fullmatch, done.stdout.splitlines()) if match]
    return {sid: sids.count(sid) for sid in sids}


def family(packet):
    return {4: 2, 6: 10}[packet[0] >> 4]


def ether_type(packet):
    return {4: b"\x08\x00", 6: b"\x86\xdd"}[packet[0] >> 4]


WIRELESS = bytes.fromhex("080200000200000000010200000000030200000000021000")
SNAP = bytes.fromhex("aaaa03000000")
LINKS = {  # what stands before an IP packet
    "raw": (101, lambda packet: b""),
    "loopback-big": (0, lambda packet: struct.pack(">I", family(packet))),
    "loopback-little": (0, lambda packet: struct.pack("<I", family(packet))),
    "cooked": (113, lambda packet: bytes.fromhex("0000000100060200000000020000") + ether_type(packet)),
    "cooked-2": (276, lambda packet: ether_type(packet) + bytes(8) + b"\0\6\2\0\0\0\0\2\0\0"),
    "ppp": (9, lambda packet: b"\xff\x03\x00" + {4: b"\x21", 6: b"\x57"}[packet[0] >> 4]),
    "hdlc": (104, lambda packet: b"\x0f\x00" + ether_type(packet)),
    "radiotap": (127, lambda packet: bytes.fromhex("0000080000000000") + WIRELESS + SNAP + ether_type(packet)),
    "nflog": (239, lambda packet: bytes([family(packet), 0, 0, 0]) + struct.pack("<HH", 4 + len(packet), 9)),
}


@pytest.mark.parametrize("link", LINKS)
def test_a_capture_of_another_link_type_is_read(tmp_path, link):
    frames, expected = capture_of_attacks()
    number, header = LINKS[link]
    packets = [header(frame[14:]) + frame[14:] for frame in frames]
    done = run_on_capture(tmp_path, packets, write=lambda path, packets: write_pcap(path, packets, number))
    assert found(done) == expected and "left out" not in done.stderr, done.stderr
    assert re.search(rf"received +{len(frames)} frames", done.stderr), done.stderr


@pytest.mark.parametrize("form", [
    {"snapshot": 64}, {"order": ">"}, {"magic": 0xA1B23C4D}, {"magic": 0xA1B2CD34, "order": ">", "snapshot": 64}], ids=str)
def test_a_capture_is_read_whole_whatever_its_header_is(tmp_path, form):
    frames, expected = capture_of_attacks()
    done = run_on_capture(tmp_path, frames, write=lambda path, frames: write_pcap(path, frames, **form))
    assert found(done) == expected and "cut" not in done.stderr, done.stderr


def test_interfaces_of_any_kind_are_read_and_what_is_left_out_is_said(tmp_path):
    frames, expected = capture_of_attacks()

    def mixed(path, frames):
        """Ethernet and 802.15.4 in turn, with a snapshot length, then one frame as raw IP with another."""
        write_pcapng(path, [part for frame in frames for part in (frame, b"\0")], links=(1, 195), snapshots=(96,))
        write_pcapng(tmp_path / "more", [frame[14:] for frame in frames[:1]], links=(101,), snapshots=(128,))
        path.write_bytes(path.read_bytes() + (tmp_path / "more").read_bytes())

    assert found(run_on_capture(tmp_path, frames, write=write_pcapng)) == expected
    done = run_on_capture(tmp_path, frames, write=mixed)
    assert set(found(done)) == set(expected), done.stderr
    all_packets = 2 * len(frames) + 1
    assert (f"{len(frames)} of {all_packets} packets are left out: {len(frames)} of link type 195 (IEEE 802.15.4), which is not read"
            in done.stderr), done.stderr
    checked = subprocess.run([SLUICE, "check", tmp_path / "ids.toml"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0 and "left out" in checked.stderr, checked.stderr


def test_without_lines_on_it_standard_output_has_the_summary(tmp_path):
    frames, _ = capture_of_attacks()
    done = run_on_capture(tmp_path, frames, fast=f'fast = "{tmp_path}/fast.log"')
    assert re.search(rf"received +{len(frames)} frames", done.stdout), done.stdout
    assert "received" not in done.stderr, done.stderr


def test_what_conflicts_in_a_capture_is_counted_and_nothing_is_dropped_for_it(tmp_path):
    done = run_on_capture(tmp_path, Tcp4().says_in_one_place(b"GET /decoy", b"GET /other").frames)
    assert re.search(r"inspect_stream_conflicts +1 ", done.stderr), done.stderr
    assert "inspect_conflict" not in done.stderr, done.stderr
