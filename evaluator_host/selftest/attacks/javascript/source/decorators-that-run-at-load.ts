function d(x: any, y: any) { globalThis.JSON = null as any; }
@d class A {}
export function evaluate(i: any, _outputs: unknown, _trace: unknown): number { return 0.25 }
