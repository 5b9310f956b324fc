"""Generates random legacy JavaScript evaluators, in which names collide on purpose.

No program compares the ground truth with the same column of the inputs, because the two are equal objects in legacy
code, but the same object in new code.
"""

from hypothesis import strategies as st

NAMES = ("output", "outputs", "inputs", "trace", "correctAnswer", "appParams", "data")
KEY = "correct_answer"


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Return the source of a legacy evaluator."""
    usual = ["appParams", "inputs", "output", "correctAnswer"]
    parameters = draw(st.permutations(NAMES).map(lambda names: list(names[:4])) | st.just(usual))
    maker = _Maker(draw, parameters)
    listing = ", ".join(parameters)
    shape = draw(st.integers(0, 3))
    if shape == 0:
        return f"const evaluate = ({listing}) => {maker.expression(2)};\n"
    body = "".join(f"  {line}\n" for _ in range(draw(st.integers(1, 3))) for line in maker.statement())
    body += f"  return {maker.expression(2)};\n"
    head = f"const evaluate = function ({listing})" if shape == 1 else f"function evaluate({listing})"
    return f"{head} {{\n{body}}}{';' if shape == 1 else ''}\n"


class _Maker:
    """Draws random statements and expressions that use a few names."""

    def __init__(self, draw: st.DrawFn, parameters: list[str]) -> None:
        self._draw = draw
        self._parameters = parameters

    def name(self) -> str:
        """Return a random name, mostly a parameter's, because programs that use no parameters do little."""
        return self._draw(st.sampled_from((*self._parameters, *self._parameters[2:], *self._parameters[2:])))

    def expression(self, depth: int) -> str:
        if depth == 0:
            return self._draw(st.sampled_from((self.name(), self.name(), "1", "'Paris'")))
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        any_ = self._draw(st.sampled_from(NAMES))
        first, second, third, fourth = self._parameters
        return self._draw(
            st.sampled_from(
                (
                    f"({a} === {b})",
                    f"({a} ? {b} : 0)",
                    f"String({a}).length",
                    f"[{a}, {b}].map(({any_}) => {any_})[0]",
                    f"[{b}].map(({any_}) => {a})[0]",
                    f"(function ({any_}) {{ return {a}; }})({b})",
                    f"(({{ {any_} = {a} }}) => {b})({{}})",
                    f"({{ {any_}: {a}, x: {b} }}).{any_}",
                    f"JSON.stringify({{ {third}, {fourth} }})",
                    f"`${{{a}}}|${{{b}}}`.length",
                    f"({first}.limit ?? {a})",
                    f"({first}['limit'] || {a})",
                    f"({second}.data ?? {b})",
                    f"String({third}).trim()",
                    f"(typeof {fourth} === 'string' ? {a} : {b})",
                )
            )
        )

    def statement(self) -> list[str]:
        a, b, name = self.expression(1), self.expression(1), self._draw(st.sampled_from(NAMES))
        third, fourth = self._parameters[2:]
        return self._draw(
            st.sampled_from(
                (
                    [f"{third} = {a};"],
                    [f"{fourth} = String({fourth});"],
                    [f"if ({a}) {{", f"  const {name} = {b};", f"  if ({name} === {self.name()}) return {name};", "}"],
                    [f"for (const {name} of [{a}]) {{", f"  {third} = [{b}, {name}];", "}"],
                    [f"function own({name}) {{", f"  return {b};", "}", f"if (own({a}) === 1) return own(2);"],
                    ["try {", f"  throw {a};", f"}} catch ({name}) {{", f"  if ({b} === {name}) return 'caught';", "}"],
                    [f"({{ x: {third} = {a} }} = {{}});"],
                    [f"{{ var hidden = {a}; }}", f"if (hidden === {b}) return hidden;"],
                    [
                        f"if (Array.isArray({third})) return evaluate({', '.join(self._parameters[:2])}, {third}[0], {a});"
                    ],
                )
            )
        )
