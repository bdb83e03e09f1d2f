"""`scripts/lint BUILD changed` looks at all that changed: a header by a .cc file that includes it in some way.

It runs in a repository of its own, with stand-ins for clang-format, clang-tidy and scripts/setup.
"""

import os
import pathlib
import shutil
import subprocess

import pytest

LINT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "lint"

FILES = {
    "src/base/error.h": "",
    "src/base/file.h": '#include "base/error.h"\n',
    "src/base/file.cc": '#include "base/file.h"\n',
    "src/base/lone.h": '#include "base/error.h"\n',
    "src/base/lone_test.cc": '#include "base/error.h"\n#include "base/lone.h"\n',
    "src/cli/main.cc": '#include "base/file.h"\n',
    "tests/fuzz/require.h": "",
    "tests/fuzz/frame_fuzz.cc": '#include "require.h"\n',
}


@pytest.fixture
def lint(tmp_path):
    """Changes files and answers with those that clang-tidy is then called for."""
    def git(*words):
        subprocess.run(["git", "-c", "user.name=n", "-c", "user.email=e@example.org", *words], cwd=tmp_path, check=True,
                       stdout=subprocess.DEVNULL)

    stand_ins = {"bin/clang-format": "exit 0", "scripts/setup": "exit 0",
                 "bin/clang-tidy": f'for file; do :; done; echo "$file" >> {tmp_path}/tidied; ! grep -q bad "$file"'}
    for name, text in {**FILES, ".clang-tidy": "", "build/compile_commands.json": ""}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="ascii")
    for name, line in stand_ins.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n", encoding="ascii")
        (tmp_path / name).chmod(0o755)
    shutil.copy(LINT, tmp_path / "scripts" / "lint")
    git("init", "-q")
    git("add", "-A")
    git("commit", "-q", "-m", "first")

    def run(*changed, text="// changed\n", status=0):
        for name in changed:
            (tmp_path / name).write_text(FILES[name] + text, encoding="ascii")
        git("commit", "-q", "-a", "-m", "second")
        ran = subprocess.run([tmp_path / "scripts" / "lint", "build", "changed"], capture_output=True, text=True, timeout=60,
                             check=False, env={**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
                                               "LINT_SINCE": "HEAD~1"})
        assert ran.returncode == status, ran.stderr
        tidied = tmp_path / "tidied"
        return sorted(tidied.read_text(encoding="ascii").split()) if tidied.exists() else []
    return run


@pytest.mark.parametrize(("changed", "tidied"), [
    pytest.param(["src/cli/main.cc"], ["src/cli/main.cc"], id="source"),
    pytest.param(["src/base/file.h"], ["src/base/file.cc"], id="header-with-a-source"),
    pytest.param(["src/base/error.h"], ["src/base/file.cc"], id="through-another-header"),
    pytest.param(["src/base/error.h", "src/cli/main.cc"], ["src/cli/main.cc"], id="one-that-is-looked-at-anyway"),
    pytest.param(["tests/fuzz/require.h"], ["tests/fuzz/frame_fuzz.cc"], id="fuzz-target"),
    pytest.param(["src/base/lone.h", "src/base/lone_test.cc"], [], id="only-of-tests"),
])
def test_a_changed_header_is_looked_at(lint, changed, tidied):
    assert lint(*changed) == tidied


def test_what_clang_tidy_refuses_fails_after_all_have_been_looked_at(lint):
    assert lint("src/base/file.cc", "src/cli/main.cc", text="// bad\n", status=1) == ["src/base/file.cc", "src/cli/main.cc"]
