"""The state of a task, which a scorer looks at."""

from inspect_ai.scorer.scores import TaskState as TaskState
