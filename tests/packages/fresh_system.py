"""A fresh system of this release, made by debootstrap in a folder: commands in it, packages, and its own systemd in a container
(systemd-nspawn) on the network of a host."""

import os
import pathlib
import re
import signal
import subprocess

from hosts import stop, wait_until

# SUITE, another release than the machine's: its name. DPDK is in these components.
DEBIAN = ("http://deb.debian.org/debian", "debian-archive-keyring.gpg", "main", "sid")
UBUNTU = ("http://archive.ubuntu.com/ubuntu", "ubuntu-archive-keyring.gpg", "main,universe", "gutsy")
ARCHIVES = {"bookworm": DEBIAN, "trixie": DEBIAN, "noble": UBUNTU}
OURS = re.search(r"(?m)^VERSION_CODENAME=(\w+)", pathlib.Path("/etc/os-release").read_text(encoding="utf-8"))[1]
SUITE = os.environ.get("SUITE") or OURS
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


def run(*command, check=True, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False, **options)
    assert not check or done.returncode == 0, f"{command}: exit status {done.returncode}\n{done.stdout[-3000:]}"
    return done.stdout


def debootstrap(root, packages):
    """A system of SUITE in this folder. Debian's debootstrap has no script of Ubuntu's releases' names: all are that of the first one."""
    assert SUITE in ARCHIVES, f"SUITE={SUITE}: there is {', '.join(ARCHIVES)}"
    mirror, keyring, components, script = ARCHIVES[SUITE]
    run("debootstrap", "--variant=minbase", f"--components={components}", f"--include={packages}", f"--keyring=/usr/share/keyrings/{keyring}", SUITE, root,
        mirror, f"/usr/share/debootstrap/scripts/{script}")


def remove(folder):
    """With all in it, but nothing of what is still mounted there: a test that was killed leaves /dev of the machine in it."""
    for line in reversed(pathlib.Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()):
        if pathlib.Path(line.split()[4]).is_relative_to(folder.resolve()):
            run("umount", "--lazy", line.split()[4], check=False)
    run("rm", "-rf", "--one-file-system", folder)


class System:
    def __init__(self, root, packages="systemd-sysv,iproute2,logrotate,procps"):
        self.root = root
        self.packages = packages
        self.mounts = []

    def __enter__(self):
        remove(self.root)
        self.root.parent.mkdir(parents=True, exist_ok=True)
        debootstrap(self.root, self.packages)
        self.root.chmod(0o755)  # for users in there who are not root
        self.policy = self.root / "usr/sbin/policy-rc.d"  # no service starts while packages are installed from outside
        self.policy.write_text("#!/bin/sh\nexit 101\n", encoding="ascii")
        self.policy.chmod(0o755)
        self.mount()
        return self

    def mount(self):
        for source, target, options in (("proc", "proc", ["-t", "proc"]), ("/dev", "dev", ["--rbind"])):
            run("mount", *options, source, self.root / target)
            self.mounts.append(self.root / target)
        run("mount", "--make-rslave", self.root / "dev")

    def unmount(self):
        while self.mounts:
            subprocess.run(["umount", "-R", "-l", self.mounts.pop()], check=False)

    def __exit__(self, *_):
        self.unmount()
        remove(self.root)

    def path(self, name):
        return self.root / name.lstrip("/")

    def text(self, name):
        return self.path(name).read_text(encoding="utf-8")

    def run(self, *command):
        return run("chroot", self.root, *command, env=ENVIRONMENT)

    def install(self, package, *options):
        self.path(f"/tmp/{package.name}").write_bytes(package.read_bytes())
        return self.run("apt-get", "install", "-y", "--no-install-recommends", *options, f"/tmp/{package.name}")


class Booted:
    """The system with its own systemd, on the network of `host`."""

    def __init__(self, system, host):
        self.system = system
        self.host = host

    def __enter__(self):
        self.system.unmount()
        self.system.policy.unlink(missing_ok=True)
        command = ["systemd-nspawn", "--keep-unit", "--register=no", f"--machine=sluice-{os.getpid()}", f"--directory={self.system.root}",
                   f"--network-namespace-path=/run/netns/{self.host.name}", "--capability=all", "--system-call-filter=bpf @keyring",
                   "--bind=/dev/net/tun", "--console=passive", "--boot"]
        # nspawn shows only a part of /sys otherwise, which DPDK takes for no /sys at all.
        self.process = subprocess.Popen(command, env={**os.environ, "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "yes"}, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not wait_until(lambda: self.process.poll() is not None or self.state() in ("running", "degraded"), 60):
            self.__exit__()
            raise AssertionError(f"the system has not booted: {self.state()}")
        return self

    def leader(self):
        """The process that is 1 in there."""
        return run("pgrep", "--parent", str(self.process.pid), check=False).split()

    def state(self):
        return self.run("systemctl", "is-system-running", check=False).strip() if self.leader() else ""

    def run(self, *command, check=True):
        leader, = self.leader()
        return run("nsenter", "--target", leader, "--all", "env", "--chdir=/", *command, check=check, env=ENVIRONMENT)

    def journal(self):
        return self.run("journalctl", "--no-pager", "--output=cat", "--unit=sluice", check=False)

    def start(self, configuration):
        """The service anew, with this configuration; the id of its process."""
        self.system.path("/etc/sluice/sluice.toml").write_text(configuration, encoding="utf-8")
        self.run("systemctl", "daemon-reload")
        self.run("systemctl", "reset-failed", "sluice", check=False)
        self.run("sh", "-c", "systemctl restart sluice || { journalctl --no-pager --output=cat --unit=sluice; exit 1; }")
        return self.run("systemctl", "show", "--property=MainPID", "--value", "sluice").strip()

    def __exit__(self, *_):
        stop(self.process, signal.SIGTERM, 60)
        self.system.mount()
