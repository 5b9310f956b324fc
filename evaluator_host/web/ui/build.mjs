// Builds dist/: hashed assets, large ones gzipped, index.html, docs.html, and assets.json, which lists the scripts that each page needs before it shows anything but the frame.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { relative } from "node:path";
import { gzipSync } from "node:zlib";
import { docs as documentation } from "./docs-plugin.mjs";
import { notices, packagesOf } from "./notices.mjs";

const SMALLEST_GZIPPED = 1024;
const SHARED_BY = 3; // a module that at least this many pages use goes into the app's file
const TARGETS = ["chrome123", "firefox120", "safari17.5"]; // the first versions with light-dark()

const stage = new URL("./.stage/", import.meta.url);
const dist = new URL("./dist/", import.meta.url);

const common = { bundle: true, minify: true, target: TARGETS, legalComments: "none", write: false, logLevel: "warning", absWorkingDir: import.meta.dirname };

const PROGRAMS = { python: "evaluator.py", javascript: "evaluator.js", typescript: "evaluator.ts" };

/** `import "examples:all"`: the folders of src/examples as one JSON array, in the order of order.json. */
const examples = {
  name: "examples",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^examples:all$/ }, ({ path }) => ({ path, namespace: "examples" }));
    onLoad({ filter: /.*/, namespace: "examples" }, async () => {
      const folder = new URL("./src/examples/", import.meta.url);
      const order = JSON.parse(await readFile(new URL("./order.json", folder), "utf8"));
      return { contents: JSON.stringify(await Promise.all(order.map((id) => example(folder, id)))), loader: "json" };
    });
  },
};

async function example(folder, id) {
  const home = new URL(`./${id}/`, folder);
  const files = await readdir(home);
  const programs = {};
  for (const [language, file] of Object.entries(PROGRAMS)) {
    if (files.includes(file)) programs[language] = await readFile(new URL(file, home), "utf8");
  }
  return { id, ...JSON.parse(await readFile(new URL("./example.json", home), "utf8")), programs };
}

/** `import "typescript:libraries"`: TypeScript's declarations of the language, without those of browsers. */
const libraries = {
  name: "libraries",
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^typescript:libraries$/ }, ({ path }) => ({ path, namespace: "libraries" }));
    onLoad({ filter: /.*/, namespace: "libraries" }, async () => {
      const folder = new URL("./node_modules/typescript/lib/", import.meta.url);
      const names = (await readdir(folder)).filter((name) => /^lib\.(es|decorators).*\.d\.ts$/.test(name) && !name.endsWith(".full.d.ts"));
      return { contents: JSON.stringify(Object.fromEntries(await Promise.all(names.map(async (name) => [name, await readFile(new URL(name, folder), "utf8")])))), loader: "json" };
    });
  },
};

const worker = await build({ ...common, entryPoints: ["src/editor/typescript-worker.ts"], outdir: "dist/assets", format: "iife", plugins: [libraries], metafile: true });
const workerName = hashedName("typescript", "js", worker.outputFiles[0].contents);

const pageOptions = {
  ...common,
  entryPoints: { app: "src/main.tsx" },
  outdir: "dist/assets",
  entryNames: "[name]-[hash]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  format: "esm",
  splitting: true,
  metafile: true,
  loader: { ".wasm": "file" },
  publicPath: "/assets",
  jsx: "automatic",
  jsxImportSource: "preact",
  define: { "process.env.NODE_ENV": '"production"', TYPESCRIPT_WORKER: JSON.stringify(`/assets/${workerName}`) },
};

/** The modules that `import()` loads, and those that the app or at least three pages need. */
async function sharedModules() {
  const { inputs } = (await build({ ...pageOptions, plugins: [examples, documentation] })).metafile;
  const reached = (from, found = new Set()) => {
    if (found.has(from)) return found;
    found.add(from);
    for (const { path, kind } of inputs[from].imports) if (kind === "import-statement") reached(path, found);
    return found;
  };
  const ours = Object.entries(inputs).filter(([path]) => path.startsWith("src/"));
  const loaded = new Set(ours.flatMap(([, { imports }]) => imports).filter(({ kind, path }) => kind === "dynamic-import" && path.startsWith("src/")).map(({ path }) => path));
  const users = new Map();
  for (const page of loaded) for (const path of reached(page)) users.set(path, (users.get(path) ?? 0) + 1);
  const often = [...users].filter(([path, count]) => count >= SHARED_BY && path.startsWith("src/")).map(([path]) => path);
  return { loaded, shared: [...new Set(["src/app.tsx", ...often])] };
}

/** Put what many modules use into one file, because esbuild would make dozens: one for each set of modules that share code. */
async function inOneFile() {
  const { loaded, shared } = await sharedModules();
  const imports = shared.map((path) => `import ${JSON.stringify(`./${path}`)};`).join("\n");
  return {
    name: "in-one-file",
    setup({ onLoad, onResolve }) {
      onResolve({ filter: /^shared:all$/ }, ({ path }) => ({ path, namespace: "shared" }));
      onLoad({ filter: /.*/, namespace: "shared" }, () => ({ contents: imports, resolveDir: import.meta.dirname }));
      onLoad({ filter: /\.tsx?$/ }, async ({ path }) => {
        const name = relative(import.meta.dirname, path);
        if (!loaded.has(name) && name !== "src/main.tsx") return undefined;
        return { contents: `${await readFile(path, "utf8")}\nimport "shared:all";`, loader: name.endsWith("x") ? "tsx" : "ts" };
      });
    },
  };
}

const pages = await build({ ...pageOptions, plugins: [await inOneFile(), examples, documentation] });
const firstStyles = await build({ ...common, entryPoints: ["src/styles/first.css"], outdir: "dist/assets" });
const styles = await build({ ...common, entryPoints: ["src/styles/index.css"], outdir: "dist/assets" });
const docsStyles = await build({ ...common, entryPoints: ["src/styles/docs.css"], outdir: "dist/assets" });
const docs = await build({ ...common, entryPoints: ["src/docs.ts"], outdir: "dist/assets", format: "iife", metafile: true });

const assets = new Map(pages.outputFiles.map((file) => [file.path.split("/").at(-1), Buffer.from(file.contents)]));

function hashedName(stem, suffix, contents) {
  return `${stem}-${createHash("sha256").update(contents).digest("base64url").replace(/[-_]/g, "").slice(0, 8).toUpperCase()}.${suffix}`;
}

function addHashed(stem, suffix, contents) {
  const name = hashedName(stem, suffix, contents);
  assets.set(name, Buffer.from(contents));
  return name;
}

assets.set(workerName, Buffer.from(worker.outputFiles[0].contents));

const styleName = addHashed("style", "css", styles.outputFiles[0].contents);
const docsName = addHashed("docs", "js", docs.outputFiles[0].contents);
const modules = new URL("./node_modules/", import.meta.url);
const swagger = new URL("./swagger-ui-dist/", modules);
const swaggerName = addHashed("swagger", "js", await readFile(new URL("./swagger-ui-bundle.js", swagger)));
const docsStyleName = addHashed("docs", "css", docsStyles.outputFiles[0].contents);
const iconName = addHashed("icon", "svg", await readFile(new URL("./src/icon.svg", import.meta.url)));
const packages = [...packagesOf(pages.metafile, docs.metafile, worker.metafile), "swagger-ui-dist"];
const noticesName = addHashed("notices", "txt", await notices(modules, packages));

const outputs = Object.entries(pages.metafile.outputs).map(([path, output]) => ({ name: path.split("/").at(-1), ...output }));
const entry = outputs.find((output) => output.entryPoint === "src/main.tsx").name;

/** The frame of a page as markup. */
async function shell() {
  const lazy = { name: "lazy", setup: ({ onResolve }) => onResolve({ filter: /./ }, ({ kind }) => (kind === "dynamic-import" ? { external: true } : undefined)) };
  const stdin = { contents: 'import { Shell } from "./src/frame/shell";\nexport default Shell();', resolveDir: import.meta.dirname };
  const { outputFiles } = await build({ ...common, stdin, format: "esm", outdir: "dist", jsx: "automatic", alias: { "preact/jsx-runtime": "./static-jsx.mjs" }, plugins: [lazy] });
  return (await import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`)).default;
}

/** The files that a module needs before it can run, without those of `import()`. */
function needed(name, found = new Set()) {
  if (found.has(name)) return found;
  found.add(name);
  for (const { path, kind } of outputs.find((output) => output.name === name).imports) {
    if (kind === "import-statement") needed(path.split("/").at(-1), found);
  }
  return found;
}

const first = [...needed(entry)];
const routes = await readFile(new URL("./src/routes.ts", import.meta.url), "utf8");
const pageScripts = {};
for (const [, path, page] of routes.matchAll(/path: "([^"]+)".*import\("\.\/([^"]+)"\)/g)) {
  const { name } = outputs.find((output) => output.entryPoint === `src/${page}.tsx`);
  pageScripts[path] = [...needed(name)].filter((one) => !first.includes(one));
}
const early = await build({
  ...common,
  entryPoints: ["src/early.ts"],
  outdir: "dist/assets",
  format: "iife",
  external: ["/assets/*"],
  define: {
    APP: JSON.stringify(`/assets/${entry}`),
    APP_SCRIPTS: JSON.stringify(first.filter((name) => name !== entry)),
    PAGE_SCRIPTS: JSON.stringify(pageScripts),
    STYLES: JSON.stringify(`/assets/${styleName}`),
  },
});
const frame = await shell();
// functions, because `$` has a special meaning in a replacement string
const html = (await readFile(new URL("./src/index.html", import.meta.url), "utf8"))
  .replace("<!-- assets -->", () => [
    `<link rel="icon" type="image/svg+xml" href="/assets/${iconName}">`,
    `<link rel="license" href="/assets/${noticesName}">`,
    `<style nonce="{{nonce}}">${firstStyles.outputFiles[0].text.trim()}</style>`,
    `<script>${early.outputFiles[0].text.trim()}</script>`,
  ].join("\n  "))
  .replace("<!-- shell -->", () => frame);

const docsPage = (await readFile(new URL("./src/docs.html", import.meta.url), "utf8"))
  .replace("<!-- assets -->", [
    `<link rel="icon" type="image/svg+xml" href="/assets/${iconName}">`,
    `<link rel="license" href="/assets/${noticesName}">`,
    `<script defer src="/assets/${swaggerName}"></script>`,
    `<script defer src="/assets/${docsName}"></script>`,
  ].join("\n  "))
  .replace("<!-- styles -->", `<link rel="stylesheet" href="/assets/${docsStyleName}">`); // after the heading, which needs none of these styles

await rm(stage, { recursive: true, force: true });
await mkdir(new URL("./assets/", stage), { recursive: true });
for (const [name, bytes] of assets) {
  // licences stay uncompressed, because people read them in the package
  const gzipped = bytes.length >= SMALLEST_GZIPPED && !name.endsWith(".txt");
  await writeFile(new URL(`./assets/${name}${gzipped ? ".gz" : ""}`, stage), gzipped ? gzipSync(bytes, { level: 9 }) : bytes);
}
await writeFile(new URL("./docs.html", stage), docsPage);
await writeFile(new URL("./index.html", stage), html);
await writeFile(new URL("./assets.json", stage), JSON.stringify({ first, pages: pageScripts }, null, 1));
await rm(dist, { recursive: true, force: true });
await rename(stage, dist);
