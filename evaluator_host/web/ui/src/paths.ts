/** Paths of pages: decodes their parts, and matches them with patterns. */

/** Return a part of an address decoded; invalid escapes stay as they are. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The named parts of a path that fits `pattern` (`/jobs/:id`), or null. */
export function match(pattern: string, path: string): Record<string, string> | null {
  const wanted = pattern.split("/").filter(Boolean);
  const given = path.split("/").filter(Boolean);
  if (wanted.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const value = given[index] ?? "";
    if (part.startsWith(":")) found[part.slice(1)] = decoded(value);
    else if (part !== value) return null;
  }
  return found;
}
