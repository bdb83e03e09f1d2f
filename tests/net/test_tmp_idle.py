import time
from test_inspect import Wire, OWN_RULES, ADDED_RULE
from frames import udp4
from hosts import wait_until
import subprocess, json

def test_idle(tmp_path):
    with Wire(tmp_path) as wire:
        before = wire.gateway.stats()
        wire.client.inside(lambda: __import__("socket").socket(__import__("socket").AF_INET, __import__("socket").SOCK_DGRAM).sendto(b"x", ("10.1.0.3", 5000)))
        assert wait_until(lambda: wire.figures()["inspect_flows"] > 0, 5)
        print("flows", wire.figures()["inspect_flows"])
        pid = wire.gateway.process.pid
        def cpu():
            f = open(f"/proc/{pid}/stat").read().split(); return int(f[13]) + int(f[14])
        c0 = cpu(); t0 = time.time(); n0 = wire.figures()["inspect_frames"]
        ok = wait_until(lambda: wire.figures()["inspect_flows"] == 0, 60)
        print("ended", ok, time.time() - t0, "frames meanwhile", wire.figures()["inspect_frames"] - n0, "cpu %", (cpu() - c0) / (time.time() - t0))
        assert ok
