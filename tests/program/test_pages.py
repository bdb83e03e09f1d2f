"""What pages say that can be looked up: links and their anchors, and the README's commands, files and targets."""

import re
import subprocess

from gateway import ROOT, SLUICE

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def text_of(page):
    return page.read_text(encoding="utf-8")


def anchors(page):
    """As GitHub makes them of headings, and those that the page has itself."""
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', text_of(page)))
    for heading in re.findall(r"^#+ (.*)$", re.sub(r"^```.*?^```$", "", text_of(page), flags=re.M | re.S), re.M):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        name = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        found.add(name if name not in found else f"{name}-1")
    return found


def test_every_link_leads_somewhere():
    wrong = []
    for page in PAGES:
        for inline, reference in re.findall(r"\]\(([^)\s]+)\)|^\[[^]]+\]: (\S+)", text_of(page), re.M):
            link = inline or reference
            if re.match(r"https?:", link):
                continue
            file, _, anchor = link.partition("#")
            target = page.parent / file if file else page
            if not target.exists():
                wrong.append(f"{page.relative_to(ROOT)}: {link}: there is no such file")
            elif anchor and target.suffix == ".md" and anchor not in anchors(target):
                wrong.append(f"{page.relative_to(ROOT)}: {link}: there is no such heading")
    assert not wrong, "\n".join(wrong)


def test_headers_that_pages_name_are_there():
    headers = [f"/{path.relative_to(ROOT)}" for folder in ("src", "examples") for path in (ROOT / folder).rglob("*.*h")]
    wrong = [f"{page.relative_to(ROOT)}: {name}" for page in PAGES for name in re.findall(r"`([\w/]+\.(?:h|cuh))`", text_of(page))
             if not any(header.endswith("/" + name.removeprefix("include/sluice/")) for header in headers)]
    assert not wrong, "\n".join(wrong)


def test_headers_for_a_plug_in_are_installed():
    page = text_of(ROOT / "docs" / "write-an-element.md")
    roots = re.search(r"set\(roots ([^)]*)\)", text_of(ROOT / "cmake" / "ElementHeaders.cmake"))[1].split()
    named = {name.removeprefix("include/sluice/") for name in re.findall(r"`((?:include/sluice/)?\w+/[\w/]+\.h)`", page)}
    assert named and named <= set(roots), named - set(roots)


def help_of(*words):
    return subprocess.run([SLUICE, *words, "--help"], capture_output=True, text=True, timeout=60, check=True).stdout


def test_the_readme_s_commands_are_the_program_s():
    readme = text_of(ROOT / "README.md")
    commands = set(re.findall(r"^  (\w+) {2,}", help_of().partition("Subcommands:")[2], re.M))
    typed = set(re.findall(r"(?:^    build/sluice|`sluice) (\w+)", readme, re.M))
    assert typed <= commands and commands - typed == set(), "each command is named, and no other"
    of_ctl = set(re.findall(r"^  ([\w-]+) {2,}", help_of("ctl").partition("Subcommands:")[2], re.M))
    named = re.search(r"`sluice ctl ([\w\\|]+)`", readme)[1].replace("\\", "").split("|")
    assert set(named) <= of_ctl


def test_the_readme_s_files_and_targets_are_there():
    readme = text_of(ROOT / "README.md")
    for path in re.findall(r"\b(?:examples|scripts|docs)/[\w./-]+\b", readme):
        assert (ROOT / path).exists(), path
    targets = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True).stdout
    for words in re.findall(r"`make (\w[\w-]*)`((?:, `\w[\w-]*`)*)", readme):
        for target in [words[0], *re.findall(r"`([\w-]+)`", words[1])]:
            assert target == "help" or re.search(rf"^{target}\b", targets, re.M), target
