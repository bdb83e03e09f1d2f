"""`sluice calibrate` and the examples of media: what it writes is what the same configuration takes, checked and run."""

import re
import subprocess

import pytest

from gateway import ROOT, SLUICE, Gateway
from hosts import Lab


@pytest.mark.parametrize("example", ["srtp", "rtsp", "rtsp-explicit"])
def test_an_example_of_media_runs_with_its_profile(tmp_path, example):
    text = (ROOT / "examples" / f"{example}.toml").read_text(encoding="utf-8")
    # This machine has no GPU to spare and little memory, and may be busy.
    for key, value in (("device", '"cpu"'), ("hugepages", '"off"'), ("size", '"512M"'), ("deadline", '"50ms"')):
        text, count = re.subn(rf'(?m)^{key} = "[^"\n]*"', f"{key} = {value}", text, count=1)  # [[port]] has devices, too
        assert count == 1
    file, profile = tmp_path / "gateway.toml", tmp_path / "profile.toml"
    file.write_text(text, encoding="utf-8")
    said = subprocess.run([SLUICE, "calibrate", file, "--seconds", "0.1", "--hold", "0", "--out", profile], check=True, text=True, timeout=300,
                          stdout=subprocess.PIPE).stdout
    # The table of streams has one for each lane of two; those of RTSP come with clients.
    if example != "srtp":
        assert "traffic is of 256 streams made up with random keys, of AES_CM_128_HMAC_SHA1_80" in said
    media = {"srtp": '"protect IPv4", "unprotect IPv4"'}.get(example, '"protect IPv4"')
    assert re.search(rf'(?m)^media = \[{media}', profile.read_text(encoding="utf-8"))
    assert 'suite = "AES_CM_128_HMAC_SHA1_80"' in profile.read_text(encoding="utf-8")
    assert re.search(r"(?m)^packet = 1504$", profile.read_text(encoding="utf-8")), "what may pass with its tag"
    text += f'\n[profile]\nfile = "{profile}"\n'
    file.write_text(text, encoding="utf-8")
    subprocess.run([SLUICE, "check", file], check=True, timeout=60)
    with Lab() as lab:
        router, outside = lab.host("router"), lab.host("outside")
        for interface in ("eth1", "eth2"):
            lab.join(outside, interface, router, interface)
        gateway = Gateway(router, tmp_path, text)
        gateway.start()
        metrics = gateway.metrics()
        assert metrics["streams_capacity_bits"] > 0 and metrics["streams_refused"] == 0
        gateway.interrupt()
