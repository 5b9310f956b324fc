"""Interfaces for evaluators that may use models or the network: environment variables, a gate for each row, meters."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from evaluator_host.engine.sandbox.base import Gate
from evaluator_host.types.evaluator import Evaluator, Json, ModelBudget, Replay
from evaluator_host.types.outcome import EvaluationError, ModelUsage

GRANTED: Final = "grant://"  # prefix of the URL with which a row's request to the host names a granted model
PLACEHOLDER: Final = "evaluator-host"
_ADDRESS: Final = "http://{address}"
_FOR_MODELS: Final[Mapping[str, str]] = {
    "OPENAI_BASE_URL": f"{_ADDRESS}/v1",
    "OPENAI_API_BASE": f"{_ADDRESS}/v1",  # read by litellm and LangChain
    "OPENAI_API_KEY": PLACEHOLDER,
    # without this, the package openai would contact Azure, because Azure's variables are set too
    "OPENAI_API_TYPE": "openai",
    "AZURE_OPENAI_ENDPOINT": _ADDRESS,
    "AZURE_OPENAI_API_KEY": PLACEHOLDER,
    "AZURE_API_BASE": _ADDRESS,  # read by litellm
    "AZURE_API_KEY": PLACEHOLDER,
    "ANTHROPIC_BASE_URL": _ADDRESS,
    "ANTHROPIC_API_BASE": _ADDRESS,  # read by litellm
    "ANTHROPIC_API_URL": _ADDRESS,  # read by LangChain
    "ANTHROPIC_API_KEY": PLACEHOLDER,
    "GROQ_BASE_URL": _ADDRESS,
    "GROQ_API_BASE": _ADDRESS,  # read by LangChain
    "GROQ_API_KEY": PLACEHOLDER,
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # keeps litellm from fetching prices when it is imported
    "NO_PROXY": "127.0.0.1,localhost",
}
_PROXIES: Final = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


def environment_of(evaluator: Evaluator) -> dict[str, str]:
    """Return environment variables that make clients of models and HTTP connect to the runner.

    The runner replaces `{address}` in them with its address.
    """
    found = dict(_FOR_MODELS) if evaluator.models else {}
    if evaluator.network:
        direct = "127.0.0.1,localhost" if evaluator.models else ""
        found |= dict.fromkeys(_PROXIES, _ADDRESS) | {"NO_PROXY": direct, "no_proxy": direct}
    return found


@dataclass(frozen=True, slots=True)
class RequestUse:
    """Tokens and cost of one request."""

    input_tokens: int = 0  # number of tokens in the request
    output_tokens: int = 0  # number of tokens in the answer
    cost: float | None = 0.0  # None if the model has no price
    estimated: bool = False  # whether the tokens are estimated, because the provider reported none
    replayed: bool = False  # whether a recorded answer was used instead of the model


class Meter:
    """Adds up what requests use, and compares the sums with a budget.

    Args:
      budget: The limits of use.
      whose: Whose budget it is, in words for messages: `the row`, `the job`, `the workspace today`.
    """

    def __init__(self, budget: ModelBudget, whose: str) -> None:
        self.budget = budget
        self.whose = whose
        self.requests = 0
        self.replayed = ModelUsage()  # use of recorded answers, which no budget limits
        self.input_tokens = 0
        self.output_tokens = 0
        self.estimated = 0
        self.cost: float | None = 0.0

    def refusal(self, *, priced: bool) -> str | None:
        """Return why one more request may not be made, or None; `priced` says whether the model has a price."""
        budget, tokens = self.budget, self.input_tokens + self.output_tokens
        if budget.requests is not None and self.requests >= budget.requests:
            return self.too_many(budget.requests)
        if budget.tokens is not None and tokens >= budget.tokens:
            return f"{self.whose} may use at most {budget.tokens} tokens of models, but has used {tokens}"
        if budget.cost is not None and not priced:
            return (
                f"{self.whose} may cost at most {budget.cost:g}, but the model has no price, so its cost cannot be "
                "counted"
            )
        if budget.cost is not None and (self.cost or 0.0) >= budget.cost:
            return f"{self.whose} may cost at most {budget.cost:g}, but has cost {self.cost:g}"
        return None

    def too_many(self, most: int) -> str:
        """Return the message for a request that is refused because at most `most` requests are allowed."""
        return f"{self.whose} may call models at most {most} times"

    def begin(self) -> None:
        """Count a request that is about to be made."""
        self.requests += 1

    def continue_from(self, used: ModelUsage) -> None:
        """Count what was used before, such as by earlier runs of a job."""
        self.requests += used.requests
        self.add(RequestUse(used.input_tokens, used.output_tokens, used.cost))

    def undo(self) -> None:
        """Stop counting a request, because it is not sent after all."""
        self.requests -= 1

    def add(self, used: RequestUse) -> None:
        """Count what a finished request used.

        A request with a recorded answer counts as `replayed`, and needs no `begin` before.
        """
        if used.replayed:
            self.replayed += ModelUsage(
                replayed=1,
                replayed_input_tokens=used.input_tokens,
                replayed_output_tokens=used.output_tokens,
                replayed_cost=used.cost,
            )
            return
        self.input_tokens += used.input_tokens
        self.output_tokens += used.output_tokens
        self.estimated += used.estimated
        self.cost = None if self.cost is None or used.cost is None else self.cost + used.cost

    def usage(self, wait_s: float) -> ModelUsage:
        """Return what all requests used together; `wait_s` is how long rows waited for answers."""
        return self.replayed + ModelUsage(
            requests=self.requests,
            input_tokens=self.input_tokens,
            output_tokens=self.output_tokens,
            cost=None if self.cost is None else round(self.cost, 9),
            wait_ms=round(wait_s * 1000, 3),
            estimated=self.estimated,
        )


@dataclass(frozen=True, slots=True)
class ModelTerms:
    """How rows of one call or job may use models: whether answers are recorded, and the job's budget."""

    replay: Replay = Replay.OFF  # whether answers are recorded and reused
    meter: Meter | None = None  # the job's meter; None for a single call or a batch


NO_TERMS: Final = ModelTerms()


class RowGate(Gate, Protocol):
    """Serves one row's requests to granted models and hosts, and reports what the row used and why it failed."""

    def tell_waits(self, on_wait: Callable[[bool], None], resume: Callable[[], Awaitable[None]]) -> None:
        """From now on, report when the row waits for an answer.

        Args:
          on_wait: Called with True when the row begins to wait, and with False when the row goes on or has ended.
          resume: Awaited before a waiting row gets its answer; it may take time until there is room to run the row
            again.
        """
        ...

    @property
    def usage(self) -> ModelUsage:
        """Return the row's use of models so far."""
        ...

    async def ask(self, model: str, request: dict[str, Json]) -> dict[str, Json]:
        """Send an OpenAI chat request to a granted model; return `{"response"}` or `{"error", "status"}`."""
        ...

    @property
    def problem(self) -> EvaluationError | None:
        """Return why the row fails even if its code returned a result: no budget left, or no recorded answer."""
        ...


class ModelGrant(Protocol):
    """The models and hosts that an evaluator may use, looked up for one call or a part of a job."""

    def gate(self) -> RowGate:
        """Return a new gate, which serves the requests of one row."""
        ...
