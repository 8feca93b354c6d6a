"""Which step gets the next free worker."""

import asyncio

from probelib.runner.steps import FreeWorkers


def test_steps_that_wait_get_a_worker_by_rank_and_not_by_arrival():
    async def run() -> list[str]:
        workers, got = FreeWorkers(["first", "second"]), []

        async def step(name: str, rank: int) -> None:
            got.append(f"{name}: {await workers.take(rank)}")

        async with asyncio.TaskGroup() as group:
            for name, rank in (("a", 0), ("b", 1), ("d", 3), ("c", 2)):
                group.create_task(step(name, rank))
            while len(got) < 2:
                await asyncio.sleep(0)
            workers.give_back("second")
            workers.give_back("first")
        workers.give_back("first")
        workers.give_back("second")
        return [*got, await workers.take(4)]

    assert asyncio.run(run()) == ["a: first", "b: second", "c: second", "d: first", "second"]  # the last one that ran
