declare module "examples:all" {
  import type { Language, Row } from "./api/types";

  /** An evaluator to start from: src/examples/<id>/. */
  export interface Example {
    id: string;
    title: string;
    description: string;
    row: Row;
    score: number;
    /** The contract of an evaluator of another platform. */
    contract?: string;
    packages: Partial<Record<Language, string[]>>;
    programs: Partial<Record<Language, string>>;
  }

  const examples: readonly Example[];
  export default examples;
}
