"""Who may do what over the API: reads by TCP for anyone on the machine, changes over a unix socket for root and a group."""

import json
import os
import signal
import stat
import time
import urllib.error
import urllib.request
from socket import create_connection

import pytest
from gateway import SLUICE, socket_of, started, up_at_once
from hosts import wait_until

NOBODY = 65534

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root: whom a socket is for, and other users")


def as_user(*words, groups=()):
    """`words` as nobody, who is in these groups."""
    member = f"--groups={','.join(map(str, groups))}" if groups else "--clear-groups"
    return ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", member, *words]


def post(gateway, path):
    """By TCP; the status and the answer."""
    try:
        with urllib.request.urlopen(urllib.request.Request(f"http://{gateway.api}{path}", method="POST"), timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, json.loads(refusal.read())["error"]


def test_an_ordinary_user_reads_and_does_not_stop_it(here, tmp_path):
    gateway = started(here, tmp_path, up_at_once(here.api))
    assert "DEVICE" in here.run(as_user(SLUICE, "top", "--once", "--interval", "100ms", "--api", here.api))
    assert "add up" in here.run(as_user(SLUICE, "ctl", "stats", "--api", here.api))
    socket = socket_of(gateway)
    for command in ("stop", "reload"):
        answer = here.run(as_user(SLUICE, "ctl", command, "--api", here.api), check=False)
        assert answer.startswith(f"sluice: no permission to open {socket}: changes are for root and the group"), answer
        status, why = post(gateway, f"/api/v1/{command}")
        assert status == 403 and str(socket) in why and "not made by TCP" in why, why
    assert gateway.process.poll() is None
    assert stat.S_IMODE(socket.stat().st_mode) == 0o660 and socket.stat().st_uid == 0
    assert "stopping" in gateway.control("stop")
    assert gateway.process.wait(10) == 0
    assert not socket.exists() and "api: POST /api/v1/stop by uid 0, process " in gateway.log()


def test_who_holds_all_connections_by_tcp_keeps_nobody_from_changes(here, tmp_path):
    gateway = started(here, tmp_path, up_at_once(here.api))
    address, port = gateway.api.rsplit(":", 1)
    held = [create_connection((address, int(port))) for _ in range(200)]
    began = time.monotonic()
    assert "stopping" in gateway.control("stop")
    assert time.monotonic() - began < 2.5
    for connection in held:
        connection.close()


def test_a_group_may_change_it(here, tmp_path):
    socket = tmp_path / "api.sock"
    os.chmod(tmp_path, 0o755)
    for folder in list(tmp_path.parents)[:-2]:
        os.chmod(folder, folder.stat().st_mode | 0o011)
    gateway = started(here, tmp_path, up_at_once(here.api, (f'socket = "{socket}"', 'group = "4242"')))
    assert socket.stat().st_gid == 4242
    assert "no permission" in here.run(as_user(SLUICE, "ctl", "stop", "--api", here.api, groups=[4243]), check=False)
    assert "stopping" in here.run(as_user(SLUICE, "ctl", "stop", "--api", here.api, groups=[4242]))
    assert gateway.process.wait(10) == 0
    assert f"by uid {NOBODY}, process " in gateway.log()


def test_a_socket_that_was_left_is_replaced_and_one_in_use_is_not(here, tmp_path):
    path = tmp_path / "api.sock"
    text = up_at_once(here.api, (f'socket = "{path}"',))
    gateway = started(here, tmp_path / "a", text)
    gateway.kill()
    assert path.is_socket()
    gateway.start()
    second = tmp_path / "b.toml"
    second.write_text(text.replace(here.api, "127.0.0.1:0"), encoding="utf-8")
    refusal = here.run([SLUICE, "run", second], check=False)
    line = [number for number, line in enumerate(text.splitlines(), 1) if line.startswith("socket = ")][0]
    assert refusal == (f'{second}:{line}: [api] socket = "{path}": it is in use by another gateway (process {gateway.process.pid}):'
                       f" give this one a path of its own\n"), refusal
    assert "stopping" in gateway.control("stop")
    assert gateway.process.wait(10) == 0 and not path.exists()


def test_a_stopped_process_is_reported_within_seconds(here, tmp_path):
    gateway = started(here, tmp_path, up_at_once(here.api))
    socket = socket_of(gateway)
    gateway.process.send_signal(signal.SIGSTOP)
    for words in (["ctl", "stats"], ["ctl", "stop"], ["ctl", "reload", "--socket", socket], ["top", "--once"]):
        began = time.monotonic()
        answer = here.run([SLUICE, *words, "--api", here.api], check=False)
        assert "takes connections and does not answer within 3 s: is sluice stopped (SIGSTOP, a debugger)" in answer, answer
        assert time.monotonic() - began < 6
    gateway.process.send_signal(signal.SIGCONT)
    assert wait_until(gateway.healthy, 5)  # the stop that came meanwhile went no further than its question
    gateway.interrupt()
