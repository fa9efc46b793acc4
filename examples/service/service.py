"""A service that shows rankings, logs them, and takes clicks: python service.py --log log --port 8000."""

from __future__ import annotations

import argparse
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypedDict

import shop
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from foretest.serving import LogWriter, Sampler

SAMPLER = Sampler({"policy": "plackett-luce", "temperature": shop.TEMPERATURE}, slots=shop.SLOTS, seed=shop.SEED)


class Writers(TypedDict):
    """What every request finds in its state."""

    displays: LogWriter
    clicks: LogWriter


async def ranking(request: Request) -> Response:
    """GET /ranking?request=r-1&user=7: a ranking for a user. The gateway names each request, and that is its key."""
    user = int(request.query_params["user"])
    draw = SAMPLER.draw(shop.old_scores(user), shop.candidates(user), key=request.query_params["request"])
    row = {**draw.row, "user": user, "time": datetime.now(UTC), "new_scores": shop.new_scores(user)}
    request.state.displays.write(row)
    return JSONResponse({"id": row["id"], "ranking": draw.ranking})


async def click(request: Request) -> Response:
    """POST /click {"id": "r-1", "item": "tea"}: a click on an item of a display."""
    body = await request.json()
    request.state.clicks.write({"id": body["id"], "item": body["item"], "time": datetime.now(UTC)})
    return Response(status_code=204)


def application(log: Path, file_seconds: float) -> Starlette:
    """The service, which writes to two folders of `log`."""

    @asynccontextmanager
    async def writers(app: Starlette) -> AsyncIterator[Writers]:
        with (
            LogWriter(log / "displays", file_seconds=file_seconds) as displays,
            LogWriter(log / "clicks", file_seconds=file_seconds) as clicks,
        ):
            yield {"displays": displays, "clicks": clicks}  # both are closed when the server stops, also by SIGTERM

    return Starlette(routes=[Route("/ranking", ranking), Route("/click", click, methods=["POST"])], lifespan=writers)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log", type=Path, default=Path("log"))
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--file-seconds", type=float, default=60.0)
    options = parser.parse_args()
    uvicorn.run(
        application(options.log, options.file_seconds), host="127.0.0.1", port=options.port, log_level="warning"
    )


if __name__ == "__main__":
    main()
