"""Checks that the configuration of a run fits the kind of run."""

from __future__ import annotations

from ..values.models import Model
from ..values.params import RunConfig, RunConfigOnline, RunConfigOnlineModel


def resolve_params(params: RunConfig | None = None, target: object = None) -> RunConfig:
    """Return the configuration of a run; first check that the configuration fits the target.

    Raises:
      TypeError: `params` is for another kind of run.
    """
    if isinstance(target, Model):
        if type(params) is RunConfigOnline:
            return RunConfigOnlineModel.model_validate(params.model_dump())
        if not isinstance(params, RunConfigOnlineModel):
            raise TypeError("model target requires RunConfigOnlineModel")
        return params
    if target is not None and type(params) is not RunConfigOnline:
        raise TypeError("agent target requires RunConfigOnline")
    if target is None and params is not None and type(params) is not RunConfig:
        raise TypeError("offline evaluation requires RunConfig")
    return params or RunConfig()
