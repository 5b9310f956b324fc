// include: ask.js
async function attack(inputs) {
  let answered = 0;
  for (let number = 0; number < 5; number++) answered += (await ask(`question ${number}`)).status === 200 ? 1 : 0;
  return answered > 2;
}
