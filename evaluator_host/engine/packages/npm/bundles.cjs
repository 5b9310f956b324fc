// This file is loaded before npm, so that npm can lock packages that bundle other packages or have a shrinkwrap. To lock such a package, npm has to
// open its tarball, but `allow-remote=none` forbids this, as if the tarball were a dependency on a URL. When npm installs packages, it exempts
// tarballs of the registry from this rule. This file makes npm exempt them when it makes a lock, too.
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
