"""Gateways with no more capabilities than packaging/sluice.service leaves them."""

import re
import shutil
import subprocess

import pytest

from gateway import ROOT, SLUICE, Gateway
from topology import Topology

UNIT = ROOT / "packaging" / "sluice.service"
pytestmark = pytest.mark.skipif(not shutil.which("setpriv"), reason="needs setpriv")


def bounding_set():
    line, = re.findall(r"(?m)^CapabilityBoundingSet=(.+)$", UNIT.read_text(encoding="utf-8"))
    return [name.removeprefix("CAP_").lower() for name in line.split()]


def under(capabilities):
    """What runs a command with these at most."""
    return ["setpriv", f"--bounding-set={','.join(['-all', *('+' + name for name in capabilities)])}", "--no-new-privs"]


def example(name):
    """It as it is, but for its device, its memory and tables, and the interfaces."""
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    for pattern, replacement in ((r'(?m)^device = "auto".*$', 'device = "cpu"'), (r'(?m)^size = ".+"', 'size = "512M"'),
                                 (r'hugepages = "auto"', 'hugepages = "off"'), (r'twin( *)= "(sl-)?', r'twin\1= "sl-'),
                                 (r"max_ipv4 = [\d_]+", "max_ipv4 = 200_000"), (r"max_ipv6 = [\d_]+", "max_ipv6 = 50_000"), ("iface=eth1", "iface=wan0"), ("iface=eth2", "iface=lan0")):
        text = re.sub(pattern, replacement, text)
    return text


@pytest.mark.parametrize("name", ["router.toml", "rtsp.toml", "rtsp-explicit.toml", "srtp.toml"])
def test_an_example_starts(tmp_path, name):
    text = example(name)
    with Topology(tmp_path) as network:
        gateway = network.gateway = Gateway(network.router, tmp_path, text, under(bounding_set())).start()
        status = open(f"/proc/{gateway.process.pid}/status", encoding="utf-8").read()
        assert len(bounding_set()) == int(re.search(r"CapBnd:\s+(\w+)", status)[1], 16).bit_count()
        listening = network.router.run("ss -Hltn")
        ports = {int(port) for port in re.findall(r"\d+", re.search(r"(?m)^ports = \[(.+)\]|$", text)[1] or "")}
        assert all(f":{port} " in listening for port in ports), listening


def test_a_port_that_needs_more_says_which_drop_in_has_it(tmp_path):
    """And `check`, which the unit runs first, as well as the start; with the drop-in it starts."""
    text = re.sub(r"net_af_packet(\d)", r"net_af_xdp\1", example("router.toml"))
    added = re.findall(r"(?m)^CapabilityBoundingSet=CAP_(.+)$", (ROOT / "packaging" / "systemd" / "af-xdp.conf").read_text(encoding="utf-8"))
    with Topology(tmp_path) as network:
        (tmp_path / "xdp.toml").write_text(text, encoding="utf-8")
        for command, status in (("check", 0), ("run", 2)):
            done = subprocess.run(["ip", "netns", "exec", network.router.name, *under(bounding_set()), SLUICE, command, tmp_path / "xdp.toml"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
            assert done.returncode == status and "CAP_SYS_ADMIN" in done.stdout and "systemd/af-xdp.conf" in done.stdout, done.stdout
        network.gateway = Gateway(network.router, tmp_path, text, under([*bounding_set(), *(name.lower() for name in added)])).start()


def test_what_is_missing_has_its_own_name(tmp_path):
    text = example("rtsp.toml")
    with Topology(tmp_path) as network:
        for capability in ("net_bind_service", "net_admin"):
            (tmp_path / "sluice.toml").write_text(text, encoding="utf-8")
            command = under(name for name in bounding_set() if name != capability)
            done = subprocess.run(["ip", "netns", "exec", network.router.name, *command, SLUICE, "run", tmp_path / "sluice.toml"],
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=60, check=False)
            assert done.returncode == 2 and f"CAP_{capability.upper()}" in done.stdout, done.stdout
            other = {"net_bind_service": "CAP_NET_ADMIN", "net_admin": "CAP_NET_BIND_SERVICE"}[capability]
            assert other not in done.stdout, done.stdout
