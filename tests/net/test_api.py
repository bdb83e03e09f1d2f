"""Who may do what over the API: reads by TCP for anyone on the machine, changes over a unix socket for root and a group."""

import json
import os
import pathlib
import signal
import stat
import time
import urllib.error
import urllib.request
from socket import create_connection

import pytest

from gateway import SLUICE, Gateway, config
from hosts import Lab, wait_until

NOBODY = 65534
PORTS = [("a", "net_null0,no-rx=1", ""), ("b", "net_null1,no-rx=1", "")]


def quick(listen="127.0.0.1:9230", api=()):
    """A gateway that is up at once; `api`: lines of [api]."""
    text = config(PORTS, last="echo", size="128M", memory=("frames = 4096",), listen=listen)
    return text.replace("[api]\n", "[api]\n" + "".join(f"{line}\n" for line in api))


def as_user(*words, groups=()):
    """`words` as nobody, who is in these groups."""
    member = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", member, *words]


@pytest.fixture
def lab():
    with Lab() as lab:
        yield lab


def started(host, folder, text):
    folder.mkdir(exist_ok=True)
    return Gateway(host, folder, text).start()


def socket_of(gateway):
    return pathlib.Path(json.loads(gateway.get("/api/v1/socket"))["socket"])


def post(gateway, path):
    """By TCP; the status and the answer."""
    def send():
        try:
            with urllib.request.urlopen(urllib.request.Request(f"http://{gateway.api}{path}", method="POST"), timeout=5) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.loads(refusal.read())["error"]

    return gateway.host.inside(send)


def test_an_ordinary_user_reads_and_does_not_stop_it(lab, tmp_path):
    host = lab.host("router")
    gateway = started(host, tmp_path, quick())
    assert "DEVICE" in host.run(as_user(SLUICE, "top", "--once", "--interval", "100ms"))
    assert "adds up" in host.run(as_user(SLUICE, "ctl", "stats")) or "add up" in host.run(as_user(SLUICE, "ctl", "stats"))
    socket = socket_of(gateway)
    for command in ("stop", "reload"):
        answer = host.run(as_user(SLUICE, "ctl", command), check=False)
        assert answer.startswith(f"sluice: no permission to open {socket}: changes are for root and the group"), answer
        status, why = post(gateway, f"/api/v1/{command}")
        assert status == 403 and str(socket) in why and "not made by TCP" in why, why
    assert gateway.process.poll() is None
    assert stat.S_IMODE(socket.stat().st_mode) == 0o660 and socket.stat().st_uid == 0
    assert "stopping" in gateway.control("stop")
    assert gateway.process.wait(10) == 0
    assert not socket.exists() and "api: POST /api/v1/stop by uid 0, process " in gateway.log()


def test_who_holds_all_connections_by_tcp_keeps_nobody_from_changes(lab, tmp_path):
    host = lab.host("router")
    gateway = started(host, tmp_path, quick())
    address, port = gateway.api.rsplit(":", 1)
    held = host.inside(lambda: [create_connection((address, int(port))) for _ in range(200)])
    began = time.monotonic()
    assert "stopping" in gateway.control("stop")
    assert time.monotonic() - began < 2.5
    for connection in held:
        connection.close()


def test_a_group_may_change_it(lab, tmp_path):
    host = lab.host("router")
    socket = tmp_path / "api.sock"
    os.chmod(tmp_path, 0o755)
    for folder in list(tmp_path.parents)[:-2]:
        os.chmod(folder, folder.stat().st_mode | 0o011)
    gateway = started(host, tmp_path, quick(api=(f'socket = "{socket}"', 'group = "4242"')))
    assert socket.stat().st_gid == 4242
    assert "no permission" in host.run(as_user(SLUICE, "ctl", "stop", groups=[4243]), check=False)
    assert "stopping" in host.run(as_user(SLUICE, "ctl", "stop", groups=[4242]))
    assert gateway.process.wait(10) == 0
    assert f"by uid {NOBODY}, process " in gateway.log()


def test_gateways_side_by_side_have_sockets_of_their_own(lab, tmp_path):
    """In two namespaces with one address, and two in one namespace, all with the default socket; ctl finds the right one."""
    left, right = lab.host("left"), lab.host("right")
    gateways = [started(left, tmp_path / "a", quick()), started(right, tmp_path / "b", quick()),
                started(right, tmp_path / "c", quick("127.0.0.1:9231"))]
    sockets = [socket_of(gateway) for gateway in gateways]
    assert len(set(sockets)) == 3 and all(socket.is_socket() for socket in sockets)
    right.run([SLUICE, "ctl", "stop", "--api", "127.0.0.1:9231"])
    assert gateways[2].process.wait(10) == 0
    left.run([SLUICE, "ctl", "stop", "--socket", sockets[1]])  # the file system is one
    assert gateways[1].process.wait(10) == 0
    assert gateways[0].process.poll() is None
    gateways[0].interrupt()


def test_a_socket_that_was_left_is_replaced_and_one_in_use_is_not(lab, tmp_path):
    host = lab.host("router")
    path = tmp_path / "api.sock"
    text = quick(api=(f'socket = "{path}"',))
    gateway = started(host, tmp_path / "a", text)
    gateway.kill()
    assert path.is_socket()
    gateway.start()
    second = tmp_path / "b.toml"
    second.write_text(text.replace(":9230", ":9231"), encoding="utf-8")
    refusal = host.run([SLUICE, "run", second], check=False)
    line = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith("socket = ")][0]
    assert refusal == (f'{second}:{line}: [api] socket = "{path}": it is in use by another gateway (process {gateway.process.pid}):'
                       f" give this one a path of its own\n"), refusal
    assert "stopping" in gateway.control("stop")
    assert gateway.process.wait(10) == 0 and not path.exists()


def test_the_socket_of_a_killed_gateway_elsewhere_is_removed_by_the_next_start(lab, tmp_path):
    killed, alive, next_one = (lab.host(name) for name in ("killed", "alive", "next"))
    dead = started(killed, tmp_path / "a", quick())
    stays = started(alive, tmp_path / "b", quick())
    left, kept = socket_of(dead), socket_of(stays)
    dead.kill()
    assert left.is_socket() and left != kept
    started(next_one, tmp_path / "c", quick())
    assert not left.exists() and not left.with_name(left.name + ".lock").exists()
    assert kept.is_socket() and "counters add up" in stays.control("stats")


def test_a_stopped_process_is_told_within_seconds(lab, tmp_path):
    host = lab.host("router")
    gateway = started(host, tmp_path, quick())
    socket = socket_of(gateway)
    gateway.process.send_signal(signal.SIGSTOP)
    for words in (["ctl", "stats"], ["ctl", "stop"], ["ctl", "reload", "--socket", socket], ["top", "--once"]):
        began = time.monotonic()
        answer = host.run([SLUICE, *words], check=False)
        assert "takes connections and does not answer within 3 s: is sluice stopped (SIGSTOP, a debugger)" in answer, answer
        assert time.monotonic() - began < 6
    gateway.process.send_signal(signal.SIGCONT)
    assert wait_until(gateway.healthy, 5)  # the stop that came meanwhile went no further than its question
    gateway.interrupt()
