"""Sets a Prefect server up for Slowwave: what prefect.yaml cannot declare. Running it again changes nothing.

python -m deployments.bootstrap              on the server that PREFECT_API_URL names
"""

from __future__ import annotations

import asyncio
import os
import sys

from memory_core.errors import SetupError, SlowwaveError
from memory_core.settings import Settings
from tasks.limits import apply_limits, model_limits


async def bootstrap(settings: Settings) -> list[str]:
    """Bring the limits of model calls to what the settings say; returns a line for each thing that there now is.

    Raises:
        SetupError: the server does not answer.
    """
    from prefect import get_client

    limits = model_limits(settings)
    async with get_client() as client:
        if await client.api_healthcheck() is not None:
            raise SetupError(
                f"No Prefect server answers at {os.environ.get('PREFECT_API_URL')}.",
                hint="Start it with python -m deployments.server, and set PREFECT_API_URL.",
            )
        await apply_limits(client, limits)
    if not limits:
        return ["no limit of model calls: neither requests nor tokens a minute are limited"]
    return [
        f"limit {each.name}: {each.limit} slots, {each.slot_decay_per_second:g} of them free again each second"
        for each in limits
    ]


def main() -> int:
    """Set the server up and say what there is; 1 where that is not possible."""
    if not os.environ.get("PREFECT_API_URL"):
        sys.stderr.write("error: PREFECT_API_URL names no server.\n")
        return 1
    try:
        lines = asyncio.run(bootstrap(Settings.load()))
    except SlowwaveError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    sys.stdout.writelines(f"{line}\n" for line in lines)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
