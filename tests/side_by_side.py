"""Tests side by side: which stay with one worker of pytest-xdist, and which run while no other does.

A file whose tests share hosts (a fixture of module scope) stays with one worker, so that the hosts are made once. The tests of any
other file go one by one to whoever is free. A test marked `alone` measures times or shares of a core: it waits until all others
have ended, and none begins before it has.
"""

import contextlib
import fcntl
import functools
import pathlib
import re

from xdist.scheduler import LoadScopeScheduling

FOLDER = pathlib.Path(__file__).parent


@functools.cache
def text_of(file):
    """Of a file of tests, by its path from the repository's root."""
    return (FOLDER.parent / file).read_text(encoding="utf-8")


def shares_hosts(file):
    """Whether tests of this file share a fixture: one of its own, or one of net/conftest.py."""
    return re.search(r"scope=.module.|^def test_\w+\([^)]*\b(?:network|tunnels)\b", text_of(file), re.M) is not None


def begins(item):
    """Sorts items by when they begin: files that cannot be shared out first, what runs alone last, so that all others wait once."""
    file = item.location[0]
    alone = item.get_closest_marker("alone") or (shares_hosts(file) and "mark.alone" in text_of(file))
    return 2 if alone else not shares_hosts(file)


class ByHosts(LoadScopeScheduling):
    """xdist's scheduling by scope, where a scope is a file that shares hosts, or one test."""

    def _split_scope(self, nodeid):
        file = nodeid.split("::")[0]
        return file if shares_hosts(file) else nodeid


@contextlib.contextmanager
def turn(alone):
    """Holds this test's place beside the others, also beside those of another run in this checkout.

    Whoever waits to be alone holds the door meanwhile, so that no stream of others keeps it out.
    """
    with open(FOLDER / "conftest.py", "rb") as door, open(__file__, "rb") as room:
        fcntl.flock(door, fcntl.LOCK_EX)
        fcntl.flock(room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(door, fcntl.LOCK_UN)
        yield
