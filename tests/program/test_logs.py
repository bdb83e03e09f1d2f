"""Log files that are rotated, deleted, or on a full disk: every file that Sluice appends to, not one of them only."""

import json
import os
import pathlib
import re
import signal
import subprocess

import pytest
from gateway import NULL_PORTS, ROOT, SLUICE, Gateway, config
from hosts import Here, wait_until

FILES = ("sluice.log", "eve.json", "fast.log")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory):
    """One that writes three files, and an EVE event each second. Its own output is in `output`."""
    folder = tmp_path_factory.mktemp("logs")
    rules = folder / "test.rules"
    rules.write_text('alert udp any any -> any any (msg:"x"; sid:1;)\n', encoding="utf-8")
    logs = folder / "logs"
    logs.mkdir()
    text = config(NULL_PORTS, listen=Here.api, last="bridge", size="256M", memory=("frames = 4096",),
                  inspect=(f'rules = ["{rules}"]', "flows = 1024", "streams = 64", "http = 16", 'stream_memory = "4M"', 'http_memory = "4M"',
                           'fragment_memory = "1M"', f'eve = "{logs}/eve.json"', f'fast = "{logs}/fast.log"', "stats_interval = 1"))
    here = Here()
    try:
        gateway = Gateway(here, folder, text + f'\n[log]\nfile = "{logs}/sluice.log"\n').start()
        gateway.logs = logs
        yield gateway
    finally:
        here.close()


def rename(gateway, ending):
    for name in FILES:
        (gateway.logs / name).rename(gateway.logs / f"{name}{ending}")


def all_are_new(gateway, ending, word):
    """All three are there again; `word` is in the new log alone, and EVE's lines go on in the new file."""
    assert wait_until(lambda: all((gateway.logs / name).exists() for name in FILES), 3), list(gateway.logs.iterdir())
    assert wait_until(lambda: (gateway.logs / "eve.json").stat().st_size > 0, 4)
    assert wait_until(lambda: word in (gateway.logs / "sluice.log").read_text(encoding="utf-8"), 3)
    before = (gateway.logs / f"sluice.log{ending}").stat().st_size
    gateway.control("reopen")  # has a line in the log
    assert (gateway.logs / f"sluice.log{ending}").stat().st_size == before
    for line in (gateway.logs / "eve.json").read_text(encoding="utf-8").splitlines():
        json.loads(line)


@pytest.mark.parametrize("how, word", [("sighup", "reload: "), ("reload", "api: POST /api/v1/reopen"), ("reopen", "api: POST /api/v1/reopen")])
def test_every_file_is_begun_anew(gateway, how, word):
    rename(gateway, f".{how}")
    if how == "sighup":
        gateway.process.send_signal(signal.SIGHUP)
    else:
        gateway.control(how)
        gateway.control("reopen")
    all_are_new(gateway, f".{how}", word)


@pytest.mark.parametrize("how", ["signal", "ctl"])
def test_a_refused_reload_begins_them_anew_all_the_same(gateway, how):
    good = gateway.config_path.read_text(encoding="utf-8")
    gateway.config_path.write_text(good + "\n[nonsense]\n", encoding="utf-8")
    rename(gateway, f".refused-{how}")
    if how == "signal":
        gateway.process.send_signal(signal.SIGHUP)
    else:
        assert "unknown section" in gateway.control("reload", check=False)
    all_are_new(gateway, f".refused-{how}", "error reload: ")
    gateway.config_path.write_text(good, encoding="utf-8")


def test_logrotate_as_it_is_packaged(gateway, tmp_path):
    """The file that is installed, but for its folder and the program's path."""
    text = (ROOT / "packaging" / "sluice.logrotate").read_text(encoding="utf-8")
    assert "/var/log/sluice/*.log" in text and "sluice ctl reopen" in text
    text = text.replace("/var/log/sluice-", f"{gateway.logs}/sluice-")
    text = text.replace("/var/log/sluice/", f"{gateway.logs}/").replace("sluice ctl reopen", f"{SLUICE} ctl reopen --api {gateway.api}")
    (tmp_path / "sluice").write_text(text, encoding="utf-8")
    os.chmod(tmp_path / "sluice", 0o644)
    os.chmod(gateway.logs, 0o755)
    for old in gateway.logs.glob("*.*.*"):
        old.unlink()
    gateway.process.send_signal(signal.SIGHUP)
    assert wait_until(lambda: (gateway.logs / "eve.json").stat().st_size > 0, 4)
    said = gateway.host.run(["logrotate", "--force", "--verbose", "--state", tmp_path / "state", tmp_path / "sluice"])
    assert (gateway.logs / "sluice.log.1").exists() and (gateway.logs / "eve.json.1").exists(), said
    assert wait_until(lambda: (gateway.logs / "eve.json").exists(), 4), said
    assert wait_until(lambda: (gateway.logs / "sluice.log").exists(), 4), said
    assert (gateway.logs / "eve.json").stat().st_mode & 0o777 == 0o640


def test_what_the_examples_write_is_rotated():
    patterns = (ROOT / "packaging" / "sluice.logrotate").read_text(encoding="utf-8").split("{")[0].split("\n")[-1].split()
    files = [path for example in (ROOT / "examples").glob("*.toml")
             for path in re.findall(r'^(?:eve|fast|file) = "(/.*(?:json|log))"', example.read_text(encoding="utf-8"), re.M)]
    assert len(files) >= 4
    for file in files:
        assert any(pathlib.PurePath(file).match(pattern) for pattern in patterns), file


def test_deleted_files_are_made_again(gateway):
    for name in ("sluice.log", "eve.json"):
        (gateway.logs / name).unlink()
    gateway.control("reopen")
    assert wait_until(lambda: (gateway.logs / "eve.json").exists(), 4)
    assert (gateway.logs / "sluice.log").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: a mount")
def test_a_full_disk_is_survived(gateway):
    """The folder becomes a full one, by a mount that only the gateway's namespace of mounts has; then it has space again."""
    pid = str(gateway.process.pid)
    inside = ["nsenter", "--target", pid, "--mount"]
    subprocess.run([*inside, "mount", "-t", "tmpfs", "-o", "size=4k", "none", gateway.logs], check=True)
    subprocess.run([*inside, "sh", "-c", f"head -c 4096 /dev/zero > {gateway.logs}/filler"], check=True)
    gateway.control("reopen")
    for _ in range(3):
        gateway.control("reopen")  # lines that find no space
    subprocess.run([*inside, "rm", gateway.logs / "filler"], check=True)
    gateway.control("reopen")

    def shown():
        return subprocess.run([*inside, "cat", gateway.logs / "sluice.log"], check=True, stdout=subprocess.PIPE, text=True).stdout

    assert wait_until(lambda: "before this one could not be written" in shown(), 3), shown()
    subprocess.run([*inside, "umount", "-l", gateway.logs], check=True)
    gateway.control("reopen")
