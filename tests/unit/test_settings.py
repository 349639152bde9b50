"""Settings: where a value comes from, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field

from memory_core.database.embedded import EmbeddedPostgres
from memory_core.errors import InvalidSettings
from memory_core.settings import Settings


class Sample(BaseModel):
    """A section for the tests."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    days: int = Field(default=7, ge=1)
    names: tuple[str, ...] = ("a",)


def test_nothing_is_read_at_import(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A variable set after the import counts."""
    monkeypatch.setenv("SLOWWAVE_HOME", str(tmp_path))
    monkeypatch.setenv("SLOWWAVE_POOL_SIZE", "3")
    assert Settings.load().pool_size == 3
    assert Settings.load().home == tmp_path


def test_arguments_beat_environment_beats_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The documented precedence of process settings."""
    (tmp_path / "slowwave.toml").write_text('model = "from-file"\nembedding = "hash"\npool_size = 2\n')
    monkeypatch.setenv("SLOWWAVE_MODEL", "from-environment")
    settings = Settings.load(home=tmp_path, pool_size=5)
    assert (settings.embedding, settings.model, settings.pool_size) == ("hash", "from-environment", 5)


def test_a_section_reads_call_tenant_environment_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The documented precedence of a phase's settings."""
    settings = Settings.load(home=tmp_path)
    assert settings.section("sample", Sample).days == 7
    (tmp_path / "slowwave.toml").write_text("[sample]\ndays = 2\n")
    assert settings.section("sample", Sample).days == 2
    monkeypatch.setenv("MNEMOSYNE_SAMPLE_DAYS", "3")
    assert settings.section("sample", Sample, aliases=("MNEMOSYNE_SAMPLE_",)).days == 3
    monkeypatch.setenv("SLOWWAVE_SAMPLE_DAYS", "4")
    assert settings.section("sample", Sample, aliases=("MNEMOSYNE_SAMPLE_",)).days == 4
    assert settings.section("sample", Sample, tenant={"sample": {"days": 5}}).days == 5
    assert settings.section("sample", Sample, tenant={"sample": {"days": 5}}, call={"days": 6}).days == 6


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"pool_size": 0}, "pool_size"),
        ({"model_cache": "sometimes"}, "model_cache"),
        ({"statement_timeout": -1}, "statement_timeout"),
    ],
)
def test_a_bad_value_is_named(arguments: dict[str, object], says: str, tmp_path: Path) -> None:
    """The message names the setting and what was given."""
    with pytest.raises(InvalidSettings, match=says):
        Settings.load(home=tmp_path, **arguments)


def test_a_bad_section_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Out of range, unknown, and of the wrong shape: each says where."""
    settings = Settings.load(home=tmp_path)
    monkeypatch.setenv("SLOWWAVE_SAMPLE_DAYS", "abc")
    with pytest.raises(InvalidSettings, match=r"sample.*days.*abc"):
        settings.section("sample", Sample)
    monkeypatch.delenv("SLOWWAVE_SAMPLE_DAYS")
    with pytest.raises(InvalidSettings, match=r"no setting 'dayz'.*days"):
        settings.section("sample", Sample, call={"dayz": 1})
    with pytest.raises(InvalidSettings, match="not a table"):
        settings.section("sample", Sample, tenant={"sample": "soon"})
    (tmp_path / "slowwave.toml").write_text("sample = 5\n")
    with pytest.raises(InvalidSettings, match=r"slowwave\.toml.*not a table"):
        settings.section("sample", Sample)


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    """A settings file that is no TOML says which file and why."""
    (tmp_path / "slowwave.toml").write_text("model = ")
    with pytest.raises(InvalidSettings, match=r"slowwave\.toml"):
        Settings.load(home=tmp_path)


def test_a_home_that_is_no_folder_is_no_broken_settings_file(tmp_path: Path) -> None:
    """Whoever needs the home tells what is wrong with it; here nothing is set."""
    (tmp_path / "file").touch()
    settings = Settings.load(home=tmp_path / "file")
    assert settings.home == tmp_path / "file"
    assert EmbeddedPostgres(settings.home).status().running is False


def test_keys_are_not_shown(tmp_path: Path) -> None:
    """A settings object may be logged."""
    assert "sesame" not in repr(Settings.load(home=tmp_path, model_api_key="sesame", embedding_api_key="sesame"))
