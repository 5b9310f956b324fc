"""Light modules that replace `mlflow` (as in release 3.17.2): scorers, and their feedback."""

from mlflow import entities as entities
from mlflow import exceptions as exceptions
from mlflow import genai as genai

__pin__ = "mlflow==3.17.2"
__version__ = "3.17.2"
