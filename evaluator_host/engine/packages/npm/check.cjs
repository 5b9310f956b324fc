// Reads pins with npm's own libraries: returns the kind, the name and the version that npm reads from each string.
// Input on stdin: {"npm": "<npm's folder>", "specs": ["lodash@4.17.21", …]}; output: one answer per spec, in order.
"use strict";
const { createRequire } = require("node:module");
const { readFileSync } = require("node:fs");

const { npm, specs } = JSON.parse(readFileSync(0, "utf8"));
const fromNpm = createRequire(`${npm}/package.json`);
const parse = fromNpm("npm-package-arg");
const semver = fromNpm("semver");
const validateName = fromNpm("validate-npm-package-name");

function judge(spec) {
  const { type, name, fetchSpec } = parse(spec, "/");
  if (!["version", "range", "tag"].includes(type)) return { type };
  const { validForOldPackages, errors } = validateName(name);
  if (!validForOldPackages) return { type: "invalid", reason: errors.join("; ") };
  const version = type === "version" ? semver.clean(fetchSpec) : null;
  if (type === "version" && version === null) return { type: "invalid", reason: `${fetchSpec} is not a semantic version` };
  const floor = type === "range" ? (semver.minVersion(fetchSpec)?.version ?? null) : null;
  return { type, name, version, wanted: fetchSpec, floor };
}

function judgeSafely(spec) {
  try {
    return judge(spec);
  } catch (error) {
    const badName = error.code === "EINVALIDPACKAGENAME";
    return { type: "invalid", reason: badName ? String(error.message).replace(/^.*": /, "") : "npm cannot read it" };
  }
}

process.stdout.write(JSON.stringify(specs.map(judgeSafely)));
