// This file is loaded before npm. To lock a package that bundles others or has a shrinkwrap, npm opens the package's tarball, which
// `allow-remote=none` forbids as if it were a dependency on a URL. When npm installs, it exempts tarballs of the registry from
// this rule; here they are exempt when npm makes the lock, too.
"use strict";
const { createRequire } = require("node:module");

const pacote = createRequire(process.argv[1])("pacote");
const { extract } = pacote;

function isOfRegistry(spec, { registry, resolved }) {
  if (spec !== resolved || !URL.canParse(spec)) return false;
  const [tarball, own] = [new URL(spec), new URL(registry)];
  return tarball.origin === own.origin && tarball.pathname.startsWith(own.pathname);
}

pacote.extract = (spec, folder, options) =>
  extract(spec, folder, isOfRegistry(spec, options) ? { ...options, allowRemote: "all" } : options);
