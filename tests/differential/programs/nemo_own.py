"""Runs the cases with `evaluator_host.sdk`: in this process, in sandboxes, on a host. Usage: nemo_own.py MODEL HOST
FOUND.
"""

import asyncio
import json
import logging
import sys
from concurrent.futures import ThreadPoolExecutor

import nemo_cases
from nemo_dump import dumped, dumped_soon

from evaluator_host.sdk import Evaluator, Sandboxes

logging.disable(50)
model, host, found = sys.argv[1:]
# packages that cases need and this process does not have
NEEDS_PACKAGES = {"bleu": ["sacrebleu==2.5.1"], "rouge": ["rouge-score==0.0.4"]}


async def in_sandboxes():
    async with Sandboxes() as sandboxes:
        return {
            name: await dumped_soon(Evaluator(client=sandboxes).run(**given))
            for name, given in nemo_cases.cases(model).items()
        }


def submitted(given):
    options = {name: value for name, value in given.items() if name != "aggregate_fields"}
    return dumped(lambda: Evaluator().submit(**options, url=host).get_result())


def on_a_host():
    cases = nemo_cases.cases(model)
    with ThreadPoolExecutor(8) as pool:
        return dict(zip(cases, pool.map(submitted, cases.values()), strict=True))


made = {
    "sdk": {
        name: dumped(lambda: Evaluator().run_sync(**given))
        for name, given in nemo_cases.cases(model).items()
        if name not in NEEDS_PACKAGES
    },
    "sandbox": asyncio.run(in_sandboxes()),
    "submit": on_a_host(),
}
with open(found, "w") as file:
    json.dump(made, file)
