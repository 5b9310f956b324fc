async function ask(question) {
  const answer = await fetch(process.env.OPENAI_BASE_URL + "/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ model: "canary", messages: [{ role: "user", content: question }] }),
  });
  return { status: answer.status, text: await answer.text() };
}
