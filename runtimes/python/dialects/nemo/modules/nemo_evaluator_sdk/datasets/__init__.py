"""Reads data sets."""

from .loader import DatasetLoadError, load_dataset_as_dicts

__all__ = ["DatasetLoadError", "load_dataset_as_dicts"]
