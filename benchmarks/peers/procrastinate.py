"""procrastinate, in its own environment: one worker drains jobs that do nothing."""

import asyncio
import os

from procrastinate import App, PsycopgConnector

from benchmarks.peers.pipe import serve

app = App(connector=PsycopgConnector(conninfo=os.environ["PEER_DATABASE"]))


@app.task
async def nothing() -> None:
    pass


async def prepare() -> None:
    async with app.open_async():
        await app.schema_manager.apply_schema_async()


async def _give(many: int) -> None:
    async with app.open_async():
        await nothing.batch_defer_async(*({} for _ in range(many)))


async def _drain() -> None:
    async with app.open_async():
        await app.run_worker_async(wait=False, concurrency=1, install_signal_handlers=False)


def give(many: int) -> None:
    asyncio.run(_give(many))


def drain() -> None:
    asyncio.run(_drain())


def main() -> None:
    asyncio.run(prepare())
    serve(give=give, drain=drain)
