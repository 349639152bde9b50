"""Phase 2, tag risk: memories whose text speaks of a real risk carry the words that say so.

Label and content are read, nothing else: no property, no name of a tenant. Each text is looked at once for its
content and for the marker lists of the day (`risk_checked`), so a second run looks at nothing, and a text that no
longer earns the tag loses it.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, field_validator

from memory_core.database.scoped import ScopedConnection
from memory_core.runs.context import RunContext, Step
from memory_core.runs.decisions import not_undone
from memory_core.runs.outcome import SAMPLE_SIZE, StepOutcome
from memory_core.sleep.risk_markers import RiskMarkers
from memory_core.sleep.risk_words import LANGUAGES
from memory_core.sleep.streaming import pages

NAME = "tag_risk"
SHOWN = 20
"""Tagged memories that the morning report shows."""


class TagRiskSettings(BaseModel):
    """Section `tag_risk`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    languages: tuple[str, ...] = Field(
        default=("en",), min_length=1, description=f"Marker lists to use, of: {', '.join(LANGUAGES)}."
    )
    extra_markers: tuple[str, ...] = Field(default=(), description="Further words or phrases that mean a risk.")
    ignored_markers: tuple[str, ...] = Field(
        default=(), description="Words of the lists to leave alone, in all their forms."
    )
    page_size: int = Field(default=20_000, ge=1, le=100_000, description="Memories looked at between two writes.")

    @field_validator("languages", "extra_markers", "ignored_markers", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        # An environment variable is one text.
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("languages")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [code for code in value if code not in LANGUAGES]
        if unknown:
            raise ValueError(f"there is no marker list for {', '.join(unknown)}; there is {', '.join(LANGUAGES)}")
        return value


_READ = f"""
SELECT m.id, m.label, m.content, m.content_hash || ':' || CAST(:lists AS text) AS checked, s.risk_words,
       NOT {not_undone(NAME, "m.content_hash")} AS taken_back
FROM memories m
JOIN memory_state s ON s.tenant_id = m.tenant_id AND s.memory_id = m.id
WHERE m.tenant_id = :tenant_id AND m.scope_path = :scope_path AND s.scope_path = :scope_path
  AND m.layer <> 'working' AND m.derived_key IS NULL AND m.recorded_at <= :as_of
  AND m.retired_at IS NULL AND m.superseded_reason IS NULL AND (m.expires_at IS NULL OR m.expires_at > :as_of)
  AND s.risk_checked IS DISTINCT FROM m.content_hash || ':' || CAST(:lists AS text)
ORDER BY m.id
"""

# The stamp moves only where the words did: it says since when the text has been known as a risk.
_WRITE = """
UPDATE memory_state s
SET risk_checked = p.checked,
    risk_tagged_at = CASE WHEN p.words IS NULL THEN NULL
                          WHEN s.risk_words = p.words THEN s.risk_tagged_at
                          ELSE :as_of END,
    risk_words = p.words,
    -- What prune would note later in the night, while the row is written anyway: a second version of each costs more.
    first_night = coalesce(s.first_night, :as_of)
FROM (
  SELECT id, checked, CAST(words AS jsonb) AS words
  FROM unnest(CAST(:ids AS uuid[]), CAST(:checked AS text[]), CAST(:words AS text[])) AS u (id, checked, words)
) AS p
WHERE s.tenant_id = :tenant_id AND s.scope_path = :scope_path AND s.memory_id = p.id
"""

UNDONE = """
SELECT 'tag_risk' AS phase, slowwave.decision_key('tag_risk', m.content_hash) AS decision_key,
       jsonb_build_array(m.id) AS members
FROM run_changes c
JOIN memories m ON m.tenant_id = c.tenant_id AND m.id = CAST(c.row_key ->> 'memory_id' AS uuid)
WHERE c.tenant_id = :tenant_id AND c.scope_path = :scope_path AND c.run_id = CAST(:id AS uuid)
  AND c.step = 'tag_risk' AND c.table_name = 'memory_state' AND c.before ? 'risk_words'
"""


async def tag_risk(connection: ScopedConnection, context: RunContext, _: object = None) -> StepOutcome:
    """Look at every text that was not yet looked at with today's lists; tag it, or take the tag from it."""
    settings = context.section(NAME, TagRiskSettings)
    markers = RiskMarkers.of(settings.languages, settings.extra_markers, settings.ignored_markers)
    looked_at = tagged = reworded = untagged = taken_back = 0
    shown: list[dict[str, Any]] = []
    sample: list[str] = []
    async for page in pages(
        connection,
        _READ,
        page_size=settings.page_size,
        lists=markers.fingerprint,
        reconsider=context.reconsider,
    ):
        ids, checked, words = [], [], []
        for row in page:
            if row["taken_back"]:
                taken_back += 1
                continue
            found = list(markers.words(row["label"], row["content"])) or None
            before = row["risk_words"]
            ids.append(row["id"])
            checked.append(row["checked"])
            words.append(None if found is None else json.dumps(found))
            tagged += before is None and found is not None
            untagged += before is not None and found is None
            reworded += before is not None and found is not None and before != found
            if before != found and len(sample) < SAMPLE_SIZE:
                sample.append(str(row["id"]))
            if found is not None and before != found and len(shown) < SHOWN:
                shown.append({"memory_id": str(row["id"]), "content": row["content"][:200], "words": found})
        looked_at += len(page)
        if ids:
            await connection.execute(_WRITE, ids=ids, checked=checked, words=words)
    changed = tagged + untagged + reworded
    skipped = {
        "speaks of no risk, or already tagged so": looked_at - taken_back - changed,
        "taken back by a person": taken_back,
    }
    return StepOutcome(
        candidates=looked_at,
        changed=changed,
        skipped={reason: count for reason, count in skipped.items() if count},
        sample=tuple(sample),
        counts={"risk_nodes_tagged": tagged, "risk_nodes_untagged": untagged},
        details={"tagged": shown} if shown else {},
        reason=""
        if changed
        else "every text was already looked at with these marker lists"
        if not looked_at
        else "none of the texts looked at changed its risk",
    )


STEP = Step(NAME, tag_risk, undone=UNDONE)
