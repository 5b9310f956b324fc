"""Generates random legacy Python evaluators, in which names collide on purpose."""

from hypothesis import strategies as st

NAMES = ("output", "outputs", "inputs", "trace", "_trace", "correct_answer", "app_params", "data", "x")
KEY = "correct_answer"


@st.composite
def programs(draw: st.DrawFn) -> str:
    """Return the source of a legacy evaluator."""
    parameters = draw(
        st.permutations(NAMES).map(lambda names: names[:4]) | st.just([NAMES[6], NAMES[2], NAMES[0], KEY])
    )
    maker = _Maker(draw, list(parameters))
    head = [
        f"{name} = {draw(st.sampled_from(('3', '[1, 2]', chr(34) + 'Paris' + chr(34))))}" for name in draw(_globals)
    ]
    if draw(st.booleans()):
        arguments = ", ".join(parameters)
        return "\n".join([*head, f"evaluate = lambda {arguments}: {maker.expression(3)}"]) + "\n"
    body = maker.block(draw(st.integers(1, 4)), "    ")
    doc = ['    """Doc."""', ""] if draw(st.booleans()) else []
    return (
        "\n".join(
            [*head, "", "", f"def evaluate({', '.join(parameters)}):", *doc, *body, f"    return {maker.expression(2)}"]
        )
        + "\n"
    )


_globals = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)


class _Maker:
    """Draws random statements and expressions that use a few names."""

    def __init__(self, draw: st.DrawFn, parameters: list[str]) -> None:
        self._draw = draw
        self._parameters = parameters

    def name(self) -> str:
        """Return a random name, mostly a parameter's, because programs that use no parameters do little."""
        return self._draw(st.sampled_from((*self._parameters, *self._parameters[2:], *self._parameters[3:], *NAMES)))

    def any_name(self) -> str:
        return self._draw(st.sampled_from(NAMES))

    def expression(self, depth: int) -> str:
        if depth == 0:
            return self._draw(st.sampled_from((self.name(), self.name(), "1", '"Paris"')))
        a, b = self.expression(depth - 1), self.expression(depth - 1)
        name, other = self.any_name(), self.any_name()
        first, second, third, fourth = self._parameters
        return self._draw(
            st.sampled_from(
                (
                    f"({a} == {b})",
                    f"({a} if {b} else 0)",
                    f"len(str({a}))",
                    f"({a}, {b})[0]",
                    f"[{name} for {name} in [{a}, {b}]][-1]",
                    f"[{a} for {name} in [{b}]][0]",
                    f"(lambda {name}: {a})({b})",
                    f"(lambda {name}={a}: {b})()",
                    f'f"{{{a}}} {{{b}!r:>4}}"',
                    f"dict({name}={a})[{name!r}]",
                    f"{{{other!r}: {a}, **{{}}}}.get({other!r})",
                    f"{first}.get({name!r}, {a})",
                    f"{second}.get({name!r}, {b})",
                    f"{second}[{KEY!r}]",
                    f"str({third}).strip().lower()",
                    f"str({fourth})[:3]",
                    f"({fourth} is None or {a})",
                    f"(({name} := {a}), {b})[1]",
                    f"str({a})",
                )
            )
        )

    def block(self, count: int, indent: str) -> list[str]:
        return [line for _ in range(count) for line in self.statement(indent)]

    def statement(self, indent: str) -> list[str]:
        a, name = self.expression(1), self.any_name()
        inner = f"{indent}    "
        nested = f"{indent}        "
        kind = self._draw(st.integers(0, 9))
        if kind == 0:
            return [f"{indent}{name} = {a}"]
        if kind == 1:
            return [f"{indent}if {a}:", f"{inner}{name} = {self.expression(1)}"]
        if kind == 2:
            own = self._draw(st.sampled_from([one for one in NAMES if one not in self._parameters]))
            return [f"{indent}def {own}({self.any_name()}):", f"{inner}return {self.expression(1)}"]
        if kind == 3:
            return [f"{indent}for {name} in [{a}]:", f"{inner}{self.any_name()} = {self.expression(1)}"]
        if kind == 4:
            return [f"{indent}try:", f"{inner}{name} = {a}", f"{indent}except Exception:", f"{inner}pass"]
        if kind == 5:
            return [
                f"{indent}def change():", f"{inner}nonlocal {self._parameters[2]}",
                f"{inner}{self._parameters[2]} = {a}", f"{indent}change()",
            ]  # fmt: skip
        if kind == 6:
            return [f"{indent}class Local:", f"{inner}{name} = {a}", f"{inner}other = {self.name()}"]
        if kind == 7:
            return [f"{indent}# about {name}", "", f"{indent}{self._parameters[3]} = str({self._parameters[3]})"]
        if kind == 8:
            return [f"{indent}if isinstance({self._parameters[2]}, list):", f"{inner}return evaluate({self._parameters[0]}, {self._parameters[1]}, {a}, {self.expression(0)})"]  # fmt: skip
        return [
            f"{indent}def outer({name}):",
            f"{inner}def inside():",
            f"{nested}return {a}",
            f"{inner}return inside()",
        ]
