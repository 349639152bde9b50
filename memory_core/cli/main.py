"""The `slowwave` command: its groups of commands, and the one place where errors become exit codes."""

from __future__ import annotations

import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from memory_core.cli import adding, calibrating, editing, keeping, nights, promoting, reading, reflecting, runs
from memory_core.cli.output import ExitCode, drop_output, print_error, print_json, say

# Typer has its own copy of click since 0.2x and used the package before; both have this line of ancestors.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
_COMMAND_LINE_ERROR: type[Exception] = typer.BadParameter.__mro__[2]

INTERRUPTED = 130

app = typer.Typer(
    name="slowwave",
    help=(
        "A night's sleep for agent memory: what was used is strengthened, noise is retired, contradictions become "
        "beliefs that carry their evidence. Every run is recorded and can be previewed and undone."
    ),
    epilog=(
        "Exit codes: 0 done, 1 failed, 2 bad usage or input, 3 partly done. "
        "Each command's own --help has examples, such as: slowwave nightly --help"
    ),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(asked: bool) -> None:
    if asked:
        # Looked up only here: reading a distribution's metadata would slow every command.
        from importlib.metadata import version

        print(f"slowwave {version('slowwave')}")
        raise typer.Exit()


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Options of the command itself."""


for group in (nights, adding, editing, promoting, reading, reflecting, runs, keeping, calibrating):
    group.register(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and leave with its exit code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command; returns its exit code. Errors are one line on stderr, and a JSON document with `--json`."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    as_json, debug = "--json" in options, "--debug" in options
    try:
        ended = int(app(args=list(arguments), prog_name="slowwave", standalone_mode=False) or ExitCode.DONE)
        if ended == INTERRUPTED:
            # Typer makes this code of Ctrl-C, and says nothing.
            raise KeyboardInterrupt
        # Here a full disk is still an error that can be told; at the interpreter's exit it is a traceback.
        sys.stdout.flush()
        return ended
    except (_COMMAND_LINE_ERROR, typer.Abort) as error:
        return _refuse_usage(error, as_json=as_json)
    except KeyboardInterrupt as error:
        print_error(error, as_json=as_json)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of our output has gone, as `head` does.
        drop_output()
        return ExitCode.FAILED
    except Exception as error:
        if debug:
            traceback.print_exc()
        return print_error(error, as_json=as_json)


def _open_closed_streams() -> None:
    """A stream that the caller closed, as `>&-` does, takes what is written and keeps nothing."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            # Open until the process ends, as any standard stream is.
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _refuse_usage(error: BaseException, *, as_json: bool) -> int:
    message = error.format_message() if hasattr(error, "format_message") else "Aborted."
    context = getattr(error, "ctx", None)
    if not message.strip():
        # No command was given, and the help was printed instead.
        return ExitCode.BAD_INPUT
    command = context.command_path if context is not None else "slowwave"
    hint = f"See: {command} --help"
    say(f"error: {' '.join(message.split())} {hint}")
    if as_json:
        print_json({"error": "UsageError", "message": message, "hint": hint})
    return ExitCode.BAD_INPUT


if __name__ == "__main__":
    main()
