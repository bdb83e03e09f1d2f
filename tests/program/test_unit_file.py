"""packaging/sluice.service as systemd reads it."""

import configparser
import re
import shutil
import subprocess

import pytest
from gateway import ROOT

UNIT = ROOT / "packaging" / "sluice.service"


@pytest.mark.skipif(not shutil.which("systemd-analyze") or "--offline" not in subprocess.run(["systemd-analyze", "--help"], capture_output=True, text=True, check=False).stdout,
                    reason="needs systemd-analyze of systemd 250 or later")
def test_systemd_finds_it_restricted():
    done = subprocess.run(["systemd-analyze", "security", "--no-pager", "--offline=true", "--threshold=30", UNIT], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_start_that_may_help_is_tried_again_without_end():
    """systemd by itself gives up after five starts in ten seconds."""
    sections = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",), comment_prefixes=("#", ";"))
    sections.optionxform = str
    sections.read_string(UNIT.read_text(encoding="utf-8"))
    assert sections["Unit"]["StartLimitIntervalSec"] == "0"
    service = sections["Service"]
    assert (service["Restart"], service["RestartSec"], service["RestartPreventExitStatus"]) == ("on-failure", "1", "2")


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_knows_all_of_it(tmp_path):
    """A key in another section than its own would be passed over with a warning."""
    text = re.sub(r"(?m)^(Exec\w+)=.*$", r"\1=/bin/true", UNIT.read_text(encoding="utf-8"))
    (tmp_path / "sluice.service").write_text(re.sub(r"(?m)^Documentation=.*\n", "", text), encoding="utf-8")
    done = subprocess.run(["systemd-analyze", "verify", tmp_path / "sluice.service"], capture_output=True, text=True, check=False)
    assert "sluice.service:" not in done.stderr, done.stderr


def test_it_notifies_systemd_when_it_is_ready_and_alive():
    unit = UNIT.read_text(encoding="utf-8")
    for line in ("Type=notify", "NotifyAccess=main", "WatchdogSec=30", "RuntimeDirectory=sluice", "LogsDirectory=sluice"):
        assert f"\n{line}\n" in unit, line
