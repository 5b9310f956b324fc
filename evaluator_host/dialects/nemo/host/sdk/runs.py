"""The way in of NeMo Evaluator, and what it lacks: metrics in sandboxes, and on a host."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evaluator_host.sdk.execution.evaluator import Evaluator as LocalEvaluator

if TYPE_CHECKING:
    from evaluator_host.dialects.nemo.host.sdk.submission import Submission

_URL = "http://127.0.0.1:8710"


class Evaluator(LocalEvaluator):  # type: ignore[misc]
    """Runs metrics: in this process, in sandboxes of this machine, or on a host. Results are of the same classes.

    Args:
      client: A backend, such as `Sandboxes(packages=["numpy==2.3.4"])`; None for this process.
      sandbox: As `client=Sandboxes()`.
    """

    def __init__(self, client: Any = None, *, sandbox: bool = False) -> None:
        if sandbox and client is not None:
            raise TypeError("give client or sandbox, not both: client=Sandboxes(…) has both")
        if sandbox:
            from evaluator_host.dialects.nemo.host.sdk.sandboxes import Sandboxes  # noqa: PLC0415 - of a host, which few runs need

            client = Sandboxes()
        super().__init__(client)

    def submit(
        self,
        metrics: Any,
        dataset: Any,
        *,
        url: str = _URL,
        key: str | None = None,
        name: str | None = None,
        config: Any = None,
        target: Any = None,
        prompt_template: str | dict[str, Any] | None = None,
        field_mapping: Any = None,
        packages: Sequence[str] = (),
        row_timeout_s: float | None = None,
    ) -> "Submission":
        """Keep a metric (or several) and rows on a host, and start a job there.

        Args:
          metrics: One, or a list.
          dataset: Rows, or a file of them.
          url: Of the host.
          key: From `evaluator-host keys create`, for a host that wants one.
          name: Under which the host keeps them; by default the metric's own.
          config: `limit_samples`; with a target its `RunConfigOnlineModel`.
          target: A `Model` that the host has make the outputs first; its key is a secret there.
          prompt_template: What it is asked.
          field_mapping: Which column is which field.
          packages: Exact pins of what the metric imports besides the SDK.
          row_timeout_s: For the scores of a row.

        Raises:
          NoSource: a metric cannot be sent anywhere.
          HostError: the host cannot take it.
        """
        from evaluator_host.dialects.nemo.host.sdk.submission import submit  # noqa: PLC0415 - httpx, which few runs need

        return submit(
            metrics,
            dataset,
            url=url,
            key=key,
            name=name,
            config=config,
            target=target,
            prompt_template=prompt_template,
            field_mapping=field_mapping,
            packages=packages,
            row_timeout_s=row_timeout_s,
        )
