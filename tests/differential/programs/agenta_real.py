"""Runs the cases with the handler in Agenta's package. Usage: agenta_real.py FOUND."""

import asyncio
import json
import os
import sys
import warnings

os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "AGENTA_SERVICES_CODE_SANDBOX_RUNNER": "local"}
warnings.simplefilter("ignore")
import agenta_cases  # noqa: E402
from agenta.sdk.engines.running.handlers import auto_custom_code_run_v0 as handler  # noqa: E402

run = getattr(handler, "__wrapped__", handler)


async def main():
    made = {}
    for name, (code, version, inputs, outputs) in agenta_cases.cases().items():
        parameters = {"code": code, "version": version}
        try:
            made[name] = {"value": await run(parameters, inputs, outputs, agenta_cases.TRACE)}
        except Exception as error:
            made[name] = {"error": f"{type(error).__name__}: {error}"}
    with open(sys.argv[1], "w") as file:
        json.dump(made, file)
    sys.stdout.flush()
    os._exit(0)  # this ends the process at once, because threads of the package are slow to end


asyncio.run(main())
