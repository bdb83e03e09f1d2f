"""`sluice check` of an inspector: mistakes with their places, and what lanes do not have together."""

import subprocess

import pytest
from gateway import NULL_PORTS, ROOT, SLUICE, config

LOCAL_RULES = ROOT / "examples" / "local.rules"
MISTAKES = {
    "no file": ('rules = ["{folder}/none.rules"]', "[inspect] rules: {folder}/none.rules: No such file or directory"),
    "a folder": ('rules = ["{folder}"]', "[inspect] rules: {folder}: is a folder: name a regular file"),
    "a broken variable": ('rules = ["{rules}"]\nvariables = ["HOME_NET=[10.0.0.0/8"]',
                          '[inspect] variables = [ "HOME_NET=[10.0.0.0/8" ]: $HOME_NET: \'[10.0.0.0/8\' has no closing ]'),
    "a pattern of nothing": ('rules = ["{folder}/*.rules"]', "[inspect] rules: {folder}/*.rules: no file matches"),
    "a rule that does not load": ('rules = ["{folder}/bad.list"]\nstrict = true',
                                  "[inspect] strict: 1 rule of 2 does not load: {folder}/bad.list:2: 'contents' is no option"),
    "no folder for alerts": ('rules = ["{rules}"]\neve = "{folder}/none/eve.json"', "there is no folder {folder}/none: make it"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_check_says_what_is_wrong_and_where(tmp_path, mistake):
    section, why = (text.replace("{folder}", str(tmp_path)).replace("{rules}", str(LOCAL_RULES)) for text in MISTAKES[mistake])
    (tmp_path / "bad.list").write_text("alert ip any any -> any any (sid:1;)\nalert ip any any -> any any (contents:\"x\"; sid:2;)\n",
                                        encoding="utf-8")
    path = tmp_path / "sluice.toml"
    path.write_text(config(NULL_PORTS, inspect=section.split("\n"), last="bridge"),
                    encoding="utf-8")
    lines = path.read_text(encoding="utf-8").splitlines()
    at = 1 + lines.index(section.split("\n")[-1])
    done = subprocess.run([SLUICE, "check", path], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1 and done.stderr.startswith(f"{path}:{at}: [inspect] ") and why in done.stderr, done.stderr


SPREADING = {
    "one lane": ((), 0, 0),
    "lanes that share a queue": (("lanes = 2",), 1, 0),
    "queues": (("queues = 2",), 1, 2),
}


@pytest.mark.parametrize("spreading", SPREADING)
def test_check_says_what_lanes_do_not_have_together(tmp_path, spreading):
    """Counts of rules, and conversations that devices part."""
    port, counts, parted = SPREADING[spreading]
    rules = tmp_path / "rate.rules"
    rules.write_text('drop tcp any any -> any any (content:"x"; detection_filter:track by_src, count 5, seconds 60; sid:1;)\n',
                     encoding="utf-8")
    path = tmp_path / "sluice.toml"
    path.write_text(config([("lan", "lan0", ""), ("wan", "wan0", "")], port=port, inspect=[f'rules = ["{rules}"]'], last="bridge"),
                    encoding="utf-8")
    done = subprocess.run([SLUICE, "check", path], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("inspect: each of 2 lanes counts by itself: 1 rule with detection_filter") == counts, done.stderr
    assert done.stderr.count("spreads frames over its 2 queues by a hash of its own") == parted, done.stderr
    assert sum("inspect: " in line for line in done.stderr.splitlines()) == counts + parted, done.stderr
    queues = [number for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1) if line.startswith("queues")]
    places = [f"{path}:{number}: inspect: the device of port" for number in queues]
    assert sum(line.startswith(tuple(places)) for line in done.stderr.splitlines()) == parted, done.stderr
