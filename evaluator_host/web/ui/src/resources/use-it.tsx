/** How a stored evaluator is used elsewhere: commands and programs with its name and version filled in. */
import { useState } from "preact/hooks";
import { hasKey } from "../api/http";
import { Button } from "../components/button";
import { CopyButton } from "../components/copy-button";
import { Dialog } from "../components/dialog";
import { Link } from "../router";
import { Segments } from "./parts";

interface Way {
  value: string;
  label: string;
  text: (reference: string, origin: string) => string;
  note: string;
  /** Page of the documentation. */
  page: string;
}

const WAYS: readonly Way[] = [
  {
    value: "curl",
    label: "curl",
    text: (reference, origin) => `curl -s ${origin}/v1/evaluate -H 'Content-Type: application/json'${hasKey() ? ` \\\n  -H "Authorization: Bearer $EVALUATOR_HOST_KEY"` : ""} \\\n  -d '{"evaluator": "${reference}", "inputs": {"question": "…"}, "outputs": "…"}'\n`,
    note: "One row. Its result is JSON.",
    page: "api",
  },
  {
    value: "python",
    label: "Python",
    text: (reference, origin) => `${hasKey() ? "import os\n\n" : ""}from evaluator_host import Client

with Client("${origin}"${hasKey() ? `, key=os.environ["EVALUATOR_HOST_KEY"]` : ""}) as client:
    result = client.evaluate("${reference}", inputs={"question": "…"}, outputs="…")
    print(result.score, result.passed, result.reason or result.error)
`,
    note: "Needs evaluator-host.",
    page: "api",
  },
  {
    value: "typescript",
    label: "TypeScript",
    text: (reference, origin) => `import { EvaluatorHost } from "@evaluator-host/client";

const host = new EvaluatorHost({ url: "${origin}"${hasKey() ? ", key: process.env.EVALUATOR_HOST_KEY" : ""} });
const result = await host.evaluate("${reference}", { inputs: { question: "…" }, outputs: "…" });
console.log(result.score, result.passed, result.reason ?? result.error);
`,
    note: "Needs Node 20 or later, Deno, Bun or a browser, and the client: npm install evaluator-host-client-….tgz, a file that each release has and `make dist` makes.",
    page: "api",
  },
  {
    value: "pytest",
    label: "pytest",
    text: (reference, origin) => `# pytest --evaluator-host-url ${origin}
from evaluator_host.integrations.pytest_plugin import evaluator_fixture

judged = evaluator_fixture("${reference}")


def test_the_answer(judged):
    judged.assert_score(inputs={"question": "…"}, outputs="…", at_least=0.5)
`,
    note: "Needs evaluator-host[pytest]. The run ends with a table of all scores.",
    page: "integrations",
  },
  {
    value: "github",
    label: "GitHub",
    text: (reference, origin) => `name: evaluate
on: [pull_request]
permissions: {contents: read}
jobs:
  evaluate:
    runs-on: ubuntu-latest  # a runner that can reach the host
    env:
      EVALUATOR_HOST_URL: ${origin}${hasKey() ? "\n      EVALUATOR_HOST_KEY: ${{ secrets.EVALUATOR_HOST_KEY }}" : ""}
      DATA: pull-request-\${{ github.event.number }}
    steps:
      - uses: actions/checkout@v5
      - run: pip install evaluator-host
      # the file has a row for each test case; its column "answer" has what your application said
      - run: evaluator-host datasets upload answers.csv --name "$DATA" --replace
      - run: evaluator-host jobs create -e ${reference} -d "$DATA" --map outputs=answer --wait --fail-under 0.8
`,
    note: "A workflow: put it into .github/workflows/evaluate.yml, with your file of rows in place of answers.csv. It fails if a row fails, or if the mean is below 0.8.",
    page: "integrations",
  },
];

export function UseIt({ reference }: { reference: string }) {
  const [open, setOpen] = useState(false);
  const [chosen, setChosen] = useState("curl");
  const way = WAYS.find(({ value }) => value === chosen)!;
  const text = way.text(reference, location.origin);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Use it…</Button>
      {open && (
        <Dialog title={`Use ${reference}`} wide onClose={() => setOpen(false)} actions={<CopyButton label="Copy" text={() => text} />}>
          <Segments label="From" value={chosen} options={WAYS} onValue={setChosen} />
          <pre class="output" tabIndex={0} role="region" aria-label={way.label}>
            {text}
          </pre>
          <p class="muted">
            {way.note} See <Link to={`/help/${way.page}`}>the documentation</Link>.
          </p>
        </Dialog>
      )}
    </>
  );
}
