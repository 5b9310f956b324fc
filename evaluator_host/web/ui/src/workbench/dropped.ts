/** Reads files, folders and zip archives that someone dropped or chose; returns their contents by path. It trusts nothing in them. */

export interface Dropped {
  /** Contents of the files, by path. */
  files: Record<string, string>;
  /** Files that were left out, and why: `logo.png is not text`. */
  left: string[];
}

/** A file that is not read yet. */
interface Found {
  path: string;
  /** Returns the bytes of the file; null if it is over the limit. */
  read: () => Promise<Uint8Array | null>;
}

const MOST_FILES = 500;
const MOST_OTHERS = 20_000;
const FILE_BYTES = 1 << 20;
const ALL_BYTES = 8 << 20;
const ZIP_BYTES = 64 << 20;
const CLOSED = new Set(["node_modules", "__pycache__", "__MACOSX", "site-packages", "dist", "build"]);

/** Read dropped files and folders. `keeps` decides whether paths include the name of a folder that contains everything. */
export async function readEntries(entries: readonly FileSystemEntry[], keeps: (folder: string) => boolean): Promise<Dropped> {
  const found: Found[] = [];
  for (const entry of entries) await walk(entry, found);
  return collected(await unpacked(found), keeps);
}

/** Read files that were chosen, or those of a folder. */
export async function readFiles(files: readonly File[], keeps: (folder: string) => boolean): Promise<Dropped> {
  return collected(await unpacked(files.map((file) => foundFile(file, file.webkitRelativePath || file.name))), keeps);
}

async function walk(entry: FileSystemEntry, found: Found[]): Promise<void> {
  if (found.length > MOST_OTHERS) throw new Error("There are too many files: choose a smaller folder.");
  const path = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    found.push(foundFile(file, path));
  } else if (isOpen(path)) {
    const reader = (entry as FileSystemDirectoryEntry).createReader();
    for (;;) {
      const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
      if (some.length === 0) break;
      for (const one of some) await walk(one, found);
    }
  }
}

function foundFile(file: File, path: string): Found {
  const most = path.endsWith(".zip") ? ZIP_BYTES : FILE_BYTES;
  return { path, read: async () => (file.size > most ? null : new Uint8Array(await file.arrayBuffer())) };
}

/** Replace a single archive with its files. */
async function unpacked(found: Found[]): Promise<Found[]> {
  const [only, more] = found;
  if (only === undefined || more !== undefined || !only.path.endsWith(".zip")) return found;
  const bytes = await only.read();
  if (bytes === null) throw new Error(`${only.path} is over ${ZIP_BYTES >> 20} MB: pack only what the evaluator needs.`);
  return entriesOfZip(bytes, only.path);
}

async function collected(found: readonly Found[], keeps: (folder: string) => boolean): Promise<Dropped> {
  const environments = found.filter(({ path }) => /(?:^|\/)pyvenv\.cfg$/.test(path)).map(({ path }) => path.slice(0, -"pyvenv.cfg".length));
  const open = found.filter(({ path }) => isOpen(path) && !environments.some((folder) => path.startsWith(folder)));
  const top = topOf(open);
  const cut = top === null || keeps(top) ? 0 : top.length + 1;
  const files: Record<string, string> = {};
  const left: string[] = [];
  let size = 0;
  for (const one of open) {
    const path = one.path.slice(cut);
    if (!isWithin(path)) {
      left.push(`${shown(one.path)} is not a path within the folder`);
      continue;
    }
    if (Object.hasOwn(files, path)) throw new Error(`There are two files at ${shown(path)}: rename one of them.`);
    const bytes = await one.read();
    const text = bytes === null ? null : textOf(bytes);
    if (bytes === null) left.push(`${shown(path)} is over ${FILE_BYTES >> 20} MB, or a link`);
    else if (text === null) left.push(`${shown(path)} is not text`);
    else {
      size += bytes.length;
      files[path] = text;
      if (Object.keys(files).length > MOST_FILES || size > ALL_BYTES) throw new Error(`There are more than ${MOST_FILES} files, or ${ALL_BYTES >> 20} MB of them: choose a smaller folder.`);
    }
  }
  return { files, left };
}

/** The folder that contains all files; null if there is none. */
function topOf(found: readonly Found[]): string | null {
  const tops = new Set(found.map(({ path }) => (path.includes("/") ? path.slice(0, path.indexOf("/")) : "")));
  const [top, more] = [...tops];
  return top === undefined || top === "" || top === ".." || top === "." || more !== undefined ? null : top;
}

/** Whether a file or folder is one of the author's own: not hidden, installed or built. */
function isOpen(path: string): boolean {
  return path.split("/").every((part) => part === "." || part === ".." || !(part.startsWith(".") || CLOSED.has(part)));
}

function isWithin(path: string): boolean {
  return path !== "" && !/[\\\p{C}]/u.test(path) && path.split("/").every((part) => part !== "" && part !== "." && part !== "..");
}

function textOf(bytes: Uint8Array): string | null {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return text.includes("\0") ? null : text;
  } catch {
    return null;
  }
}

const shown = (path: string): string => path.replace(/\p{C}/gu, "�").slice(0, 100);

const END = 0x06054b50;
const ENTRY = 0x02014b50;
const LOCAL = 0x04034b50;
const LINK = 0xa000;

/** The files of an archive, from its central directory; the sizes in its entries are not trusted. */
function entriesOfZip(bytes: Uint8Array, name: string): Found[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const broken = () => new Error(`${name} cannot be read as a zip archive: pack the folder again.`);
  const end = endOf(view);
  if (end === null) throw broken();
  const count = view.getUint16(end + 10, true);
  const found: Found[] = [];
  let at = view.getUint32(end + 16, true);
  for (let index = 0; index < count; index += 1) {
    if (at + 46 > view.byteLength || view.getUint32(at, true) !== ENTRY) throw broken();
    const [nameLength, more, comment] = [28, 30, 32].map((offset) => view.getUint16(at + offset, true)) as [number, number, number];
    const path = new TextDecoder().decode(bytes.subarray(at + 46, at + 46 + nameLength));
    const entry = {
      flags: view.getUint16(at + 8, true),
      method: view.getUint16(at + 10, true),
      packed: view.getUint32(at + 20, true),
      kind: (view.getUint32(at + 38, true) >>> 16) & 0xf000,
      local: view.getUint32(at + 42, true),
    };
    at += 46 + nameLength + more + comment;
    if (!path.endsWith("/")) found.push({ path, read: () => unpack(bytes, view, entry, broken) });
  }
  return found;
}

/** The offset of the end record of an archive, which a comment may follow. */
function endOf(view: DataView): number | null {
  for (let at = view.byteLength - 22; at >= 0 && at >= view.byteLength - 22 - 0xffff; at -= 1) {
    if (view.getUint32(at, true) === END) return at;
  }
  return null;
}

async function unpack(bytes: Uint8Array, view: DataView, entry: { flags: number; method: number; packed: number; kind: number; local: number }, broken: () => Error): Promise<Uint8Array | null> {
  if (entry.kind === LINK) return null;
  if (entry.local + 30 > view.byteLength || view.getUint32(entry.local, true) !== LOCAL || (entry.flags & 1) === 1) throw broken();
  const from = entry.local + 30 + view.getUint16(entry.local + 26, true) + view.getUint16(entry.local + 28, true);
  const packed = bytes.slice(from, from + entry.packed);
  if (entry.method === 0) return packed.length > FILE_BYTES ? null : packed;
  if (entry.method !== 8) throw broken();
  const reader = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw")).getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      size += value.length;
      if (size > FILE_BYTES) {
        await reader.cancel();
        return null;
      }
    }
  } catch {
    throw broken();
  }
  return new Uint8Array(await new Blob(parts).arrayBuffer());
}
