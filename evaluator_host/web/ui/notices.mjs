// Writes the licences of the bundled packages next to the built files, as these licences require.
import { readdir, readFile } from "node:fs/promises";

const TEXTS = /^(licen[cs]e|notice|copying|third-party-notices|swagger-ui-bundle\.js\.license)(\.(md|txt))?$/i; // Swagger UI is a bundle itself
const FOLDER = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//;

/** The names of the packages in the bundles, from the metafiles of esbuild. */
export function packagesOf(...metafiles) {
  const inputs = metafiles.flatMap(({ inputs }) => Object.keys(inputs));
  return [...new Set(inputs.map((path) => FOLDER.exec(path)?.[1]).filter(Boolean))];
}

/** A string with each package's name, version and licence, in the order of the names. */
export async function notices(modules, names) {
  const parts = await Promise.all(names.toSorted().map((name) => noticeOf(new URL(`./${name}/`, modules))));
  return `The workbench contains these packages.\n\n${parts.join("\n")}`;
}

async function noticeOf(folder) {
  const { name, version, license } = JSON.parse(await readFile(new URL("./package.json", folder), "utf8"));
  const files = (await readdir(folder)).filter((file) => TEXTS.test(file)).toSorted();
  if (files.length === 0) throw new Error(`${name} ${version} comes without the text of its licence, ${license}`);
  const texts = await Promise.all(files.map((file) => readFile(new URL(`./${file}`, folder), "utf8")));
  return `${"=".repeat(80)}\n${name} ${version} (${license})\n\n${texts.map((text) => text.trim()).join("\n\n")}\n`;
}
