"""Conversations as files that `slowwave import` reads: turns in the chat format, facts as JSON Lines."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

EVALUATION_DATA = Path(os.environ.get("SLOWWAVE_EVAL_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
"""The folder of the public evaluation data; never part of the project."""

OWN = Path(__file__).parents[1] / "data" / "conversation.json"


@dataclass(frozen=True)
class Conversation:
    """Sessions in time order: when, the turns (speaker, text, id), the facts (text, turn, triple or None)."""

    sessions: tuple[dict[str, Any], ...]

    def nights(self) -> list[datetime]:
        """Three in the morning after each session's day."""
        days = [session["at"].astimezone(UTC) for session in self.sessions]
        return [(day + timedelta(days=1)).replace(hour=3, minute=0, second=0, microsecond=0) for day in days]

    def write_turns(self, path: Path) -> int:
        """Write the chat file; returns its lines."""
        lines = [
            {
                "speaker": turn["speaker"],
                "text": turn["text"],
                "id": turn["id"],
                "at": (session["at"] + timedelta(seconds=20 * number)).isoformat(),
            }
            for session in self.sessions
            for number, turn in enumerate(session["turns"])
        ]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return len(lines)

    def write_facts(self, path: Path) -> int:
        """Write the facts as semantic memories linked to the turn they came from; returns the lines."""
        lines = []
        for number, session in enumerate(self.sessions):
            for position, fact in enumerate(session["facts"]):
                line = {
                    "content": fact["text"],
                    "external_id": f"fact-{number}-{position}",
                    "observed_at": session["at"].isoformat(),
                    "source": fact["speaker"],
                    "edges": [{"to": turn, "relationship": "STATED_IN"} for turn in fact["turns"]],
                    "accesses": [
                        {"kind": "mention", "at": (session["at"] + timedelta(hours=1, minutes=position)).isoformat()}
                    ],
                }
                if fact.get("triple"):
                    line |= dict(zip(("subject", "predicate", "object"), fact["triple"], strict=True))
                lines.append(line)
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        return len(lines)


def own_conversation() -> Conversation:
    """The conversation that ships with the tests."""
    document = json.loads(OWN.read_text(encoding="utf-8"))
    return Conversation(
        tuple(
            {
                "at": datetime.fromisoformat(session["at"]),
                "turns": session["turns"],
                "facts": [{**fact, "turns": [fact["turn"]]} for fact in session["facts"]],
            }
            for session in document["sessions"]
        )
    )


def public_conversation(number: int) -> Conversation:
    """A conversation of the public evaluation data: dated sessions of turns, and observations with their turns."""
    found = json.loads((EVALUATION_DATA / "locomo_dev.json").read_text(encoding="utf-8"))[number - 1]
    talk, observations = found["conversation"], found["observation"]
    numbers = sorted(int(name.split("_")[1]) for name, value in talk.items() if isinstance(value, list))
    sessions = []
    for session in numbers:
        at = datetime.strptime(talk[f"session_{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        known = {turn["dia_id"] for turn in talk[f"session_{session}"]}
        facts = [
            {"speaker": speaker, "text": text, "turns": [turn for turn in _turns(turns) if turn in known]}
            for speaker, items in observations.get(f"session_{session}_observation", {}).items()
            for text, turns in items
        ]
        turns = [
            {"speaker": turn["speaker"], "text": turn["text"], "id": turn["dia_id"]}
            for turn in talk[f"session_{session}"]
        ]
        sessions.append({"at": at, "turns": turns, "facts": facts})
    return Conversation(tuple(sorted(sessions, key=lambda session: session["at"])))


def _turns(named: str | list[str]) -> list[str]:
    names = [named] if isinstance(named, str) else named
    return [part.strip() for name in names for part in name.replace(";", ",").split(",")]
