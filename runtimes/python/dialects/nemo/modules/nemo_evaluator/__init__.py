"""Makes metrics importable from `nemo_evaluator.scoring`. All other names in `nemo_evaluator` need the real package."""

__pin__ = "nemo-evaluator==0.2.8"
