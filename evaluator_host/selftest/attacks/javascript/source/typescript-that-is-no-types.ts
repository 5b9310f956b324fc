enum E { A = (() => { throw new Error('at load'); })() as any }
export function evaluate(i: any): number { return 0.25 }
