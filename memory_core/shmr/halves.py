"""Splits a cluster in two where a model would not answer about the whole: half as much text, and no slot torn apart."""

from __future__ import annotations

from memory_core.shmr.stored import StoredCluster

FEWEST_MEMBERS = 2
"""A half needs as many: one statement alone has nothing to be reconciled with."""


def halves(cluster: StoredCluster) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The positions of the members in two halves as even as may be, each in the members' order.

    Members of one slot (same subject and predicate) stay together, unless the cluster is one slot; then the earlier
    statements are one half. None where a half would be too small.
    """
    groups: dict[tuple[str, str], list[int]] = {}
    for position, slot in enumerate(cluster.slots):
        key = (slot.subject, slot.predicate) if slot is not None else ("", "")
        groups.setdefault(key, []).append(position)
    if len(groups) == 1:
        by_time = sorted(range(len(cluster.members)), key=lambda i: (cluster.members[i].observed_at, i))
        middle = len(by_time) // 2
        first, second = by_time[:middle], by_time[middle:]
    else:
        first, second = [], []
        for _, positions in sorted(groups.items(), key=lambda item: (-len(item[1]), item[0])):
            (first if len(first) <= len(second) else second).extend(positions)
    if min(len(first), len(second)) < FEWEST_MEMBERS:
        return None
    return tuple(sorted(first)), tuple(sorted(second))
