// include: reach.js

const attack = async (inputs) => (await Promise.all(inputs.engine.map((path) => reach({ path })))).filter(Boolean).join();
