"""The Debian package in a fresh system of the same release: it installs with what it depends on, routes as installed, and keeps
/etc/sluice over upgrades.

BUILD/sluice_*.deb is made by `make deb`. The system is debootstrap's, in a folder; the hosts around it are network namespaces.
"""

import os
import pathlib
import re
import subprocess

import pytest
from hosts import Lab, wait_until, why_not

BUILD = pathlib.Path(os.environ.get("BUILD", pathlib.Path(__file__).resolve().parents[2] / "build")).absolute()
SUITE = os.environ.get("SUITE") or re.search(r"VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(encoding="utf-8"))[1]

pytestmark = pytest.mark.skipif(bool(why_not()), reason=str(why_not()))


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    assert done.returncode == 0, f"{command}: exit status {done.returncode}\n{done.stdout[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def package():
    found = list(BUILD.glob("sluice_*.deb"))
    assert len(found) == 1, f"{BUILD}: {found}: run make deb"
    return found[0]


class System:
    """A fresh system in a folder."""

    def __init__(self, root):
        self.root = root
        self.mounts = []

    def __enter__(self):
        run("debootstrap", "--variant=minbase", SUITE, self.root)
        (self.root / "usr/sbin/policy-rc.d").write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
        (self.root / "usr/sbin/policy-rc.d").chmod(0o755)
        for source, target, options in (("proc", "proc", ["-t", "proc"]), ("/dev", "dev", ["--rbind"])):
            run("mount", *options, source, self.root / target)
            self.mounts.append(self.root / target)
        run("mount", "--make-rslave", self.root / "dev")
        return self

    def __exit__(self, *_):
        for mount in reversed(self.mounts):
            subprocess.run(["umount", "-l", mount], check=False)

    def run(self, *command):
        environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
        return run("chroot", self.root, *command, env=environment)

    def install(self, package):
        (self.root / "tmp" / package.name).write_bytes(package.read_bytes())
        return self.run("apt-get", "install", "-y", "--no-install-recommends", "--reinstall", f"/tmp/{package.name}")


@pytest.fixture(scope="module")
def system(package, tmp_path_factory):
    with System(tmp_path_factory.mktemp("system")) as system:
        system.run("apt-get", "update")
        system.install(package)
        yield system


def test_lintian_has_no_errors(package):
    done = subprocess.run(["lintian", "--fail-on", "error", package], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_it_is_installed_whole(system):
    assert re.match(r"sluice \d", system.run("sluice", "--version"))
    assert "sluice" in system.run("getent", "group", "sluice")
    for path in ("/etc/sluice/sluice.toml", "/usr/share/man/man1/sluice.1.gz", "/usr/share/bash-completion/completions/sluice", "/etc/logrotate.d/sluice",
                 "/usr/share/doc/sluice/examples/router.toml"):
        assert (system.root / path.lstrip("/")).stat().st_size > 0
    system.run("sluice", "check", "/etc/sluice/sluice.toml")
    assert "is not a dynamic" not in system.run("ldd", "/usr/bin/sluice") and "not found" not in system.run("ldd", "/usr/bin/sluice")


def test_its_unit_is_there_and_not_enabled(system):
    unit = next(path for path in system.run("dpkg", "-L", "sluice").split() if path.endswith("sluice.service"))
    assert "ExecStart=/usr/bin/sluice run /etc/sluice/sluice.toml" in (system.root / unit.lstrip("/")).read_text(encoding="utf-8")
    assert not list((system.root / "etc/systemd/system").rglob("sluice.service"))


def test_the_installed_program_routes(system):
    """The configuration as it is installed, but for the memory of a small machine; default offloads on every cable."""
    with Lab() as lab:
        client, router, server = (lab.host(name) for name in ("client", "router", "server"))
        for host, interface, network in ((client, "eth1", 1), (server, "eth2", 2)):
            host.ip(f"link add eth0 type veth peer name {interface} netns {router.name}")
            host.ip("link set eth0 up")
            router.ip(f"link set {interface} up")
            host.ip(f"addr add 10.{network}.0.2/24 dev eth0")
            host.ip(f"route add default via 10.{network}.0.1")
        router.sysctl(net__ipv4__ip_forward=1)
        log = BUILD / "deb-router.log"
        started = f"mount -t sysfs sysfs {system.root}/sys && exec chroot {system.root} /usr/bin/sluice run /etc/sluice/sluice.toml"
        with open(log, "wb") as output:  # `ip netns exec` gives it mounts of its own
            process = router.spawn(["sh", "-c", started], stdout=output, stderr=output)
        assert wait_until(lambda: process.poll() is not None or "sl-wan" in router.ip("link show"), 60), log.read_text(encoding="utf-8")
        assert process.poll() is None, log.read_text(encoding="utf-8")
        for twin, network in (("sl-lan", 1), ("sl-wan", 2)):
            router.ip(f"addr add 10.{network}.0.1/24 dev {twin}")
        assert wait_until(lambda: ", 0% packet loss" in client.run("ping -n -c 1 -W 1 10.2.0.2", check=False), 10), log.read_text(encoding="utf-8")
        assert ", 0% packet loss" in client.run("ping -n -c 3 -i 0.2 -W 2 10.2.0.2"), log.read_text(encoding="utf-8")


def test_an_upgrade_keeps_what_the_administrator_wrote(system, package):
    path = system.root / "etc/sluice/sluice.toml"
    ours = path.read_text(encoding="utf-8") + "# ours\n"
    path.write_text(ours, encoding="utf-8")
    system.install(package)
    assert path.read_text(encoding="utf-8") == ours
    system.run("apt-get", "remove", "-y", "sluice")
    assert path.read_text(encoding="utf-8") == ours and not (system.root / "usr/bin/sluice").exists()
    system.run("apt-get", "purge", "-y", "sluice")
    assert not path.exists()
