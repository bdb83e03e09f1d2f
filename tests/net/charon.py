"""strongSwan's charon as Debian has it, on a host (its SAs go to a Sluice by the preload library) or in user-mode Linux (they go to
the kernel there), with /run of its own and one pre-shared key.
"""

import os
import pathlib
import re
import shlex
import shutil

from hosts import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("SLUICE", ROOT / "build" / "sluice")).absolute().parent
PRELOAD = BUILD / "sluice-xfrm.so"
CHARON = "/usr/lib/ipsec/charon"
PLUGINS = "random nonce drbg aes sha1 sha2 hmac kdf ctr curve25519 kernel-netlink socket-default vici updown counters"
IKE = "aes128-sha256-x25519"


def why_not_charon():
    """One sentence why there is no charon here, or None when there is."""
    if not os.path.exists(CHARON):
        return "needs charon (package strongswan-charon): scripts/setup demo"
    for program, package in (("swanctl", "strongswan-swanctl"), ("unshare", "util-linux")):
        if shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
            return f"needs {program} (package {package}): scripts/setup demo"
    if not os.path.exists("/usr/lib/ipsec/plugins/libstrongswan-curve25519.so"):
        return "needs plug-ins of strongSwan (packages libstrongswan-extra-plugins, libcharon-extra-plugins): scripts/setup demo"
    return None


def block(name, lines):
    """A section of strongSwan's settings: lines, or (name, lines) of sections in it."""
    text = f"{name} {{\n"
    for line in lines:
        text += block(*line) if isinstance(line, tuple) else f"{line}\n"
    return text + "}\n"


def daemon_settings(vici, log, more=(), threads=8):
    """strongswan.conf."""
    return block("charon", [
        f"load = {PLUGINS}", f"threads = {threads}", "install_routes = no", "install_virtual_ip = no", "retransmit_timeout = 1.0",
        "retransmit_tries = 3", "retransmit_base = 1.2", "delete_rekeyed_delay = 1", *more,
        ("filelog", [("all", [f"path = {log}", "default = 1", "knl = 2", "chd = 2", "ike = 1", "flush_line = yes",
                              "ike_name = yes", "time_format = %H:%M:%S"])]),
        ("plugins", [("vici", [f"socket = unix://{vici}"]),
                     ("kernel-netlink", [])])]) + block("swanctl", ["load = random"])


def connection(name, local, remote, local_ts, remote_ts, esp="aes128-sha256", child=(), more=(), key="a secret of a test"):
    """swanctl.conf: one connection with one child of its name."""
    return block("connections", [(name, [
        "version = 2", f"local_addrs = {local}", f"remote_addrs = {remote}", f"proposals = {IKE}", *more,
        ("local", ["auth = psk"]),
        ("remote", ["auth = psk"]),
        ("children", [(name, [f"local_ts = {local_ts}", f"remote_ts = {remote_ts}", f"esp_proposals = {esp}", *child])])])]) + \
        block("secrets", [("ike-all", [f'secret = "{key}"'])])


class Charon:
    """Where it runs is what `run` and `folder` say: `start` and `swanctl` are words of commands there."""

    def __init__(self, folder, seen_as):
        self.folder = pathlib.Path(folder)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.seen_as = pathlib.Path(seen_as)  # the folder's name where charon runs

    def write(self, settings, connections):
        (self.folder / "strongswan.conf").write_text(settings, encoding="utf-8")
        self.configure(connections)

    def configure(self, connections):
        (self.folder / "swanctl.conf").write_text(connections, encoding="utf-8")

    def log(self):
        path = self.folder / "charon.log"
        return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""

    def logs(self, pattern, timeout=15):
        """Whether a line of its log matches, within a time."""
        return wait_until(lambda: re.search(pattern, self.log()), timeout)

    def run(self, command, check=True, timeout=30):
        """A shell command beside it."""
        raise NotImplementedError

    def swanctl(self, *words, check=True, timeout=30):
        command = ["swanctl", words[0], "--uri", f"unix://{self.vici}", *words[1:]]
        environment = f"STRONGSWAN_CONF={self.seen_as}/strongswan.conf"
        return self.run(f"{environment} {shlex.join(command)}", check, timeout)

    def load(self):
        """Takes over swanctl.conf."""
        said = self.swanctl("--load-all", "--file", f"{self.seen_as}/swanctl.conf", "--noprompt")
        assert re.search("successfully loaded [1-9]", said), said
        return said

    def initiate(self, child, timeout=20, check=True):
        return self.swanctl("--initiate", "--child", child, "--timeout", str(timeout), check=check, timeout=timeout + 10)

    def sas(self):
        """As swanctl prints them."""
        return self.swanctl("--list-sas")

    def installed(self):
        """(inbound SPI, outbound SPI) of each child that is installed."""
        text = self.sas()
        children = re.split(r"^  (?=\S.*: #\d+)", text, flags=re.M)[1:]
        return [tuple(int(re.search(rf"^    {way}\s+([0-9a-f]{{8}})", one, re.M)[1], 16) for way in ("in", "out"))
                for one in children if re.search(r"\bINSTALLED\b", one.splitlines()[0])]


class HostCharon(Charon):
    """In a namespace; with `xfrm` (the path of a socket) over the preload library."""

    def __init__(self, host, folder, xfrm=None):
        super().__init__(folder, folder)
        self.host = host
        self.xfrm = xfrm
        self.vici = self.folder / "vici"
        self.process = None

    def start(self, connections, more=()):
        self.write(daemon_settings(self.vici, self.folder / "charon.log", more), connections)
        words = [f"STRONGSWAN_CONF={self.folder}/strongswan.conf"]
        if self.xfrm:
            words += [f"LD_PRELOAD={PRELOAD}", f"SLUICE_XFRM={self.xfrm}"]
        with open(self.folder / "charon.err", "ab") as log:
            self.process = self.host.spawn(["unshare", "--mount", "sh", "-c", 'mount -t tmpfs tmp /run && exec env "$@"', "sh", *words,
                                            CHARON], stdout=log)
        assert wait_until(lambda: self.process.poll() is not None or self.vici.exists(), 20), self.said()
        assert self.process.poll() is None, self.said()
        self.load()
        return self

    def said(self):
        """On standard error, and its log."""
        return (self.folder / "charon.err").read_text(encoding="utf-8", errors="replace") + self.log()

    def run(self, command, check=True, timeout=30):
        return self.host.run(["sh", "-c", command], check, timeout)


class UmlCharon(Charon):
    """In user-mode Linux (uml_peer.py), over the XFRM of its kernel."""

    def __init__(self, peer):
        super().__init__(peer.folder, "/mnt")
        self.peer = peer
        self.vici = pathlib.Path("/run/charon.vici")

    def start(self, connections, more=()):
        self.write(daemon_settings(self.vici, "/mnt/charon.log", more), connections)
        self.peer.run(f"STRONGSWAN_CONF=/mnt/strongswan.conf {CHARON} > /mnt/charon.err 2>&1 < /dev/null & echo $! > /run/pid")
        ready = "for i in $(seq 100); do [ -S /run/charon.vici ] && exit 0; sleep 0.05; done; cat /mnt/charon.err; exit 1"
        self.peer.run(ready, timeout=60)
        self.load()
        return self

    def run(self, command, check=True, timeout=30):
        return self.peer.run(command, check, timeout)

    def kernel_sas(self):
        """What its kernel has, by SPI: words of `ip xfrm state`."""
        sas = {}
        for text in re.split(r"^(?=src )", self.peer.run("ip -d xfrm state"), flags=re.M)[1:]:
            facts = {"text": text}
            facts["source"], facts["destination"] = re.match(r"src (\S+) dst (\S+)", text).groups()
            facts["spi"] = int(re.search(r"spi 0x([0-9a-f]+)", text)[1], 16)
            for word, name in (("enc", "key"), ("aead", "key"), ("auth-trunc", "auth_key"), ("auth", "auth_key")):
                found = re.search(rf"\t{word} \S+ 0x([0-9a-f]+)(?: .*?(\d+)$)?", text, re.M)
                if found:
                    facts.setdefault(name, found[1])
            sas[facts["spi"]] = facts
        return sas
