"""The state of a task, which scorers read."""

from inspect_ai.scorer.scores import TaskState as TaskState
