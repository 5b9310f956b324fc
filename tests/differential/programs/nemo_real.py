"""Runs the cases with the real package, and with NVIDIA's client on a host. Usage: nemo_real.py MODEL HOST FOUND."""

import json
import logging
import os
import sys
import warnings

import cloudpickle
import nemo_cases
from nemo_dump import dumped
from nemo_evaluator.shared.metric_bundles.cloudpickle import CloudpickleMetricBundlePackager
from nemo_evaluator_sdk import Evaluator
from nemo_platform import NeMoPlatform

logging.disable(50)
warnings.simplefilter("ignore")
cloudpickle.register_pickle_by_value(nemo_cases)
model, host, found = sys.argv[1:]
client = NeMoPlatform(base_url=host, workspace="default")


def submitted(given):
    options = {name: value for name, value in given.items() if name not in ("metrics", "aggregate_fields")}
    metric = given["metrics"]
    packager = CloudpickleMetricBundlePackager()
    own = type(metric).__module__ == "nemo_cases"
    return client.evaluator.submit(metric=metric, **({"metric_bundle_packager": packager} if own else {}), **options)


def waited(job):
    job.wait_until_done(poll_interval_seconds=0.2)
    return job.get_result()


jobs, made = {}, {}
for name, given in nemo_cases.cases(model).items():
    if isinstance(given["metrics"], list):
        continue  # skipped: the client submits one metric only
    try:
        jobs[name] = submitted(given)
    except Exception as error:
        jobs[name] = error
made["real"] = {name: dumped(lambda: Evaluator().run_sync(**given)) for name, given in nemo_cases.cases(model).items()}


def result_of(job):
    if isinstance(job, Exception):
        raise job
    return waited(job)


made["client"] = {name: dumped(lambda: result_of(job)) for name, job in jobs.items()}
with open(found, "w") as file:
    json.dump(made, file)
sys.stdout.flush()
os._exit(0)  # this ends the process at once, because threads of the package are slow to end
