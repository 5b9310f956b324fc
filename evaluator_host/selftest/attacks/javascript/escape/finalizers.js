const attack = async () => {
  globalThis.registry = new FinalizationRegistry(() => { Object.prototype.score = 0.75; console.log('late'); });
  for (let n = 0; n < 1000; n++) globalThis.registry.register({}, n);
  for (let n = 0; n < 50; n++) new Array(1e5).fill({});
};
const left = () => ({}).score;
