// JSX that becomes markup while the pages are built, for elements and components without state: text is not escaped.
export const Fragment = ({ children }) => children;

export function jsx(tag, { children, ...rest }) {
  const inner = [children].flat(Infinity).join("");
  if (typeof tag === "function") return tag({ ...rest, children: inner });
  const attributes = Object.entries(rest).map(([name, value]) => ` ${name}="${value}"`);
  return `<${tag}${attributes.join("")}>${inner}</${tag}>`;
}

export const jsxs = jsx;
