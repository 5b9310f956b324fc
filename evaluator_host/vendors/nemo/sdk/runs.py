"""NeMo Evaluator's class `Evaluator`, extended to run metrics in sandboxes and on a host."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from evaluator_host.sdk.execution.evaluator import Evaluator as LocalEvaluator

if TYPE_CHECKING:
    from evaluator_host.vendors.nemo.sdk.submission import Submission

_URL = "http://127.0.0.1:8710"


class Evaluator(LocalEvaluator):  # type: ignore[misc]
    """Runs metrics in this process, in sandboxes on this machine, or on a host.

    The results have the same classes in all three cases.

    Args:
      client: A backend, such as `Sandboxes(packages=["numpy==2.3.4"])`; None for this process.
      sandbox: True is the same as `client=Sandboxes()`.

    Raises:
      TypeError: both `client` and `sandbox` are given.
    """

    def __init__(self, client: Any = None, *, sandbox: bool = False) -> None:
        if sandbox and client is not None:
            raise TypeError("give client or sandbox, not both; client=Sandboxes(…) already means sandboxes")
        if sandbox:
            from evaluator_host.vendors.nemo.sdk.sandboxes import Sandboxes  # noqa: PLC0415 - few runs need this part

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
        """Store metrics and rows on a host, and start a job there.

        Args:
          metrics: A NeMo metric, or a list of them.
          dataset: Rows as objects, or the path of a file with rows.
          url: The host's address.
          key: API key from `evaluator-host keys create`; None for a host without keys.
          name: The name under which the host stores the metric; by default the metric's own name.
          config: `RunConfig` with `limit_samples`; if there is a target, a `RunConfigOnlineModel`.
          target: A `Model` that the host calls first to get the outputs; the model's key is the name of a secret on the
            host.
          prompt_template: The prompt: a string, or the messages of a chat.
          field_mapping: The name of the rows' column for each of NeMo's field names.
          packages: Exact versions of the packages that the metric imports besides the SDK.
          row_timeout_s: Time limit in seconds for scoring one row.

        Raises:
          NoSource: the code of a metric cannot be sent to a host.
          HostError: the host refuses the job, or cannot be reached.
        """
        from evaluator_host.vendors.nemo.sdk.submission import submit  # noqa: PLC0415 - few runs need httpx

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
