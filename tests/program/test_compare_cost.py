"""scripts/compare-cost and scripts/make-rules, as far as they need no Suricata."""

import importlib.machinery
import importlib.util
import pathlib
import socket
import struct
import subprocess

from frames import CLIENT, SERVER, checksum, ipv4, packet4, write_pcap
from gateway import SLUICE

SCRIPTS = pathlib.Path(__file__).resolve().parents[2] / "scripts"


def load(name):
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), str(SCRIPTS / name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def test_made_up_rules_are_the_same_each_time_and_load(tmp_path):
    files = [tmp_path / "one.rules", tmp_path / "two.rules"]
    for file in files:
        subprocess.run([SCRIPTS / "make-rules", "--output", file, "--count", "1500"], check=True, timeout=60)
    assert files[0].read_bytes() == files[1].read_bytes()
    said = subprocess.run([SLUICE, "rules", files[0]], stdout=subprocess.PIPE, text=True, timeout=60, check=False).stdout
    loaded = sum(int(line.split()[1]) for line in said.splitlines() if line.startswith("  alert "))
    assert 1470 <= loaded <= 1500, said


def test_repeated_frames_are_of_other_flows_and_whole():
    of = load("compare-cost")
    payload = b"odd"
    pseudo = socket.inet_aton(CLIENT) + socket.inet_aton(SERVER) + struct.pack("!HH", 17, 8 + len(payload))
    udp = struct.pack("!HHHH", 4000, 9, 8 + len(payload), 0)
    udp = udp[:6] + struct.pack("!H", checksum(pseudo + udp + payload + b"\0"))
    frame = packet4(17, udp + payload)
    assert of.with_other_addresses(frame, 0) == frame
    for turn in (1, 77, 255):
        other = of.with_other_addresses(frame, turn)
        assert other[26:34] != frame[26:34] and len(other) == len(frame)
        assert checksum(other[14:34]) == 0
        pseudo = other[26:34] + struct.pack("!HH", 17, 8 + len(payload))
        assert checksum(pseudo + other[34:] + b"\0") == 0
    without = ipv4(1, "198.18.0.2")  # no UDP checksum: there is none afterwards
    assert of.with_other_addresses(without, 5)[40:42] == bytes(2)


def test_traffic_is_as_much_as_is_asked_for(tmp_path):
    of = load("compare-cost")
    capture = tmp_path / "some.pcap"
    write_pcap(capture, [ipv4(number, "198.18.0.2", size=958) for number in range(100)])
    assert 1_000_000 <= of.write_traffic([capture], 1, tmp_path / "much.pcap") <= 1_100_000


def test_what_cannot_be_measured_is_said(tmp_path):
    (tmp_path / "rules").write_text("alert udp any any -> any any (sid:1;)\n", encoding="ascii")
    command = [SCRIPTS / "compare-cost", "--rules", f"one={tmp_path}/rules", "--traffic", f"some={tmp_path}/none.pcap", "--sluice", SLUICE]
    for suricata, why in (("/none/suricata", "/none/suricata"), ("true", "none.pcap: no such file or folder")):
        done = subprocess.run([*command, "--suricata", suricata], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60,
                              check=False)
        assert done.returncode == 2 and why in done.stderr, done.stderr
