// Writes the types of requests and responses of `/v1`, for the pages and the TypeScript client, from the host's OpenAPI document on stdin.
// `make types` runs it. With --check, as in `make check`, it writes nothing and fails when the file is stale.
import { readFile, writeFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import openapiTS, { astToString } from "openapi-typescript";

const FILE = new URL("../../../clients/typescript/src/schema.ts", import.meta.url); // the pages take their types from the client
const HEADER = "// Generated from the host's OpenAPI document by `make types`; do not edit.\n\n";
const REFERENCE = /#\/components\/schemas\/(\w+)/g;
// fields that are left out, because rewording a docstring does not change a type
const PROSE = ["title", "description", "examples", "default"];

/** The schemas of requests and responses of `/v1`, by name, and the names of schemas that only responses have. */
function schemasOfV1({ paths, components }) {
  const routes = Object.entries(paths).filter(([path]) => path.startsWith("/v1/")).flatMap(([, methods]) => Object.values(methods));
  const sent = reachable(routes.map(({ parameters, requestBody }) => [parameters, requestBody]), components.schemas);
  const answered = reachable(routes.map(({ responses }) => responses), components.schemas);
  return {
    schemas: Object.fromEntries([...sent, ...answered].map((name) => [name, components.schemas[name]])),
    onlyAnswered: answered.difference(sent),
  };
}

function reachable(part, schemas, found = new Set()) {
  for (const [, name] of JSON.stringify(part).matchAll(REFERENCE)) {
    if (!found.has(name)) reachable(schemas[name], schemas, found.add(name));
  }
  return found;
}

/** A schema reduced to its type. A response has every field, even one with a default. */
function typed(schema, everyField) {
  const { properties, ...rest } = Object.fromEntries(Object.entries(schema).filter(([key]) => !PROSE.includes(key)));
  for (const key of ["items", "additionalProperties"]) if (typeof rest[key] === "object") rest[key] = typed(rest[key], everyField);
  for (const key of ["anyOf", "allOf", "oneOf", "prefixItems"]) if (key in rest) rest[key] = rest[key].map((one) => typed(one, everyField));
  if (properties === undefined) return rest;
  const fields = Object.entries(properties).map(([name, field]) => [name, typed(field, everyField)]);
  return { ...rest, properties: Object.fromEntries(fields), ...(everyField && { required: Object.keys(properties) }) };
}

/** FastAPI puts the module before a class name that two modules have: `a__b__JobIn`. In `/v1` the class name alone is unique. */
function shortName(name) {
  return name.split("__").at(-1);
}

async function generated(document) {
  const { schemas, onlyAnswered } = schemasOfV1(document);
  const named = {};
  for (const [name, schema] of Object.entries(schemas)) {
    if (shortName(name) in named) throw new Error(`/v1 has two schemas named ${shortName(name)}: rename one of the classes`);
    named[shortName(name)] = typed(schema, onlyAnswered.has(name));
  }
  const short = JSON.stringify(named).replace(REFERENCE, (_, name) => `#/components/schemas/${shortName(name)}`);
  const part = { openapi: "3.1.0", info: { title: "", version: "" }, paths: {}, components: { schemas: JSON.parse(short) } };
  return HEADER + astToString(await openapiTS(part, { alphabetize: true, silent: true }));
}

const wanted = await generated(JSON.parse(await text(process.stdin)));
if (!process.argv.includes("--check")) {
  await writeFile(FILE, wanted);
} else if ((await readFile(FILE, "utf8").catch(() => "")) !== wanted) {
  console.error(`The API has changed, and ${FILE.pathname} has not: run \`make types\`, and commit what it writes.`);
  process.exitCode = 1;
}
