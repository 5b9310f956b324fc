const attack = () => { setTimeout(() => { throw new Error('late'); }, 0); Promise.reject(new Error('late')); };
