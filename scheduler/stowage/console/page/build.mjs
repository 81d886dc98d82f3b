// Bundles the page into ../static. The same sources and lock file give the same bytes.
import { build } from "esbuild";
import { readFile, readdir, rm, writeFile, copyFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = process.argv[2] ?? join(here, "..", "static");

/** The folders of node_modules whose files are in the bundle. */
function bundledPackages(metafile) {
  const folders = new Set();
  for (const input of Object.keys(metafile.inputs)) {
    const match = input.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)\//);
    if (match) folders.add(match[1]);
  }
  return [...folders].sort();
}

/** Name, version and licence text of one package; an error if it carries no licence text. */
async function licenceOf(name) {
  const folder = join(here, "node_modules", name);
  const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
  const file = (await readdir(folder)).find((each) => /^licen[cs]e/i.test(each));
  if (!file) throw new Error(`${name} has no licence file`);
  const text = (await readFile(join(folder, file), "utf8")).trim();
  return `${name} ${version} (${license})\n${"-".repeat(72)}\n${text}\n`;
}

for (const file of await readdir(out)) await rm(join(out, file), { recursive: true });
const { metafile } = await build({
  absWorkingDir: here,
  entryPoints: { console: "src/main.tsx" },
  outdir: out,
  bundle: true,
  splitting: true,
  format: "esm",
  target: "es2022",
  jsx: "automatic",
  jsxImportSource: "preact",
  minify: true,
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  entryNames: "[name]",
  chunkNames: "[name]-[hash]",
  assetNames: "[name]-[hash]",
  loader: { ".woff2": "file" },
  logLevel: "warning",
});
await copyFile(join(here, "src", "index.html"), join(out, "index.html"));
const licences = await Promise.all(bundledPackages(metafile).map(licenceOf));
await writeFile(
  join(out, "LICENSES.txt"),
  `The packages that the console's page contains, with their licences.\n\n${licences.join("\n\n")}`,
);
