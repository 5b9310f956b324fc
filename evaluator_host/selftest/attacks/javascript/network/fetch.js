const attack = async (inputs) => {
  try {
    return (await fetch(`http://127.0.0.1:${inputs.port}/`, { signal: AbortSignal.timeout(1000) })).status;
  } catch (error) {
    return error.cause?.code === 'ECONNREFUSED' || error.name === 'TimeoutError' ? null : String(error.cause?.code ?? error);
  }
};
