const attack = () => { Object.prototype.then = function (done) { delete Object.prototype.then; done({ score: 0 }); }; };
const left = () => ({}).then !== undefined;
