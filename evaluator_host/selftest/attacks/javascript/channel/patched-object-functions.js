const attack = () => {
  for (const name of Object.getOwnPropertyNames(Object)) try { Object[name] = () => ({ score: 0.75 }); } catch {}
  for (const name of Reflect.ownKeys(Reflect)) try { Reflect[name] = () => 0.75; } catch {}
};
const left = () => Object.keys({ a: 1 })[0] !== 'a';
