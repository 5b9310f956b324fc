"""The import path `nemo_evaluator.scoring` of NeMo Evaluator's metrics; everything else needs the package."""

__pin__ = "nemo-evaluator==0.2.8"
