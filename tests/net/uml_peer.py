"""A host with a kernel of its own: user-mode Linux in a network namespace, for what this machine's kernel may lack, above all an
IPsec stack (XFRM with ESP and AH). It sees this machine's files, read-only; `folder` is /mnt there, and can be written.

A shell in it runs commands one at a time: their texts and outputs are files of `folder`, their numbers pass over its console.
Up in less than a second.
"""

import os
import pathlib
import select
import shutil
import subprocess
import time

from hosts import stop

MODULES = ("xfrm_user esp4 esp6 ah4 ah6 hmac authenc authencesn ctr cbc gcm ccm seqiv echainiv drbg jitterentropy_rng sha1_generic"
           " sha256_generic sha512_generic aes_generic ghash-generic chacha20poly1305 cipher_null crypto_null tunnel4 tunnel6")

# What takes most of the boot: measuring how fast RAID would be, file systems that nobody mounts.
UNWANTED = "raid6_select_algo,register_xor_blocks,init_btrfs_fs,init_xfs_fs,init_jfs_fs"

# Aliases of modules are looked for where Debian has this kernel's; the folder itself comes as the last word of the command line.
INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/run
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tmpfs tmp /run
mount -t tmpfs tmp /tmp
mount -t hostfs -o {folder} none /mnt
mkdir -p /run/base/lib
ln -s /usr/lib/uml/modules /run/base/lib/modules
printf '#!/bin/sh\\nexec /usr/sbin/modprobe -d /run/base "$@"\\n' > /run/modprobe
chmod +x /run/modprobe
echo /run/modprobe > /proc/sys/kernel/modprobe
/run/modprobe -q -a {modules}
echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad
echo 0 > /proc/sys/net/ipv6/conf/all/accept_dad
ip link set lo up
stty -echo
echo "@ready"
while read -r number; do
  sh "/mnt/$number.sh" > "/mnt/$number.out" 2>&1 < /dev/null
  echo "@done $number $?"
done
"""


def why_not_uml():
    """One sentence why there is no user-mode Linux here, or None when there is."""
    for program, package in (("linux.uml", "user-mode-linux"), ("modprobe", "kmod"), ("unshare", "util-linux")):
        if shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin") is None:
            return f"needs {program} (package {package}): scripts/setup demo"
    return None


class UmlPeer:
    """`host`: a namespace that joins it to others; of its interfaces (a veth end each, up, without addresses) each is one of the
    peer's, vec0, vec1 and so on. `folder`: its own."""

    def __init__(self, host, folder, interfaces=("eth0",), memory="128M"):
        self.host = host
        self.folder = pathlib.Path(folder).absolute()
        self.interfaces = list(interfaces)
        self.memory = memory
        self.number = 0
        self.process = None
        self.console = b""

    def start(self, patience=30):
        self.folder.mkdir(parents=True, exist_ok=True)
        init = self.folder / "init.sh"
        init.write_text(INIT.format(folder=self.folder, modules=MODULES), encoding="ascii")
        init.chmod(0o755)
        for interface in self.interfaces:
            # This machine's own stack must not answer for it.
            self.host.sysctl(**{f"net__ipv6__conf__{interface}__disable_ipv6": 1})
            self.host.run(f"ethtool -K {interface} tx off gro off", check=False)
        # Its processes are those of a process namespace, and end with the first of them.
        command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", '"$@"; exit $?', "uml",
                   "linux.uml", "quiet", f"mem={self.memory}", f"uml_dir={self.folder}/", "umid=uml", "selinux=0", "apparmor=0",
                   "audit=0", f"initcall_blacklist={UNWANTED}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro",
                   f"init={init}", "con=null", "con0=fd:0,fd:1",
                   *(f"vec{i}:transport=raw,ifname={name},depth=128,gro=0" for i, name in enumerate(self.interfaces))]
        # pylint: disable-next=consider-using-with
        self.process = subprocess.Popen(self.host._inside(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT)
        self.host.processes.append(self.process)
        self._wait_for("@ready", patience)
        for i in range(len(self.interfaces)):
            self.run(f"ip link set vec{i} up")
        return self

    def run(self, command, check=True, timeout=30):
        """Runs a shell command in it to its end; its output, stdout and stderr. What it leaves behind with & goes on."""
        self.number += 1
        number = self.number
        (self.folder / f"{number}.sh").write_text(command + "\n", encoding="utf-8")
        self.process.stdin.write(f"{number}\n".encode())
        self.process.stdin.flush()
        status = int(self._wait_for(f"@done {number} ", timeout))
        output = (self.folder / f"{number}.out").read_text(encoding="utf-8", errors="replace")
        if check and status != 0:
            raise AssertionError(f"user-mode Linux: {command}: exit status {status}\n{output}")
        return output

    def reaches(self, address, count=1, size=56, *more):
        """Whether each of so many pings is answered."""
        words = ["ping", "-n", "-c", str(count), "-i", "0.01", "-W", "1", "-s", str(size), *more, address]
        return ", 0% packet loss" in self.run(" ".join(words), check=False)

    def close(self):
        if self.process:
            stop(self.process)
            for pipe in (self.process.stdin, self.process.stdout):
                pipe.close()

    def _wait_for(self, mark, patience):
        """What is behind this mark at a line's begin."""
        end = time.monotonic() + patience
        while True:
            for line in self.console.decode(errors="replace").splitlines():
                if line.startswith(mark) and (line != mark or mark == "@ready"):
                    self.console = b""
                    return line[len(mark):].strip()
            left = end - time.monotonic()
            ready = left > 0 and select.select([self.process.stdout], [], [], left)[0]
            some = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not some:
                raise AssertionError(f"user-mode Linux {'has ended' if ready else 'says nothing more'}, waiting for {mark!r}; its console:\n"
                                     f"{self.console.decode(errors='replace')}")
            self.console += some
