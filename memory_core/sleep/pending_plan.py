"""Decides what becomes of each pending connection: pure, over what the phase has read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from uuid import UUID

from memory_core.scope import TenantScope
from memory_core.sleep.pending_given import is_pending

ALREADY_CONSUMED = "already consumed"
MALFORMED = "malformed"
REPEATED = "given more than once"
TAKEN_BACK = "taken back by a person"
DETAILS_SHOWN = 20

Row = Mapping[str, Any]


def fault_of(row: Row, name: str | None) -> str | None:
    """Why the connection cannot become an edge at all; None where it can.

    Args:
        row: the connection with what its ends were found to be.
        name: its relationship's name; None where that cannot be one.
    """
    if not is_pending(row["status"]):
        return "not_pending"
    if name is None:
        return "bad_relationship"
    if row["source"] == row["target"]:
        return "self"
    if row["source_id"] is None or row["target_id"] is None:
        return "missing"
    if max(row["source_matches"], row["target_matches"]) > 1:
        return "ambiguous"
    if not (row["source_current"] and row["target_current"]):
        return "not_current"
    if row["source_derived"] or row["target_derived"]:
        return "derived"
    if not row["source_own"]:
        return "foreign"
    return "self" if row["source_id"] == row["target_id"] else None


class PendingPlan:
    """What the phase is about to write, and what it leaves alone.

    Args:
        scope: whose edges they are.
        generic: names of relationships that confirm whatever edge two memories have.

    Attributes:
        written: new edges' ids by source, target and relationship.
        confirmed: edges that get one more piece of evidence, with the memory that the connection starts from.
        consumed: the connections whose outcome is new: id, outcome, reason.
        skipped: how many connections were left alone, by reason.
        rejected: up to twenty of them, for people to read.
    """

    def __init__(self, scope: TenantScope, generic: Collection[str]) -> None:
        self.written: dict[tuple[UUID, UUID, str], UUID] = {}
        self.confirmed: dict[UUID, UUID] = {}
        self.consumed: list[dict[str, str | None]] = []
        self.skipped: Counter[str] = Counter()
        self.rejected: list[dict[str, str]] = []
        self._scope = scope
        self._generic = generic
        self._linked: set[frozenset[UUID]] = set()

    def consume(self, row: Row, outcome: str, reason: str | None = None) -> None:
        """Use the connection up; one that was rejected before for the same reason stays as it is."""
        if reason is not None:
            self.skipped[reason] += 1
        if outcome == "rejected" and len(self.rejected) < DETAILS_SHOWN:
            said = {name: row[name] for name in ("source", "relationship", "target")}
            self.rejected.append({**said, "reason": str(reason)})
        if not (row["consumed"] and (row["outcome"], row["reason"]) == (outcome, reason)):
            self.consumed.append({"id": str(row["id"]), "outcome": outcome, "reason": reason})

    def decide(
        self,
        usable: Sequence[tuple[Row, str]],
        between: Mapping[frozenset[UUID], Sequence[Row]],
        undone: Collection[UUID],
    ) -> None:
        """Write or confirm; typed relationships first, so that a generic one finds what the typed ones made.

        Args:
            usable: connections without a fault, with their relationships' names, oldest first.
            between: the edges of each pair of ends, either way round, the likeliest first.
            undone: connections whose edge a person took back.
        """
        for row, name in sorted(usable, key=lambda item: item[1] in self._generic):
            source, target = row["source_id"], row["target_id"]
            pair = frozenset((source, target))
            generic = name in self._generic
            known = between.get(pair, ())
            same = [edge for edge in known if (edge["source_id"], edge["relationship"]) == (source, name)]
            # The exact triple decides; only a generic connection looks at the pair's other edges.
            edge = next(iter(same or [edge for edge in known if generic and edge["status"] != "retired"]), None)
            if edge is not None and edge["status"] == "retired":
                self.consume(row, "rejected", "retired_edge")
            elif edge["undone"] if edge is not None else row["id"] in undone:
                self.skipped[TAKEN_BACK] += 1  # it keeps waiting, for the day a run is asked to reconsider
            elif edge is not None:
                self.consume(row, "confirmed", REPEATED if edge["id"] in self.confirmed else None)
                self.confirmed.setdefault(edge["id"], source)
            elif (source, target, name) in self.written or (generic and pair in self._linked):
                self.consume(row, "written", REPEATED)
            else:
                self.consume(row, "written")
                self.written[source, target, name] = self._scope.derived_id("edge", str(source), str(target), name)
                self._linked.add(pair)
