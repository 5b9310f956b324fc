/** The address of the WebAssembly file; see build.mjs. */
declare module "@wasm-fmt/ruff_fmt/wasm" {
  const address: string;
  export default address;
}
