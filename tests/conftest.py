"""Tests of the whole program: of tests/program/ it needs nothing but itself, of tests/net/ hosts in network namespaces, and of
tests/packages/ whole systems. Those of one run go side by side (side_by_side.py)."""

import pathlib
import signal
import sys

import pytest

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE / "net")]

from gateway import SLUICE  # noqa: E402
from hosts import Here  # noqa: E402
from side_by_side import ByHosts, begins, turn  # noqa: E402


@pytest.fixture
def here():
    """This machine as it is, for one gateway at a time."""
    machine = Here()
    yield machine
    machine.close()


# What a job in the background starts ignores Ctrl-C and so would everything under test; what pytest catches is the default again
# in the programs that it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_make_scheduler(config, log):
    return ByHosts(config, log)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    with turn(alone=item.get_closest_marker("alone") is not None):
        yield


def pytest_collection_modifyitems(items):
    items.sort(key=begins)
    if not SLUICE.exists() and any(HERE / "packages" not in item.path.parents for item in items):
        pytest.exit(f"{SLUICE} is not there: run make build", returncode=2)
