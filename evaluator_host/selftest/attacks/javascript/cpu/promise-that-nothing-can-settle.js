const attack = () => new Promise(() => {});
