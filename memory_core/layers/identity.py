"""Ids and hashes of memories: made from what they say, so that the same import gives the same rows in any store."""

from __future__ import annotations

import hashlib
import unicodedata
import uuid
from datetime import datetime

from memory_core.scope import TenantScope


def content_hash(*parts: str | None) -> str:
    """sha256 in hexadecimal over parts, each in NFC and prefixed by its length in bytes; None differs from empty."""
    digest = hashlib.sha256()
    for part in parts:
        if part is None:
            digest.update(b"-;")
        else:
            data = unicodedata.normalize("NFC", part).encode()
            digest.update(b"%d:%s" % (len(data), data))
    return digest.hexdigest()


def memory_id(
    scope: TenantScope, external_id: str | None, hash_of_content: str, observed_at: datetime, recorded_at: datetime
) -> uuid.UUID:
    """The id of a memory: a UUID in the version 7 layout whose random bits are not random.

    48 bits are the milliseconds of `recorded_at`, so that ids sort by time; 74 bits come from sha256 over the scope
    path, the external id, the content hash and `observed_at`. So the same dated file gives the same ids in any store.
    """
    seed = content_hash(scope.scope_path, external_id, hash_of_content, observed_at.isoformat()).encode()
    bits = int.from_bytes(hashlib.sha256(b"memory id;" + seed).digest()[:10], "big")
    milliseconds = min(max(0, int(recorded_at.timestamp() * 1000)), 2**48 - 1)
    value = milliseconds << 80 | 0x7 << 76 | (bits >> 62 & 0xFFF) << 64 | 0b10 << 62 | bits & (2**62 - 1)
    return uuid.UUID(int=value)
