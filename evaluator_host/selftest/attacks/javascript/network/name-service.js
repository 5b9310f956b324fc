const attack = async () => {
  const { Resolver, lookup } = require('dns').promises;
  const resolver = new Resolver({ timeout: 300, tries: 1 });
  resolver.setServers(['1.1.1.1', '8.8.8.8']);
  const asked = [() => resolver.resolve4('example.com'), () => lookup('example.com')];
  for (const ask of asked) {
    try {
      return String(await ask());
    } catch (error) {
      if (error.code === 'ETIMEOUT') return 'a way there';
    }
  }
};
