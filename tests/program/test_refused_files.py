"""Captures and tables of routes that cannot be read: `check` and `run` say it with the place, and a start that reads ends at Ctrl-C."""

import os
import re
import signal
import struct
import subprocess
import time

import pytest
from captures import refused_table
from frames import ipv4, write_pcap
from gateway import NULL_PORTS, SLUICE, config
from hosts import cpu_seconds, wait_until


def with_capture(folder):
    """A configuration whose ports are the capture in.pcap and nothing, and that capture, with two packets."""
    capture, path = folder / "in.pcap", folder / "sluice.toml"
    write_pcap(capture, [ipv4(number, "198.51.100.7", ttl=64) for number in range(2)])
    path.write_text(config([("in", f"net_pcap0,rx_pcap={capture}", ""), ("out", "net_null1", "")], size="256M",
                           route=("kernel = false", "max_ipv4 = 1000", "max_ipv6 = 1000")), encoding="utf-8")
    return path, capture


def test_check_and_run_refuse_a_capture_that_is_cut(tmp_path):
    path, capture = with_capture(tmp_path)
    assert subprocess.run([SLUICE, "check", path], capture_output=True, timeout=10, check=False).returncode == 0
    os.truncate(capture, capture.stat().st_size - 1)
    for command in ("check", "run"):
        ran = subprocess.run([SLUICE, command, path], capture_output=True, text=True, timeout=10, check=False)
        assert ran.returncode == 2
        refusal = [line for line in ran.stderr.splitlines() if "the file ends inside a packet" in line]
        assert len(refusal) == 1 and "behind 1 whole packet:" in refusal[0], ran.stderr
        assert re.match(rf"{path}:\d+: \[\[port\]\] device = ", refusal[0]), ran.stderr


@pytest.mark.parametrize(("content", "why"), [
    pytest.param(None, "No such file or directory", id="missing"),
    pytest.param(b"", "is empty", id="empty"),
    pytest.param(b"#!/bin/sh\n", "is no capture: neither pcap nor pcapng", id="text"),
    pytest.param(struct.pack("<IHHiIII4I", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 195, 1, 1, 1, 1) + b"x",
                 "has frames of link type 195 (IEEE 802.15.4) alone, of which no network is read", id="no-network"),
    pytest.param(b"\x1f\x8b\x08", "is compressed (gzip): 'gzip -dc FILE > OTHER' unpacks it", id="compressed"),
])
def test_check_and_run_refuse_what_is_no_capture_of_a_network(tmp_path, content, why):
    path, capture = with_capture(tmp_path)
    capture.unlink() if content is None else capture.write_bytes(content)
    for command in ("check", "run"):
        ran = subprocess.run([SLUICE, command, path], capture_output=True, text=True, timeout=10, check=False)
        assert ran.returncode == 2
        refusal = [line for line in ran.stderr.splitlines() if why in line]
        assert len(refusal) == 1 and re.match(rf"{path}:\d+: \[\[port\]\] device = .*{capture}: ", refusal[0]), ran.stderr


def test_ctrl_c_ends_a_start_that_reads_a_large_capture(tmp_path):
    """One with holes: 100 GB of packets of no bytes."""
    path, capture = with_capture(tmp_path)
    os.truncate(capture, 100 << 30)
    log = tmp_path / "log"
    with open(log, "wb") as output:
        process = subprocess.Popen([SLUICE, "run", path], stdout=output, stderr=output)
    shown = rf"reading {capture}: \d% \(\d+ of {100 << 30}\)"
    try:
        assert wait_until(lambda: re.search(shown, log.read_text()), 10, 0.05), log.read_text()
        before, began = cpu_seconds(process.pid), time.monotonic()
        process.send_signal(signal.SIGINT)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        took = min(time.monotonic() - began, usage.ru_utime + usage.ru_stime - before)
    finally:
        if process.returncode is None:
            process.kill()
            process.wait()
    assert process.returncode == 130 and "interrupted while starting" in log.read_text(), log.read_text()
    assert took < 1, f"{took:.2f} s"


@pytest.mark.parametrize("path", ["/tmp", "pipe", "/dev/zero", "/proc/self/mem"])
def test_check_and_run_refuse_what_is_no_table(tmp_path, path):
    path, words = refused_table(tmp_path, path)
    file = tmp_path / "bad.toml"
    file.write_text(config(NULL_PORTS, route=("kernel = false", "max_ipv4 = 1000", "max_ipv6 = 1000", f'table = "{path}"')), encoding="utf-8")
    for command in ("check", "run"):
        ran = subprocess.run([SLUICE, command, file], capture_output=True, text=True, timeout=10, check=False)
        assert ran.returncode == 2
        assert f"{path}: {words}" in ran.stderr and "bad.toml:" in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr
