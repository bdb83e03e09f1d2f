"""The Debian package in a fresh system of its release: it installs with what it depends on, the installed program and its unit
route between real hosts, and /etc/sluice is kept over upgrades.

BUILD/sluice_*.deb is made by `make deb`. With SUITE, another release's name, it is made in a fresh system of that release, from what is
committed here, and kept in BUILD/SUITE-COMMIT/. The system is debootstrap's, in a folder, and its systemd runs in a container on the network
of a host; the hosts around it are network namespaces.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import urllib.request

import pytest
from fresh_system import OURS, SUITE, Booted, System, remove, run
from hosts import Lab, stop, wait_until, why_not

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("BUILD", ROOT / "build")).absolute()
EXAMPLES = pathlib.Path("/usr/share/doc/sluice/examples")

pytestmark = pytest.mark.skipif(bool(why_not()), reason=str(why_not()))


def make_package(folder):
    """As on a machine of that release with nothing installed; and what its lintian says."""
    remove(folder)
    changed = run("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no")
    assert not changed, f"commit first, the package is made of what is committed:\n{changed}"
    with System(folder / "system", "ca-certificates,make") as system:
        (system.root / "sluice").mkdir()
        run("sh", "-ec", f"git -C '{ROOT}' archive HEAD | tar --extract --directory='{system.root}/sluice'")
        system.run("sh", "-ec", "apt-get update && cd /sluice && make deb && apt-get install -y --no-install-recommends lintian")
        (folder / "lintian.log").write_text(system.run("sh", "-c", "lintian --fail-on error /sluice/build/sluice_*.deb; echo exit status $?"),
                                            encoding="utf-8")
        made, = system.path("/sluice/build").glob("sluice_*.deb")
        shutil.copy(made, folder)


@pytest.fixture(scope="module")
def package():
    folder = BUILD
    if SUITE != OURS:
        folder = BUILD / f"{SUITE}-{run('git', '-C', ROOT, 'rev-parse', '--short', 'HEAD').strip()}"
        if not list(folder.glob("sluice_*.deb")):
            make_package(folder)
    found = list(folder.glob("sluice_*.deb"))
    assert len(found) == 1, f"{folder}: {found}: run make deb"
    return found[0]


@pytest.fixture(scope="module")
def system(package):
    with System(BUILD / "test-system") as system:  # pytest would clear a folder of its own, and all that is mounted there
        system.run("apt-get", "update")
        system.install(package)
        yield system


@pytest.fixture(scope="module")
def hosts(system, tmp_path_factory):
    """client, router, server, each with default offloads on its cable; the router is the fresh system, and the server has a page."""
    folder = tmp_path_factory.mktemp("web")
    (folder / "page").write_text("a page\n" * 100_000, encoding="ascii")
    with Lab() as lab:
        lab.client, lab.router, lab.server = (lab.host(name) for name in ("client", "router", "server"))
        for host, interface, network in ((lab.client, "eth1", 1), (lab.server, "eth2", 2)):
            host.ip(f"link add eth0 type veth peer name {interface} netns {lab.router.name}")
            host.ip("link set eth0 up")
            host.ip(f"addr add 10.{network}.0.2/24 dev eth0")
            host.ip(f"route add default via 10.{network}.0.1")
        lab.server.spawn(["python3", "-m", "http.server", "--directory", folder, "80"])
        with Booted(system, lab.router) as lab.booted:
            yield lab


def pings(hosts):
    return wait_until(lambda: ", 0% packet loss" in hosts.client.run("ping -n -c 1 -W 1 10.2.0.2", check=False), 60)


def carries_tcp(hosts):
    def fetch():
        with urllib.request.urlopen("http://10.2.0.2/page", timeout=20) as answer:
            return answer.read()

    return len(hosts.client.inside(fetch)) == 700_000


def ailments(hosts):
    """What /healthz finds."""
    def ask():
        with urllib.request.urlopen("http://127.0.0.1:9230/healthz", timeout=5) as answer:
            return json.load(answer)

    return hosts.router.inside(ask).get("ailments", [])


def readme():
    """The configuration of the README's first router, and what it says to type."""
    section = re.search(r"^## A first router\n(.*?)^## ", (ROOT / "README.md").read_text(encoding="utf-8"), re.M | re.S)[1]
    toml = re.search(r"^```toml\n(.*?)^```$", section, re.M | re.S)[1]
    return toml, [line[4:] for line in section.splitlines() if line.startswith("    ")]


def router(driver="net_af_packet", extra=""):
    """The sample configuration."""
    text = (ROOT / "packaging" / "sluice.toml").read_text(encoding="utf-8")
    return text.replace("net_af_packet", driver) + extra


def test_lintian_has_no_errors(package):
    log = package.parent / "lintian.log"
    if SUITE == OURS:
        log.write_text(run("sh", "-c", f"lintian --fail-on error '{package}'; echo exit status $?"), encoding="utf-8")
    assert log.read_text(encoding="utf-8").endswith("exit status 0\n"), log.read_text(encoding="utf-8")


def test_it_is_installed_whole(system):
    assert re.match(r"sluice \d", system.run("sluice", "--version"))
    assert "sluice" in system.run("getent", "group", "sluice")
    for path in ("/etc/sluice/sluice.toml", "/usr/share/man/man1/sluice.1.gz", "/usr/share/bash-completion/completions/sluice", "/etc/logrotate.d/sluice",
                 EXAMPLES / "router.toml", "/usr/share/sluice/systemd/af-xdp.conf"):
        assert system.path(str(path)).stat().st_size > 0
    system.run("sluice", "check", "/etc/sluice/sluice.toml")
    assert "is not a dynamic" not in system.run("ldd", "/usr/bin/sluice") and "not found" not in system.run("ldd", "/usr/bin/sluice")
    # Files of an administrator's: an upgrade asks, or keeps them.
    conffiles = system.text("/var/lib/dpkg/info/sluice.conffiles").split()
    assert conffiles == ["/etc/logrotate.d/sluice", "/etc/sluice/sluice.toml"]
    installed = system.run("dpkg", "-L", "sluice").split()
    assert [path for path in installed if path.startswith("/etc/") and system.path(path).is_file()] == conffiles


def test_its_unit_is_there_and_not_enabled(system):
    unit = next(path for path in system.run("dpkg", "-L", "sluice").split() if path.endswith("sluice.service"))
    assert "ExecStart=/usr/bin/sluice run /etc/sluice/sluice.toml" in system.text(unit)
    assert not list(system.path("/etc/systemd/system").rglob("sluice.service"))


def test_the_first_router_of_the_readme_carries_tcp(hosts):
    """Typed as printed, but for the program's place."""
    toml, commands = readme()
    hosts.booted.system.path("/root/router.toml").write_text(toml, encoding="utf-8")
    typed = [command.replace("build/sluice", "sluice") for command in commands]
    assert typed[-1] == "sluice run router.toml"
    hosts.booted.run("sh", "-ec", "\n".join(["cd /root", *typed[:-1]]))
    leader, = hosts.booted.leader()
    log = BUILD / "deb-router.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(["nsenter", "--target", leader, "--all", "sh", "-c", f"cd /root && exec {typed[-1]}"], stdout=output, stderr=output)
    try:
        assert pings(hosts), log.read_text(encoding="utf-8")
        assert carries_tcp(hosts), log.read_text(encoding="utf-8")
        hosts.booted.run("sluice", "ctl", "stop")
        assert process.wait(20) == 0, log.read_text(encoding="utf-8")
    finally:
        stop(process)


@pytest.mark.parametrize(("driver", "extra"), [
    pytest.param("net_af_packet", "", id="sample"),
    pytest.param("net_af_packet", '[log]\nfile = "/var/log/sluice/sluice.log"\n[inspect]\nrules = ["%s/local.rules"]\neve = "/var/log/sluice/eve.json"\n' % EXAMPLES, id="inspect"),
    pytest.param("net_af_xdp", "", id="af_xdp")])
def test_the_service_carries_tcp_under_its_restrictions(hosts, driver, extra):
    text = router(driver, extra).replace('deadline = "10ms"', 'deadline = "10ms"\nscheduling = "realtime"' + '\nchain = ["inspect", "route"]' * ("inspect" in extra))
    added = hosts.booted.system.path("/etc/systemd/system/sluice.service.d/af-xdp.conf")
    if driver == "net_af_xdp":
        with pytest.raises(AssertionError, match="share/sluice/systemd/af-xdp.conf"):
            hosts.booted.start(text)
        added.parent.mkdir(exist_ok=True)
        added.symlink_to("/usr/share/sluice/systemd/af-xdp.conf")
    process = hosts.booted.start(text)
    status = hosts.booted.run("cat", f"/proc/{process}/status")
    assert re.search(r"^NoNewPrivs:\s1$", status, re.M) and re.search(r"^Seccomp:\s2$", status, re.M), status
    assert pings(hosts) and carries_tcp(hosts), hosts.booted.journal()
    assert ailments(hosts) == [], hosts.booted.journal()
    assert "cannot write" not in hosts.booted.journal(), hosts.booted.journal()
    hosts.booted.run("systemctl", "stop", "sluice")
    added.unlink(missing_ok=True)


def test_members_of_the_group_may_change_it_and_others_may_only_read(hosts):
    hosts.booted.start(router())
    assert hosts.booted.run("sh", "-c", "stat --format='%U %G %a' /run/sluice/*.sock") == "root sluice 660\n"
    group = hosts.booted.run("getent", "group", "sluice").split(":")[2]
    nobody = ["setpriv", "--reuid=65534", "--regid=65534"]
    assert "in force" in hosts.booted.run(*nobody, f"--groups={group}", "sluice", "ctl", "reload")
    assert "permission" in hosts.booted.run(*nobody, "--clear-groups", "sluice", "ctl", "reload", check=False).lower()
    assert "lan" in hosts.booted.run(*nobody, "--clear-groups", "sluice", "ctl", "stats")


def test_logrotate_has_it_write_to_new_files(hosts):
    hosts.booted.start(router(extra='[log]\nfile = "/var/log/sluice/sluice.log"\n'))
    folder = hosts.booted.system.path("/var/log/sluice")
    before = (folder / "sluice.log").read_text(encoding="utf-8")
    hosts.booted.run("logrotate", "--force", "/etc/logrotate.d/sluice")
    assert (folder / "sluice.log.1").read_text(encoding="utf-8").startswith(before)
    hosts.booted.run("systemctl", "reload", "sluice")
    assert wait_until(lambda: "reload" in (folder / "sluice.log").read_text(encoding="utf-8"), 10)


def upgraded(package, folder):
    """The same package as if of a later version, with another sample."""
    run("dpkg-deb", "--raw-extract", package, folder / "package")
    control = folder / "package" / "DEBIAN" / "control"
    control.write_text(re.sub(r"(?m)^Version: ", "Version: 9:", control.read_text(encoding="utf-8")), encoding="utf-8")
    with open(folder / "package" / "etc" / "sluice" / "sluice.toml", "a", encoding="utf-8") as sample:
        sample.write("# of the later version\n")
    return pathlib.Path(shutil.copy(run("dpkg-deb", "--build", "--root-owner-group", folder / "package", folder).split("'")[-2], folder / "later.deb"))


def test_an_upgrade_keeps_what_the_administrator_wrote_and_what_runs(hosts, package, tmp_path):
    system = hosts.booted.system
    ours = router(extra="# ours\n")
    process = hosts.booted.start(ours)
    rotation = system.path("/etc/logrotate.d/sluice")
    rotation.write_text("# none\n", encoding="ascii")
    later = upgraded(package, tmp_path)
    system.path("/root/later.deb").write_bytes(later.read_bytes())
    said = hosts.booted.run("dpkg", "--force-confdef", "--force-confold", "--install", "/root/later.deb")
    assert "9:" in hosts.booted.run("dpkg-query", "--show", "sluice"), said
    assert system.text("/etc/sluice/sluice.toml") == ours and rotation.read_text(encoding="ascii") == "# none\n"
    assert "# of the later version" in system.text("/etc/sluice/sluice.toml.dpkg-dist"), said
    assert hosts.booted.run("systemctl", "show", "--property=MainPID", "--value", "sluice").strip() == process, hosts.booted.journal()
    assert pings(hosts) and carries_tcp(hosts)
    assert "in force" in hosts.booted.run("sluice", "ctl", "reload")
    hosts.booted.run("systemctl", "restart", "sluice")
    assert pings(hosts) and carries_tcp(hosts), hosts.booted.journal()


def test_removed_it_stops_and_leaves_settings_and_logs_and_purged_it_leaves_nothing(hosts):
    system = hosts.booted.system
    hosts.booted.run("dpkg", "--remove", "sluice")
    assert "inactive" in hosts.booted.run("systemctl", "is-active", "sluice", check=False)
    assert not system.path("/usr/bin/sluice").exists()
    assert "# ours" in system.text("/etc/sluice/sluice.toml") and list(system.path("/var/log/sluice").iterdir())
    hosts.booted.run("dpkg", "--purge", "sluice")
    left = [path for folder in ("/etc", "/var/log", "/var/lib/systemd", "/usr") for path in system.path(folder).rglob("*sluice*")]
    left = [path for path in left if "later.deb" not in path.name and "sluice.service.d" not in str(path)]
    assert not left, left
