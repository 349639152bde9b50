"""Every setting of Slowwave, typed and checked, read when built and never at import.

Precedence, highest first: arguments of a call, the tenant's own settings, environment variables
(`SLOWWAVE_…`), the file `slowwave.toml` in the data folder, the default.

`Settings` holds what the process needs. What belongs to one phase or to SHMR is a *section*: a small
pydantic model beside the code it steers, read with `Settings.section`.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar

import platformdirs
from pydantic import BaseModel, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from memory_core.errors import InvalidSettings

ENVIRONMENT_PREFIX = "SLOWWAVE_"
SETTINGS_FILE = "slowwave.toml"

Section = TypeVar("Section", bound=BaseModel)


def default_home() -> Path:
    """The data folder where `SLOWWAVE_HOME` does not say: the platform's user data folder."""
    return Path(platformdirs.user_data_dir("slowwave", appauthor=False))


class Settings(BaseSettings):
    """What one process of Slowwave runs with. Build it with `Settings.load()`."""

    model_config = SettingsConfigDict(env_prefix=ENVIRONMENT_PREFIX, frozen=True, extra="ignore")

    home: Path = Field(default_factory=default_home, description="The data folder.")
    database_url: str = Field(
        default="", description="SQLAlchemy or libpq URL of your Postgres; empty for the embedded one."
    )
    pool_size: int = Field(default=8, ge=1, le=100, description="Database connections a process keeps.")
    statement_timeout: int = Field(
        default=600, ge=0, le=86_400, description="Seconds one SQL statement may take; 0 for no limit."
    )
    lock_timeout: int = Field(default=30, ge=0, le=3_600, description="Seconds to wait for a row lock; 0 for no limit.")
    scope_wait: float = Field(
        default=0,
        ge=0,
        le=86_400,
        description="Seconds a run waits for a scope that another one holds; 0 to leave it out and say so.",
    )
    root_kind: str = Field(
        default="tenant", min_length=1, description="Kind of the root level where a command names only an id."
    )

    embedding: str = Field(
        default="minilm", min_length=1, description="minilm, hash, litellm:<model> or fastembed:<model>."
    )
    embedding_api_base: str = Field(default="", description="Base URL of an OpenAI-compatible embedding server.")
    embedding_api_key: str = Field(default="", repr=False, description="Key for the embedding provider.")

    model: str = Field(
        default="rules", description="rules, or a LiteLLM model name, or several with commas, local first."
    )
    model_api_base: str = Field(default="", description="Base URL of an OpenAI-compatible server.")
    model_api_key: str = Field(default="", repr=False, description="Key for the model provider.")
    model_timeout: float = Field(default=60.0, gt=0, le=3_600, description="Seconds one model call may take.")
    model_requests_per_minute: int = Field(
        default=0, ge=0, le=1_000_000, description="Calls to models a minute, all workers together; 0 for no limit."
    )
    model_tokens_per_minute: int = Field(
        default=0,
        ge=0,
        le=1_000_000_000,
        description="Tokens a minute that calls to models may read and write, all workers together; 0 for no limit.",
    )
    on_model_failure: Literal["defer", "rules"] = Field(
        default="defer",
        description="What a run does where the configured model fails: leave the work for later, "
        "or decide by rules and say so.",
    )
    model_cache: Literal["live", "replay", "replay-or-live"] = Field(
        default="replay-or-live", description="Whether cached model answers are used, required, or ignored."
    )

    scopes_at_once: int = Field(default=4, ge=1, le=64, description="Scopes of a chunk worked on at the same time.")
    debug: bool = Field(default=False, description="Show tracebacks.")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments first, then the environment; the file is merged in `load`."""
        return init_settings, env_settings

    @classmethod
    def load(cls, **arguments: Any) -> Settings:
        """Read arguments, environment and file, in that order of precedence.

        Raises:
            InvalidSettings: a value is out of range, or the file is not valid TOML.
        """
        arguments = {name: value for name, value in arguments.items() if value is not None}
        home = Path(arguments.get("home") or os.environ.get(f"{ENVIRONMENT_PREFIX}HOME") or default_home())
        in_file = {
            name: value
            for name, value in _read_file(home).items()
            if not isinstance(value, dict) and f"{ENVIRONMENT_PREFIX}{name}".upper() not in os.environ
        }
        try:
            return cls(**{**in_file, **arguments, "home": home.expanduser().absolute()})
        except ValidationError as error:
            raise _invalid(error, "Slowwave") from error

    def section(
        self,
        name: str,
        model: type[Section],
        *,
        tenant: Mapping[str, Any] | None = None,
        call: Mapping[str, Any] | None = None,
        aliases: tuple[str, ...] = (),
    ) -> Section:
        """The settings of one part, such as `shmr` or `prune`.

        Args:
            name: the section's name: `[name]` in the file, `SLOWWAVE_<NAME>_<FIELD>` in the environment.
            model: the pydantic model that types, bounds and describes it.
            tenant: the tenant's own settings, a document with one key a section.
            call: this call's own values; None values are ignored.
            aliases: further environment prefixes, tried after `SLOWWAVE_<NAME>_`.

        Raises:
            InvalidSettings: a value is out of range or a name is unknown.
        """
        values: dict[str, Any] = dict(self.table(name))
        for prefix in (*reversed(aliases), f"{ENVIRONMENT_PREFIX}{name.upper()}_"):
            for field in model.model_fields:
                value = os.environ.get(f"{prefix}{field.upper()}")
                if value is not None and value != "":
                    values[field] = value
        own = (tenant or {}).get(name, {})
        if not isinstance(own, Mapping):
            raise InvalidSettings(f"The tenant's settings for {name!r} are not a table of names and values.")
        values.update(own)
        values.update({field: value for field, value in (call or {}).items() if value is not None})
        unknown = sorted(set(values) - set(model.model_fields))
        if unknown:
            raise InvalidSettings(
                f"There is no setting {unknown[0]!r} in {name!r}.",
                hint=f"It knows: {', '.join(sorted(model.model_fields))}.",
            )
        try:
            return model(**values)
        except ValidationError as error:
            raise _invalid(error, name) from error

    def table(self, name: str) -> Mapping[str, Any]:
        """What the file says of one section, as it stands there; empty where it says nothing.

        Raises:
            InvalidSettings: the file cannot be read, or the section is not a table.
        """
        found = _read_file(self.home).get(name, {})
        if not isinstance(found, Mapping):
            raise InvalidSettings(
                f"{name!r} in {SETTINGS_FILE} is not a table of names and values.",
                hint=f"Write it as [{name}] with a line for each setting.",
            )
        return found


def _read_file(home: Path) -> dict[str, Any]:
    path = home / SETTINGS_FILE
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        # A home that is no folder is told by whoever needs it.
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidSettings(
            f"The settings file {path} cannot be read: {error}.", hint="Correct it or move it away."
        ) from error


def _invalid(error: ValidationError, where: str) -> InvalidSettings:
    problems = "; ".join(
        f"{'.'.join(str(part) for part in problem['loc']) or 'value'}: {problem['msg']} (got {problem['input']!r})"
        for problem in error.errors()
    )
    return InvalidSettings(f"The settings of {where} are not valid: {problems}.")
