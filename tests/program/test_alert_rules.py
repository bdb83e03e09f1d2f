"""The alert rules for Prometheus, by promtool and by what the pages say of them."""

import re
import shutil
import subprocess

import pytest
from gateway import ROOT

PROMETHEUS = ROOT / "packaging" / "prometheus"


@pytest.mark.skipif(not shutil.which("promtool"), reason="needs promtool (prometheus)")
@pytest.mark.parametrize("words", [("check", "rules", "sluice.rules.yml"), ("test", "rules", "sluice.rules.test.yml")])
def test_alert_rules_hold(words):
    done = subprocess.run(["promtool", *words], cwd=PROMETHEUS, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert done.returncode == 0, done.stdout


def test_every_alert_has_a_case():
    alerts = re.findall(r"- alert: (\w+)", (PROMETHEUS / "sluice.rules.yml").read_text(encoding="utf-8"))
    cases = re.findall(r"alertname: (\w+)", (PROMETHEUS / "sluice.rules.test.yml").read_text(encoding="utf-8"))
    pages = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    assert len(alerts) >= 12
    for alert in alerts:
        assert alert in cases and f"`{alert}`" in pages, alert
