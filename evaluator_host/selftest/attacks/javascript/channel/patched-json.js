const attack = () => {
  JSON.stringify = () => '{"kind":"number","value":0.75}';
  JSON.parse = () => ({ kind: 'number', value: 0.75 });
};
const left = () => JSON.stringify({}) !== '{}' || JSON.parse('1') !== 1;
