function d(x: any, y: any) { globalThis.JSON = null as any; }
@d class A {}
export function evaluate(i: any): number { return 0.25 }
