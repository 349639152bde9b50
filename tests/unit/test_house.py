"""The house: what is at the top level, how large a module may be, and that the lock is one that everybody can use."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("memory_core", "tasks", "flows", "deployments")
ALLOWED_FOLDERS = {*PACKAGES, "tests", "docs", ".ci"}
TEST_FOLDERS = {"unit", "database", "orchestration", "end_to_end", "faults", "security", "benchmarks", "data"}
BUILT_FOLDERS = {"build", "dist"}
LONGEST_MODULE = 400

LOCKED = re.compile(
    r"(?P<name>[a-z0-9-]+)(\[[a-z0-9,-]+\])?==(?P<version>[^ ]+)( ; python_full_version [<>=]+ '[0-9.]+')? \\"
)
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?")


def source_files() -> list[Path]:
    """Every file below the top-level folders, as paths from the root; without caches and what a build leaves."""
    folders = [
        path
        for path in ROOT.iterdir()
        if path.is_dir() and path.name not in BUILT_FOLDERS and (path.name == ".ci" or not path.name.startswith("."))
    ]
    found = [path.relative_to(ROOT) for folder in folders for path in folder.rglob("*") if path.is_file()]
    return [path for path in found if "__pycache__" not in path.parts and not path.parts[0].endswith(".egg-info")]


def lock_lines() -> list[str]:
    """The lines of the lock file, without blank ones."""
    return [line for line in (ROOT / "requirements.lock").read_text().splitlines() if line.strip()]


def locked_versions() -> dict[str, set[str]]:
    """Each locked package and its versions; it may have one for older and one for newer Pythons."""
    versions: dict[str, set[str]] = {}
    for line in lock_lines():
        if match := LOCKED.fullmatch(line):
            versions.setdefault(canonicalize_name(match["name"]), set()).add(match["version"])
    return versions


def project() -> dict[str, Any]:
    """The [project] table of pyproject.toml."""
    table: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return table


def requirements() -> list[Requirement]:
    """Every dependency the project declares, extras included."""
    table = project()
    extras = [line for lines in table["optional-dependencies"].values() for line in lines]
    return [Requirement(line) for line in [*table["dependencies"], *extras]]


def test_the_lock_holds_versions_and_hashes_only() -> None:
    """The lock names no registry, address, option or path: each line is a pinned package or a hash."""
    strange = [line for line in lock_lines() if not LOCKED.fullmatch(line) and not HASH.fullmatch(line)]
    assert strange == []
    assert len(locked_versions()) > 100


def test_every_locked_package_has_hashes() -> None:
    """A package without a hash would make `pip install --require-hashes` fail for everybody."""
    lines = lock_lines()
    bare = [a for a, b in zip(lines, [*lines[1:], ""], strict=True) if LOCKED.fullmatch(a) and not HASH.fullmatch(b)]
    assert bare == []


def test_the_lock_does_not_install_torch() -> None:
    """The default installation stays small: no torch and none of its companions."""
    assert not {"torch", "triton", "sentence-transformers"} & locked_versions().keys()


def test_every_dependency_has_a_range() -> None:
    """A dependency without a lower bound breaks old installations, one without an upper bound new ones."""
    open_ended = []
    for requirement in requirements():
        operators = {part.operator for part in requirement.specifier}
        if not (operators & {">=", "=="} and operators & {"<", "=="}):
            open_ended.append(str(requirement))
    assert open_ended == []


def test_every_dependency_is_locked_inside_its_range() -> None:
    """What `make setup` installs is what pyproject.toml asks for; extras but dev are not locked."""
    table = project()
    locked = locked_versions()
    wrong = []
    for line in [*table["dependencies"], *table["optional-dependencies"]["dev"]]:
        requirement = Requirement(line)
        versions = locked.get(canonicalize_name(requirement.name), set())
        if not versions or not all(requirement.specifier.contains(version) for version in versions):
            wrong.append(f"{line}: locked {sorted(versions) or 'not at all'}")
    assert wrong == []


def test_the_extras_are_those_promised() -> None:
    """Each optional part can be asked for by the name that the documentation gives."""
    assert set(project()["optional-dependencies"]) == {
        "dask",
        "ray",
        "mongo",
        "chroma",
        "fastembed",
        "api",
        "otel",
        "dev",
    }


def test_the_top_level_holds_the_allowed_folders_only() -> None:
    """A new top-level folder is a decision about the design, not something that happens."""
    assert {path.parts[0] for path in source_files()} <= ALLOWED_FOLDERS


def test_the_test_folders_are_those_agreed() -> None:
    """No folder of tests is called `tasks` or `flows`, which would shadow the packages of that name."""
    tests = [path for path in source_files() if path.parts[0] == "tests"]
    assert {path.parts[1] for path in tests if len(path.parts) > 2} <= TEST_FOLDERS
    assert [path for path in tests if {"tasks", "flows"} & set(path.parts[1:-1])] == []


def test_no_module_is_too_long_to_read() -> None:
    """A module that cannot be read in one sitting holds more than one concept."""
    modules = [path for path in source_files() if path.suffix == ".py"]
    lengths = {str(path): len((ROOT / path).read_text(encoding="utf-8").splitlines()) for path in modules}
    assert {name: length for name, length in lengths.items() if length > LONGEST_MODULE} == {}


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_folder_has_its_init(package: str) -> None:
    """The import contracts and the built wheel look at a folder only where it has an `__init__.py`."""
    folders = {path.parent for path in source_files() if path.parts[0] == package and path.suffix == ".py"}
    bare = {str(folder) for folder in folders if "migrations" not in folder.parts}
    assert folders
    assert {folder for folder in bare if not (ROOT / folder / "__init__.py").is_file()} == set()


def test_the_command_line_and_the_flows_are_found_by_entry_points() -> None:
    """The core reaches the flows through an entry point, because it may not import them."""
    table = project()
    assert table["scripts"] == {"slowwave": "memory_core.cli.main:main"}
    assert table["entry-points"] == {"slowwave.flows": {"runner": "flows.runner:run"}}
