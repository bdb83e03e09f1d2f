"""Tests of the Debian package: they install systems of their own, which takes minutes and the network, so `make test-deb` runs them
and `make test` does not."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "net"))
