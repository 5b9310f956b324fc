import { Link } from "../router";
import { DatasetName } from "./dataset-name";
import { count, counted, seconds } from "./format";
import { Facts, When } from "./parts";
import { isFinal, unitOf, type JobReport } from "../api/types";

/** The configuration and the times of a job. */
export function JobFacts({ job }: { job: JobReport }) {
  const { config, target } = job;
  const mapping = Object.entries(job.mapping);
  const pace = [
    config.parallelism !== null && `${config.parallelism} in parallel`,
    config.isolation === "batch" && "rows share a process",
    config.limit_samples !== null && `the first ${count(config.limit_samples)} rows`,
    config.shard && `shard ${config.shard}`,
    config.executor === "ray" && "on a Ray cluster",
    config.failures === "zero" && "failed rows count as 0",
    config.max_failures !== null && `fails after more than ${counted(config.max_failures, `failed ${unitOf(job)}`)}`,
  ].filter(Boolean);
  return (
    <Facts
      facts={[
        ["Data set", <DatasetName key="dataset" job={job} />],
        ["Evaluators", <Evaluators key="evaluators" labels={job.evaluators} />],
        mapping.length > 0 && (["Mapping", <Mapping key="mapping" mapping={mapping} />] as const),
        target !== null && (["Model", `${target.model} at ${target.base_url}`] as const),
        pace.length > 0 && (["Execution", pace.join(", ")] as const),
        job.nodes.length > 0 && (["Nodes", <Nodes key="nodes" nodes={job.nodes} unit={unitOf(job)} />] as const),
        ["Created", <When key="made" at={job.created_at} />],
        isFinal(job.status) && (["Running time", seconds(job.running_s)] as const),
      ]}
    />
  );
}

function Mapping({ mapping }: { mapping: readonly (readonly [string, string])[] }) {
  return (
    <span class="chips">
      {mapping.map(([field, source]) => (
        <code key={field}>
          {field} ← {source}
        </code>
      ))}
    </span>
  );
}

/** The nodes of a cluster with their rows; the tooltip of a node shows its fault. */
function Nodes({ nodes, unit }: { nodes: JobReport["nodes"]; unit: string }) {
  return (
    <span class="chips">
      {nodes.map((node) => (
        <span key={node.name} title={node.reason ?? undefined}>
          {node.name} {node.state}, {counted(node.rows, unit)}
        </span>
      ))}
    </span>
  );
}

/** Stored evaluators link to their version. */
function Evaluators({ labels }: { labels: readonly string[] }) {
  return (
    <span class="chips">
      {labels.map((label) => {
        const stored = /^(.+)@(\d+)$/.exec(label);
        return stored ? (
          <Link key={label} to={`/evaluators/${encodeURIComponent(stored[1]!)}?version=${stored[2]}`}>
            {label}
          </Link>
        ) : (
          <span key={label}>{label}</span>
        );
      })}
    </span>
  );
}
