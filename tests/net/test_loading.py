"""A table of 600,000 routes, and a large capture: it shows how far it is, nothing else waits for it, and Ctrl-C ends it."""

import os
import pty
import random
import re
import resource
import signal
import struct
import subprocess
import time

import pytest
from frames import ipv4, write_pcap
from gateway import SLUICE, config
from hosts import cpu_seconds, wait_until
from topology import PORTS, SERVER4

ROUTES = 600_000
pytestmark = pytest.mark.alone
ROOM = ("kernel = true", "max_ipv4 = 620_000", "max_ipv6 = 10_000")


def write_table(path, next_hop, count=ROUTES):
    """/24s from 20.0.0.0 up."""
    with open(path, "w", encoding="ascii") as file:
        for i in range(count):
            file.write(f"{20 + (i >> 16)}.{i >> 8 & 255}.{i & 255}.0/24 {next_hop}\n")
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("table") / "routes.txt", "10.2.0.2")


def untouched(fresh):
    """Whether nothing of a start is left."""
    return ("sl-lan" not in fresh.router.ip("link show") and
            fresh.router.run("sysctl -n net.ipv6.conf.lan0.disable_ipv6").strip() == "0" and
            "PROMISC" not in fresh.router.ip("link show lan0"))


AFTER = ["config", "memory", "ports", "routes"]


def reached(fresh, process, log, after):
    """Whether a start is in this step."""
    if after == "config":
        return os.readlink(f"/proc/{process.pid}/exe").endswith("/sluice")
    return "memory:" in log.read_text() if after == "memory" else "sl-lan" in fresh.router.ip("link show")


def interrupt_start(fresh, path, after):
    """Seconds that it takes to end when interrupted, or of them those that it had a core; None: it ran before the signal
    came."""
    log = fresh.folder / "log"
    with open(log, "wb") as output:
        process = fresh.router.spawn([SLUICE, "run", path], stdout=output, stderr=output)
    assert wait_until(lambda: reached(fresh, process, log, after), 20, 0.01), log.read_text()
    time.sleep({"config": 0.05, "routes": 0.5}.get(after, 0))
    before, began = cpu_seconds(process.pid), time.monotonic()
    process.send_signal(signal.SIGINT)
    _, status, usage = os.wait4(process.pid, 0)
    took = min(time.monotonic() - began, usage.ru_utime + usage.ru_stime - before)
    process.returncode = os.waitstatus_to_exitcode(status)
    if "running" in log.read_text():
        return None
    assert process.returncode == 130, log.read_text()
    assert untouched(fresh)
    return took


@pytest.mark.parametrize("after", AFTER)
def test_ctrl_c_while_starting_leaves_nothing(fresh, table, after):
    """Within a second, whatever it is at. What other work of this machine takes is not Sluice's doing: the smaller of elapsed
    and CPU seconds counts. On a machine with a load of 8, where cores and caches are shared, that was 0.59 s once."""
    path = fresh.folder / "sluice.toml"
    path.write_text(config(PORTS, route=(*ROOM, f'table = "{table}"'), size="1G"), encoding="utf-8")
    tries = [interrupt_start(fresh, path, after)]
    while tries[-1] is None and len(tries) < 5:
        tries.append(interrupt_start(fresh, path, after))
    assert tries[-1] is not None, "it always ran before the signal came"
    assert tries[-1] < 1, f"{tries[-1]:.2f} s"


def with_table(fresh, table):
    """A gateway without a table whose configuration then names one."""
    fresh.configuration = {"route": ROOM, "size": "1G"}
    gateway = fresh.start()
    with gateway.config_path.open("a", encoding="utf-8") as file:
        file.write(f'table = "{table}"\n')
    return gateway


def test_stats_are_answered_while_a_reload_loads(fresh, table):
    gateway = with_table(fresh, table)
    reload = fresh.router.spawn([SLUICE, "ctl", "reload"], stdout=subprocess.PIPE, text=True)
    slowest, shown, second = 0.0, [], ""
    while reload.poll() is None:
        for path in ("/api/v1/stats", "/metrics"):
            began = time.monotonic()
            answer = gateway.get(path)
            slowest = max(slowest, time.monotonic() - began)
            shown += [int(done) for done in re.findall(r"^sluice_loading_done (\d+)", answer, re.M)]
        if shown[-1] > 0 and not second:
            second = gateway.control("reload", check=False)
    assert reload.stdout.read() == f"{ROUTES} routes from the configuration are in force\n"
    assert "another reload is at work" in second
    assert slowest < 0.2, f"{slowest:.3f} s"
    assert len(set(shown)) > 2 and max(shown) <= ROUTES, shown
    assert gateway.stats()["loading"]["what"] == ""
    assert gateway.stats()["routes"]["ipv4"] >= ROUTES
    assert fresh.reaches(SERVER4)


def test_a_terminal_shows_how_far_a_reload_is(fresh, table):
    gateway = with_table(fresh, table)
    terminal, end = pty.openpty()
    reload = fresh.router.spawn([SLUICE, "ctl", "reload"], stdout=subprocess.PIPE, stderr=end)
    os.close(end)
    assert wait_until(lambda: gateway.stats()["loading"]["what"] == "routes", 10, 0.01)
    gateway.process.send_signal(signal.SIGSTOP)
    time.sleep(1.5)
    gateway.process.send_signal(signal.SIGCONT)
    assert reload.wait(30) == 0
    shown = os.read(terminal, 65536).decode()
    assert re.search(r"routes: \[#*\.*\] \d+% \(\d+ of 600000\)", shown), shown
    os.close(terminal)


def write_scattered(path, next_hop):
    """/24s all over the address space, hardly one beside another."""
    numbers = random.Random(4)
    blocks = (block + (block >> 16 >= 127) * (1 << 16)  # nothing is forwarded to 127.0.0.0/8
              for block in sorted(numbers.sample(range(1 << 16, 222 << 16), ROUTES)))
    with open(path, "w", encoding="ascii") as file:
        for block in blocks:
            file.write(f"{block >> 16}.{block >> 8 & 255}.{block & 255}.0/24 {next_hop}\n")
    return path


@pytest.mark.parametrize("at", ["reading routes", "routes"])
def test_ctrl_c_ends_a_gateway_whose_whole_table_changes(fresh, at):
    """Neither the new table is read to its end, nor the old one taken apart route by route."""
    table = write_scattered(fresh.folder / "routes.txt", "10.2.0.2")
    fresh.configuration = {"route": (*ROOM, f'table = "{table}"'), "size": "1G"}
    gateway = fresh.start()
    write_scattered(table, "10.2.0.3")
    gateway.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: gateway.stats()["loading"]["what"] == at, 20, 0.01)
    before, began = cpu_seconds(gateway.process.pid), time.monotonic()
    gateway.process.send_signal(signal.SIGINT)
    _, status, usage = os.wait4(gateway.process.pid, 0)
    took = min(time.monotonic() - began, usage.ru_utime + usage.ru_stime - before)
    gateway.process.returncode = os.waitstatus_to_exitcode(status)
    log = gateway.interrupt()
    assert took < 1, f"{took:.2f} s"
    assert "routes from the configuration are in force" not in log


@pytest.mark.parametrize("how", ["api", "sighup"])
def test_ctrl_c_ends_a_gateway_that_reloads(fresh, table, how):
    gateway = with_table(fresh, table)
    if how == "api":
        fresh.router.spawn([SLUICE, "ctl", "reload"])
    else:
        gateway.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: gateway.stats()["loading"]["done"] > 50_000, 10, 0.01)
    began = time.monotonic()
    log = gateway.interrupt()
    took = time.monotonic() - began
    assert took < 3, f"{took:.2f} s"  # a machine that builds something else meanwhile took 1.2 s
    assert "routes from the configuration are in force" not in log


def test_a_sighup_while_a_reload_runs_is_answered_by_one_more(fresh, table):
    gateway = with_table(fresh, table)
    gateway.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: gateway.stats()["loading"]["done"] > 50_000, 10, 0.01)
    with gateway.config_path.open("a", encoding="utf-8") as file:
        file.write('\n[[route.connected]]\nprefix = "198.51.100.0/24"\nport = "wan"\n')
    for _ in range(3):
        gateway.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: gateway.log().count("are in force") == 2, 30, 0.1), gateway.log()
    assert "198.51.100.0/24" in gateway.control("routes", "--limit", "1000000")
    time.sleep(1)
    assert gateway.log().count("are in force") == 2, gateway.log()


def refused_table(fresh, path):
    """Makes a pipe or a file of 800 MB if there is to be one; the table, and what a reload says to it."""
    if path == "pipe":
        path = fresh.folder / "pipe"
        os.mkfifo(path)
        return path, "is a pipe"
    if path == "memory":
        path = fresh.folder / "large.txt"
        path.touch()
        os.truncate(path, 800 << 20)
        return path, "there is not enough memory for it"
    return path, {"/tmp": "is a folder", "/dev/zero": "is a device", "/proc/self/mem": "cannot be read"}[path]


@pytest.mark.parametrize("path", ["/tmp", "pipe", "/dev/zero", "/proc/self/mem", "memory"])
def test_no_table_ends_or_hangs_a_gateway(fresh, path):
    gateway = fresh.start()
    path, words = refused_table(fresh, path)
    with gateway.config_path.open("a", encoding="utf-8") as file:
        file.write(f'table = "{path}"\n')
    size = int(re.search(r"VmSize:\s+(\d+) kB", open(f"/proc/{gateway.process.pid}/status", encoding="ascii").read())[1])
    resource.prlimit(gateway.process.pid, resource.RLIMIT_AS, ((size << 10) + (400 << 20),) * 2)
    for count in (1, 2):
        gateway.process.send_signal(signal.SIGHUP)
        assert wait_until(lambda seen=count: gateway.log().count("error reload: ") == seen, 5), gateway.log()
    assert len(re.findall(rf"error reload: .*{words}", gateway.log())) == 2, gateway.log()
    assert fresh.reaches(SERVER4)
    before, began = cpu_seconds(gateway.process.pid), time.monotonic()
    gateway.process.send_signal(signal.SIGINT)
    _, status, usage = os.wait4(gateway.process.pid, 0)
    gateway.process.returncode = os.waitstatus_to_exitcode(status)
    assert gateway.process.returncode == 0, gateway.log()
    # What other work of this machine takes is not Sluice's doing.
    assert min(time.monotonic() - began, usage.ru_utime + usage.ru_stime - before) < 2


@pytest.mark.parametrize("path", ["/tmp", "pipe", "/dev/zero", "/proc/self/mem"])
def test_check_and_run_refuse_what_is_no_table(fresh, path):
    path, words = refused_table(fresh, path)
    file = fresh.folder / "bad.toml"
    file.write_text(config(PORTS, route=(*ROOM, f'table = "{path}"')), encoding="utf-8")
    for command in ("check", "run"):
        ran = subprocess.run([SLUICE, command, file], capture_output=True, text=True, timeout=10, check=False)
        assert ran.returncode == 2
        assert f"{path}: {words}" in ran.stderr and "bad.toml:" in ran.stderr and ran.stderr.count("\n") == 1, ran.stderr


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
