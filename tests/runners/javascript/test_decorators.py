"""TypeScript decorators follow the rules of the author's compiler. If it is not certain which rules these are, there is
a warning.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runners.conftest import RunnerProcess, body

ENTRY = "\nexport function evaluate(inputs: any, outputs: any, trace: any) { return %s; }"
LEGACY = '{"compilerOptions": {"experimentalDecorators": true}}'
FIELDS = "const fields: string[] = [];\n"
FIELD = (
    FIELDS
    + "function Field(label: string) { return (target: any, key: string) => { fields.push(key) } }\nclass Out { @Field('x') answer = '' }"
)
VAGUE = "const seen: any[] = [];\nfunction Seen(a: any, b: any) { seen.push(b) }\nclass A { @Seen x = 1 }"


@pytest.fixture(name="loaded")
def loaded_fixture(start: Callable[..., RunnerProcess]) -> Callable[..., Any]:
    def load(code: str, result: str = "1", files: dict[str, str] | None = None, **header: Any) -> Any:
        runner = start()
        more = {} if files is None else {"files": files}
        return runner, runner.load(code + ENTRY % result, language="typescript", body=more, **header)

    return load


@pytest.mark.sampled(15)
@pytest.mark.parametrize(
    ("code", "result"),
    [
        (FIELD, "fields.includes('answer')"),
        ("function Twice(t: any, k: string, d: PropertyDescriptor) { const f = d.value; d.value = function () { return 2 * f.call(this) } }\nclass A { @Twice m() { return 1 } }", "new A().m() === 2"),
        (FIELDS + "const Min = (least: number) => (target: any, propertyKey: string) => { let held: number; Object.defineProperty(target, propertyKey, { get: () => held, set(x) { if (x < least) fields.push(propertyKey + ' is too small'); held = x } }) };\nclass A { @Min(3) size: number; constructor(size: number) { this.size = size } }", "(new A(1), fields[0] === 'size is too small')"),
        (FIELDS + "const Is = { Text() { return (proto: object, name: string) => { fields.push(name) } } };\nclass A { @Is.Text() a = 1 }", "fields[0] === 'a'"),
        (FIELDS + "class Is { static text(target: any, key: string) { fields.push(key) } }\nclass A { @Is.text a = 1 }", "fields[0] === 'a'"),
        (FIELDS + "function Owner(target: any) { fields.push(target.constructor.name) }\nclass A { @Owner a = 1 }", "fields[0] === 'A'"),
        (FIELDS + "function At(t: any, k: any, at: number) { fields.push(String(at)) }\nclass A { m(a: any, @At b: any) {} }", "fields[0] === '1'"),
        ("function make() { const out: string[] = []; const F = (o: any, k: string) => { out.push(`${k}!`) }; class A { @F a = 1 } return out }", "make()[0] === 'a!'"),
        ("function Named(f: Function, ctx: ClassMethodDecoratorContext) { return function (this: any) { return [ctx.name, f.call(this)].join() } }\nclass A { @Named m() { return 1 } }", "new A().m() === 'm,1'"),
        ("function Five(_: unknown, { kind }: ClassAccessorDecoratorContext) { return { get() { return kind } } }\nclass A { @Five accessor a: any = 1 }", "new A().a === 'accessor'"),
        ("function Next(_: undefined, context: ClassFieldDecoratorContext) { return (x: number) => x + 1 }\nclass A { @Next a = 1 }", "new A().a === 2"),
        ("let seen = '';\nfunction keep(context: any) { seen = context.name }\nfunction Kept(value: any, context: any) { keep(context) }\nclass A { @Kept m() {} }", "seen === 'm'"),
        ("function Sealed(c: any) { c.sealed = true }\n@Sealed class A {}", "(A as any).sealed === true"),
        ("let count = 0;\nfunction Both(...args: any[]) { count = args.length }\nclass A { @Both x = 1 }", "count === 2"),
    ],
)  # fmt: skip
def test_the_shape_of_decorators_says_their_rules(loaded: Callable[..., Any], code: str, result: str) -> None:
    runner, answer = loaded(code, result)
    assert (answer.type, answer.header["notes"]) == ("loaded", []), answer
    assert body(runner.call(None, None, None))["value"] is True


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("config", "code", "result"),
    [
        ({"tsconfig.json": LEGACY}, FIELD, "fields.includes('answer')"),
        ({"tsconfig.json": LEGACY}, VAGUE, "seen[0] === 'x'"),
        ({"tsconfig.json": '{ // mine\n "extends": "./base", }', "base.json": LEGACY}, VAGUE, "seen[0] === 'x'"),
        ({"tsconfig.json": '{"compilerOptions": {"paths": {"@lib/*": ["./lib/*"]}}}', "lib/one.ts": "export const one = 1"}, "import { one } from '@lib/one';", "one === 1"),
        ({"tsconfig.json": '{"compilerOptions": {"useDefineForClassFields": false}}'}, "class B { a = 1 }\nclass A extends B { a!: number }", "new A().a === 1"),
        ({"tsconfig.json": "{}"}, "function Named(_: any, { name }: any) { return () => name }\nclass A { @Named m() {} }", "(new A() as any).m() === 'm'"),
    ],
)  # fmt: skip
def test_a_configuration_that_comes_with_the_code_is_read(
    loaded: Callable[..., Any], config: dict[str, str], code: str, result: str
) -> None:
    runner, answer = loaded(code, result, config)
    assert (answer.type, answer.header["notes"]) == ("loaded", []), answer
    assert body(runner.call(None, None, None))["value"] is True


@pytest.mark.long
@pytest.mark.slow
def test_rules_that_cannot_be_told_are_a_warning_which_stays_with_the_built_code(loaded: Callable[..., Any]) -> None:
    _, answer = loaded(VAGUE)
    [note] = answer.header["notes"]
    assert (note["code"], "@Seen ran by the rules of standard decorators" in note["message"]) == (
        "standard_decorators",
        True,
    )
    _, again = loaded(VAGUE, bundle=body(answer)["bundle"])
    assert again.header["notes"] == [note]
    _, failed = loaded(VAGUE.replace("seen.push(b)", "seen.push(a.constructor, b)"))
    assert (failed.type, "tsconfig.json" in body(failed)["error"]["hint"]) == ("load_failed", True)
    _, silent = loaded(FIELD, files={"tsconfig.json": "{}"})
    assert [one["code"] for one in silent.header["notes"]] == ["standard_decorators"]


@pytest.mark.long
def test_decorators_of_a_package_are_read_where_they_are_defined(
    start: Callable[..., RunnerProcess], tmp_path: Path
) -> None:
    files = {
        "shapes/index.js": "var make_1 = require('./make'); exports.fields = []; function Shape(o) { return make_1.make(exports.fields, o); }\nexports.Shape = Shape;",
        "shapes/make.js": "exports.make = void 0; function make(into, o) { return (object, propertyName) => { into.push(propertyName); }; }\nexports.make = make;",
        "open/index.js": "const kept = {}; for (const name of ['Open']) kept[name] = () => {}; module.exports = kept;",
    }
    for path, text in files.items():
        (tmp_path / "node_modules" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "node_modules" / path).write_text(text)
    runner = start("--packages", str(tmp_path))
    code = "import { Shape, fields } from 'shapes';\nclass Make { @Shape({}) a = 1 }"
    answer = runner.load(code + ENTRY % "fields[0] === 'a'", language="typescript")
    assert (answer.type, answer.header["notes"]) == ("loaded", [])
    assert body(runner.call(None, None, None))["value"] is True
    open_one = start("--packages", str(tmp_path))
    code = "import { Open } from 'open';\nclass Make { @Open a = 1; @Open accessor b = 1 }"
    [note] = open_one.load(code + ENTRY % "1", language="typescript").header["notes"]
    assert note["message"].startswith("@Open ran by the rules of standard decorators")


def test_metadata_that_the_compiler_does_not_write_is_a_warning(loaded: Callable[..., Any]) -> None:
    base = json.dumps({"compilerOptions": {"experimentalDecorators": True, "emitDecoratorMetadata": True}})
    _, answer = loaded(FIELD, files={"tsconfig.json": '{"extends": ["./base.json"]}', "base.json": base})
    assert [one["code"] for one in answer.header["notes"]] == ["no_decorator_metadata"]
    _, without = loaded("", files={"tsconfig.json": base})
    assert without.header["notes"] == []


@pytest.mark.parametrize(
    ("code", "files", "message", "hint"),
    [
        (FIELDS + "function F(t: any, k: string) { fields.push(k + '!') }\nfunction L(v: any, { name }: any) { fields.push(name) }\nclass A { @F a = 1; @L m() {} }", None, "decorators of two kinds: @F for TypeScript's own rules (experimentalDecorators), @L for", "tsconfig.json"),
        (FIELD, {"tsconfig.json": '{"extends": "@tsconfig/node24/tsconfig.json"}'}, 'Cannot find base config file "@tsconfig/node24/tsconfig.json"', "send that file"),
        (FIELD, {"tsconfig.json": "{"}, "(tsconfig.json:1)", ""),
    ],
)  # fmt: skip
def test_a_contradiction_is_an_error(
    loaded: Callable[..., Any], code: str, files: dict[str, str] | None, message: str, hint: str
) -> None:
    _, answer = loaded(code, files=files)
    assert answer.type == "load_failed"
    error = body(answer)["error"]
    assert message in error["message"], error
    assert hint in (error["hint"] or "")
