"""scripts/make-bundle removes nothing that it has not made."""

import pathlib
import subprocess

import pytest

MAKE_BUNDLE = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "make-bundle"


def make_bundle(tmp_path, bundle):
    """Ends at the latest where it asks for the targets of a build folder that is not there."""
    return subprocess.run([MAKE_BUNDLE, tmp_path / "no-build", bundle], capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize("files", [["notes.txt"], ["bin/sluice"], ["run-tests"]])
def test_a_folder_of_others_is_refused_and_stays(tmp_path, files):
    bundle = tmp_path / "opt"
    for name in files:
        (bundle / name).parent.mkdir(parents=True, exist_ok=True)
        (bundle / name).touch()
    ran = make_bundle(tmp_path, bundle)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr == (f"make-bundle: {bundle} is neither an empty folder nor a bundle (run-tests and bin/): "
                          "name another folder, or remove it yourself\n")
    assert all((bundle / name).exists() for name in files)


def test_a_file_and_a_link_are_refused(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    for name in ("file", "link"):
        assert "is neither an empty folder nor a bundle" in make_bundle(tmp_path, tmp_path / name).stderr


@pytest.mark.parametrize("files", [None, [], ["run-tests", "bin/sluice"]])
def test_a_missing_or_empty_folder_and_a_bundle_are_taken(tmp_path, files):
    bundle = tmp_path / "bundle"
    if files is not None:
        bundle.mkdir()
        for name in files:
            (bundle / name).parent.mkdir(exist_ok=True)
            (bundle / name).touch()
    ran = make_bundle(tmp_path, bundle)
    assert "nor a bundle" not in ran.stderr and "no-build" in ran.stderr
