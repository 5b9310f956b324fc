/** The models that evaluators may be granted, the secrets of the workspace, the use of models, and how to get keys. */
import { useState } from "preact/hooks";
import { call, hasKey, setKey } from "../api/http";
import type { DayUsage, EvaluatorReport, ModelHosts, ModelTest, RegisteredModel, SecretReport } from "../api/types";
import { Button } from "../components/button";
import { CopyButton } from "../components/copy-button";
import { Dialog } from "../components/dialog";
import { Empty } from "../components/empty";
import { ErrorNote } from "../components/error-note";
import { Field } from "../components/field";
import { Spinner } from "../components/spinner";
import { Table } from "../components/table";
import { toast } from "../components/toasts";
import { useAction } from "../components/use-action";
import { type Loaded, useLoaded } from "../components/use-loaded";
import { useHas, useHost } from "../host";
import { Confirm } from "../resources/confirm";
import { count, rounded } from "../resources/format";
import { ModelDialog, Outcome, tested } from "../resources/model-dialog";
import { Facts, PageHead, Panel, Segments, When } from "../resources/parts";
import { Link, navigate } from "../router";
import type { PageProps } from "../routes";

type Show = "models" | "secrets" | "usage" | "keys";

const SHOWN: readonly { value: Show; label: string; of?: string }[] = [
  { value: "models", label: "Models" },
  { value: "secrets", label: "Secrets", of: "secrets" },
  { value: "usage", label: "Usage", of: "usage" },
  { value: "keys", label: "API keys" },
];

export default function ModelsPage({ query }: PageProps) {
  const has = useHas();
  const parts = SHOWN.filter(({ of }) => of === undefined || has(of));
  const shown = parts.find((one) => one.value === query.get("show")) ?? SHOWN[0]!;
  const models = useLoaded((signal) => call<RegisteredModel[]>("GET", "/v1/models", { signal }), []);
  const keeping = has("secrets");
  const secrets = useLoaded(async (signal) => (keeping ? call<SecretReport[]>("GET", "/v1/secrets", { signal }) : []), [keeping]);
  const [adding, setAdding] = useState<RegisteredModel | "model" | "secret" | null>(null);
  const [tests, setTests] = useState<Tests>({});
  const setTest = (name: string, outcome: ModelTest | "running") => setTests((before) => ({ ...before, [name]: outcome }));
  return (
    <div class="page">
      <PageHead title={shown.label}>
        <Segments label="What to show" value={shown.value} options={parts} onValue={(value) => navigate(value === "models" ? "/models" : `/models?show=${value}`)} />
        {shown.value === "models" && (
          <Button kind="primary" onClick={() => setAdding("model")}>
            Add a model
          </Button>
        )}
        {shown.value === "secrets" && (
          <Button kind="primary" onClick={() => setAdding("secret")}>
            Add a secret
          </Button>
        )}
      </PageHead>
      {shown.value === "models" && <Models found={models} tests={tests} onTest={setTest} onChange={setAdding} />}
      {shown.value === "models" && <Hosts models={models.value ?? []} />}
      {shown.value === "secrets" && <SecretsList found={secrets} models={models.value ?? []} />}
      {shown.value === "usage" && <Usage />}
      {shown.value === "keys" && <Keys />}
      {adding !== null && adding !== "secret" && <ModelDialog given={adding === "model" ? null : adding} secrets={secrets.value ?? []} onClose={() => setAdding(null)} onSaved={() => (models.reload(), secrets.reload())} onTested={setTest} />}
      {adding === "secret" && <SecretDialog name={null} onClose={() => setAdding(null)} onSet={secrets.reload} />}
    </div>
  );
}

const heads = (names: readonly string[]) => names.map((name) => (name === "" ? <th key="actions" scope="col" aria-label="Actions" /> : <th key={name} scope="col">{name}</th>));
const numberHeads = (names: readonly string[]) => names.map((name) => <th key={name} scope="col" class="number">{name}</th>);

const priceOf = (price: number | null) => (price === null ? "–" : rounded(price));

/** Outcomes of the tests since the page was opened, by the name of the model. */
type Tests = Record<string, ModelTest | "running">;

interface ModelsProps {
  found: Loaded<RegisteredModel[]>;
  tests: Tests;
  onTest: (name: string, outcome: ModelTest | "running") => void;
  onChange: (model: RegisteredModel) => void;
}

function Models({ found, tests, onTest, onChange }: ModelsProps) {
  const test = async (name: string) => {
    onTest(name, "running");
    onTest(name, await tested(name));
  };
  const remove = async (name: string, force = false) => {
    await call("DELETE", `/v1/models/${encodeURIComponent(name)}`, { query: { force } });
    found.reload();
  };
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Loading models" />;
  if (found.value.length === 0) {
    return (
      <Empty title="No models yet">
        <p>
          Evaluators can call a model that you add here and grant to them. Its key stays on the host: code never sees it. See <Link to="/help/models">Models for evaluators</Link>.
        </p>
      </Empty>
    );
  }
  return (
    <Table label="Models" head={heads(["Name", "Model at the provider", "Key", "Price", "Test", ""])}>
      {found.value.map((one) => {
        const outcome = tests[one.name];
        return (
          <tr key={one.name}>
            <th scope="row" class="cell-name">
              {one.name} {one.operator && <span class="chip" title="Configured by the operator">operator’s</span>}
            </th>
            <td class="cell-text">
              <span class="mono">{one.model || one.name}</span> <span class="muted">({one.kind}) at {one.url}</span>
            </td>
            <td>{one.secret !== null ? <code>{one.secret}</code> : <span class="muted">{one.operator ? "the operator’s" : "none"}</span>}</td>
            <td class="cell-text">
              {one.input_price === null && one.output_price === null ? <span class="muted">not known</span> : `${priceOf(one.input_price)} in, ${priceOf(one.output_price)} out`}
              {(one.input_price ?? one.output_price) !== null && <span class="muted"> per million tokens</span>}
            </td>
            <td class="cell-text" role="status">
              {outcome === "running" && "Asking…"}
              {outcome !== undefined && outcome !== "running" && <Outcome outcome={outcome} />}
            </td>
            <td>
              <span class="chips">
                <Button small busy={outcome === "running"} aria-label={`Test ${one.name}`} onClick={() => void test(one.name)}>
                  Test
                </Button>
                <Link to={`/judge?model=${encodeURIComponent(one.name)}`} class="button button-plain button-small" aria-label={`New judge with ${one.name}`}>
                  New judge
                </Link>
                {!one.operator && (
                  <Button small kind={outcome !== undefined && outcome !== "running" && !outcome.ok ? "primary" : "plain"} aria-label={`Change ${one.name}`} onClick={() => onChange(one)}>
                    Change…
                  </Button>
                )}
                {!one.operator && (
                  <Confirm
                    small
                    label="Remove"
                    title={`Remove ${one.name}?`}
                    onConfirm={() => remove(one.name)}
                    onForce={() => remove(one.name, true)}
                  >
                    Evaluators can then no longer call this model. Its usage so far stays in the statistics.
                  </Confirm>
                )}
              </span>
            </td>
          </tr>
        );
      })}
    </Table>
  );
}

/** The hosts on which evaluators may call models. Hosts that were allowed on this page can be forbidden again. */
function Hosts({ models }: { models: readonly RegisteredModel[] }) {
  const hosts = useLoaded((signal) => call<ModelHosts>("GET", "/v1/model-hosts", { signal }), [models]);
  if (hosts.value === null || (hosts.value.may_allow && hosts.value.hosts.length === 0)) return null;
  const forbid = async (host: string) => {
    await call("DELETE", `/v1/model-hosts/${encodeURIComponent(host)}`);
    hosts.reload();
  };
  if (!hosts.value.may_allow) {
    return (
      <p class="muted">
        The operator allows these hosts for models, with EVALUATOR_HOST_JUDGE_HOSTS: {hosts.value.hosts.join(", ") || "none"}.
      </p>
    );
  }
  return (
    <Table label="Hosts on which evaluators may call models" head={heads(["Allowed", ""])}>
      {hosts.value.hosts.map((host) => (
        <tr key={host}>
          <th scope="row" class="cell-name">
            {host}
          </th>
          <td>
            <Confirm small label="Forbid" title={`Forbid ${host}?`} onConfirm={() => forbid(host)}>
              Evaluators can then not call models on this host until you allow the host again.
            </Confirm>
          </td>
        </tr>
      ))}
    </Table>
  );
}

function SecretsList({ found, models }: { found: Loaded<SecretReport[]>; models: readonly RegisteredModel[] }) {
  const evaluators = useLoaded((signal) => call<EvaluatorReport[]>("GET", "/v1/evaluators", { signal }), []);
  const [rotating, setRotating] = useState<string | null>(null);
  const remove = async (name: string, force = false) => {
    await call("DELETE", `/v1/secrets/${encodeURIComponent(name)}`, { query: { force } });
    found.reload();
  };
  if (found.error !== null) return <ErrorNote error={found.error} onRetry={found.reload} />;
  if (found.value === null) return <Spinner label="Loading secrets" />;
  if (found.value.length === 0) return <Empty title="No secrets yet">A secret is a key that the host sends to a model, or a token that code can read if the operator allows it. Its value is never shown again.</Empty>;
  return (
    <>
      <Table label="Secrets" head={heads(["Name", "Who sees it", "Set", ""])}>
        {found.value.map((one) => {
          const keyOf = models.filter((model) => model.secret === one.name).map((model) => model.name);
          const grantedTo = (evaluators.value ?? []).filter(({ evaluator }) => Object.values(evaluator.secrets).includes(one.name)).map(({ name }) => name);
          return (
            <tr key={one.name}>
              <th scope="row" class="cell-name">
                {one.name}
              </th>
              <td class="cell-text">
                {one.in_code ? <span class="chip chip-warn">code with a grant</span> : <span class="chip">only the host</span>}
                {keyOf.length > 0 && <span class="muted"> key of {keyOf.join(", ")}</span>}
                {grantedTo.length > 0 && <span class="muted"> granted to {grantedTo.join(", ")}</span>}
              </td>
              <td>
                <When at={one.updated_at} />
              </td>
              <td>
                <span class="chips">
                  <Button small aria-label={`New value of ${one.name}`} onClick={() => setRotating(one.name)}>
                    New value…
                  </Button>
                  <Confirm
                    small
                    label="Remove"
                    title={`Remove ${one.name}?`}
                    onConfirm={() => remove(one.name)}
                    onForce={() => remove(one.name, true)}
                  >
                    Models and evaluators that need this secret will then fail.
                  </Confirm>
                </span>
              </td>
            </tr>
          );
        })}
      </Table>
      {rotating !== null && <SecretDialog name={rotating} onClose={() => setRotating(null)} onSet={found.reload} />}
    </>
  );
}

/** A dialog that creates a secret, or sets a new value. */
function SecretDialog({ name: given, onClose, onSet }: { name: string | null; onClose: () => void; onSet: () => void }) {
  const [name, setName] = useState(given ?? "");
  const [value, setValue] = useState("");
  const { busy, error, run } = useAction();
  const ready = name.trim() !== "" && value !== "";
  const save = () =>
    run(async () => {
      await call("PUT", `/v1/secrets/${encodeURIComponent(name.trim())}`, { body: { value } });
      toast(given === null ? `${name.trim()} was added` : `${given} has its new value, which is used from the next request on`);
      onSet();
      onClose();
    });
  return (
    <Dialog
      title={given === null ? "Add a secret" : `New value of ${given}`}
      onClose={onClose}
      onSubmit={() => ready && void save()}
      actions={
        <Button kind="primary" type="submit" busy={busy} disabled={!ready}>
          Save
        </Button>
      }
    >
      {given === null && <Field label="Name" value={name} onValue={setName} hint="Use letters, digits, dots, dashes and underscores." autocomplete="off" spellcheck={false} />}
      <Field label="Value" type="password" value={value} onValue={setValue} hint="Stored encrypted on the host, and never shown again." autocomplete="off" />
      {error !== null && <ErrorNote title="The secret was not set" error={error} />}
    </Dialog>
  );
}

const KEY_COMMANDS: readonly (readonly [string, string])[] = [
  ["Create a key, which is shown only once", "evaluator-host keys create ci --workspace default --expires 90d"],
  ["List the keys, and when each was last used", "evaluator-host keys list"],
  ["Revoke a key within a second", "evaluator-host keys revoke ci"],
  ["Go back to a host without keys", "evaluator-host keys reset --open"],
  ["See who called what", "evaluator-host audit --since 24h"],
];

/** How to manage keys of the host. No route makes or lists keys, so that neither a stolen key nor a page can make more. */
function Keys() {
  const forget = () => {
    setKey(null);
    location.reload();
  };
  return (
    <>
      <Panel title="This tab">
        {hasKey() ? (
          <div class="stack">
            <p>This tab sends your key to the host with each request, and keeps it until you close the tab.</p>
            <div>
              <Button onClick={forget}>Forget the key</Button>
            </div>
          </div>
        ) : (
          <p>This host has no keys: only programs on its own machine can reach it. Once it has a key, every request needs a key, including the requests of these pages.</p>
        )}
      </Panel>
      <Panel title="Create keys on the host’s machine">
        <div class="stack">
          <p class="muted">
            Anybody who may read the host’s files can manage keys there, in a terminal. Pages and the API cannot create, list or revoke keys, so nobody can use a stolen key to create another one. See{" "}
            <Link to="/help/api#authentication">Authentication</Link> and <Link to="/help/cli#keys">the commands</Link>.
          </p>
          <Table label="Commands for keys" head={heads(["To", "Command", ""])}>
            {KEY_COMMANDS.map(([to, command]) => (
              <tr key={command}>
                <th scope="row">{to}</th>
                <td class="mono">{command}</td>
                <td>
                  <CopyButton label="Copy" text={() => command} />
                </td>
              </tr>
            ))}
          </Table>
        </div>
      </Panel>
    </>
  );
}

function Usage() {
  const host = useHost();
  const usage = useLoaded((signal) => call<DayUsage[]>("GET", "/v1/model-usage", { signal, query: { days: 30 } }), []);
  const answers = useLoaded((signal) => call<{ answers: number }>("GET", "/v1/model-answers", { signal }), []);
  if (usage.error !== null) return <ErrorNote error={usage.error} onRetry={usage.reload} />;
  if (usage.value === null) return <Spinner label="Loading usage" />;
  const today = usage.value.filter((one) => one.day === new Date().toISOString().slice(0, 10));
  const sum = (of: (one: DayUsage) => number) => today.reduce((total, one) => total + of(one), 0);
  const tokens = (one: DayUsage) => one.input_tokens + one.output_tokens;
  const most = host?.model_day ?? null;
  const against = (used: number, limit: number | null | undefined, shown = count) => (limit == null ? `${shown(used)}, no limit` : `${shown(used)} of ${shown(limit)}`);
  return (
    <>
      <Panel title="Budget of the workspace today (UTC)">
        <div class="stack">
        <Facts
          facts={[
            ["Requests", against(sum((one) => one.requests), most?.requests)],
            ["Tokens", against(sum(tokens), most?.tokens)],
            ["Cost", against(sum((one) => one.cost), most?.cost, rounded) + (today.some((one) => one.unpriced > 0) ? ", without models that have no price" : "")],
            host !== null && ["Requests of one row", `at most ${count(host.model_requests)}`],
            ["Recorded answers", answers.value === null ? "–" : count(answers.value.answers)],
          ]}
        />
        <p class="muted">Jobs and evaluators have their own budgets. The operator sets the daily budget (EVALUATOR_HOST_MODEL_DAY). The table shows the last 30 days.</p>
        </div>
      </Panel>
      {usage.value.length === 0 ? (
        <Empty title="No model was called in the last 30 days" />
      ) : (
        <Table label="Usage by day" head={[...heads(["Day", "Model"]), ...numberHeads(["Requests", "Recorded", "Tokens in", "Tokens out", "Cost"])]}>
          {usage.value.map((one) => (
            <tr key={`${one.day} ${one.model}`}>
              <th scope="row">{one.day}</th>
              <td>{one.model}</td>
              <td class="number">{count(one.requests)}</td>
              <td class="number">{count(one.replayed)}</td>
              <td class="number">{count(one.input_tokens)}</td>
              <td class="number">{count(one.output_tokens)}</td>
              <td class="number">{costOf(one)}</td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
}

/** The cost of a day; "?" stands for the cost of requests to a model without a price. */
function costOf({ cost, unpriced }: DayUsage): string {
  if (unpriced === 0) return rounded(cost);
  return cost === 0 ? "?" : `${rounded(cost)} + ?`;
}
