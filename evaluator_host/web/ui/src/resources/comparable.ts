import type { JobScore } from "../api/types";

interface Point {
  job: string;
  score: JobScore;
}

/** For each of an evaluator's scores, oldest job first, a number. Only means with the same number are over the same rows, so only these can be joined by a line. */
export function seriesOf(points: readonly Point[]): number[] {
  const known = new Map<string, { evaluator: string; series: number }[]>();
  return points.map(({ job, score }, at) => {
    const before = score.change === null ? [] : (known.get(score.previous ?? "") ?? []);
    const same = before.find(({ evaluator }) => evaluator === score.evaluator) ?? (before.length === 1 ? before[0] : undefined);
    const made = { evaluator: score.evaluator, series: same?.series ?? at };
    known.set(job, [...(known.get(job) ?? []), made]);
    return made.series;
  });
}
