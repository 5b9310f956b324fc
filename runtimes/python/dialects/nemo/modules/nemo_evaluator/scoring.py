"""The names of `nemo_evaluator_sdk`, under the import path that NeMo Evaluator's own repository uses."""

import nemo_evaluator_sdk


def __getattr__(name):
    return getattr(nemo_evaluator_sdk, name)
