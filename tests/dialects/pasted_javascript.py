"""Evaluators in JavaScript and TypeScript as people paste them."""

from typing import Final

from tests.dialects.pasted import JAVASCRIPT, TYPESCRIPT, Pasted

IN_JAVASCRIPT: Final = [
    # JavaScript and TypeScript
    Pasted(
        "an anonymous default export",
        "export default (output, context) => output === context.vars.expected;",
        contract="promptfoo",
        language=JAVASCRIPT,
    ),
    Pasted(
        "an anonymous async default export of one object",
        "export default async ({ outputs, referenceOutputs }) => ({ key: 'same', score: outputs.output === referenceOutputs.output });",
        contract="langsmith",
        language=JAVASCRIPT,
    ),
    Pasted(
        "a typed constant",
        """
        import type { Scorer } from "autoevals";

        export const exactMatch: Scorer<string, {}> = (args) => ({
          name: "exact",
          score: args.output === args.expected ? 1 : 0,
        });
        """,
        contract="braintrust",
        language=TYPESCRIPT,
    ),
    Pasted(
        "a typed constant of the SDK",
        """
        import { EvalScorer } from "braintrust";

        export const same: EvalScorer<string, string, string> = async ({ output, expected }) => {
          return output === expected ? 1 : 0;
        };
        """,
        contract="braintrust",
        language=TYPESCRIPT,
    ),
    Pasted(
        "a promise",
        """
        function handler({ output, expected }) {
          return new Promise((resolve) => setTimeout(() => resolve(output === expected ? 1 : 0), 1));
        }
        """,
        contract="braintrust",
        language=JAVASCRIPT,
    ),
    Pasted(
        "OpenAI's client in TypeScript beside an evaluator that needs none",
        """
        import OpenAI from "openai";

        const client = new OpenAI();

        export async function judge(question: string) {
          return (await client.chat.completions.create({ model: "gpt-5", messages: [] })).choices[0];
        }

        export function evaluate(inputs: any, outputs: string, trace: unknown) {
          return outputs === inputs.correct_answer ? 1 : 0;
        }
        """,
        contract="evaluate",
        language=TYPESCRIPT,
    ),
    Pasted(
        "OpenAI's client in TypeScript that is used",
        """
        import OpenAI from "openai";

        const client = new OpenAI({ apiKey: process.env.OPENAI_API_KEY });

        export async function evaluate(inputs: any, outputs: string, trace: unknown) {
          const answer = await client.chat.completions.create({ model: "gpt-5", messages: [] });
          return Number(answer.choices[0].message.content);
        }
        """,
        "user_exception",
        contract="evaluate",
        language=TYPESCRIPT,
        contains="openai@",
    ),
    Pasted(
        "several exports of which one is named",
        """
        export const same = ({ outputs, referenceOutputs }: any) => ({ key: "same", score: outputs.output === referenceOutputs.output ? 1 : 0 });
        export const short = ({ outputs, referenceOutputs }: any) => ({ key: "short", score: outputs.output.length < 3 ? 1 : 0 });
        """,
        0.0,
        contract="langsmith",
        language=TYPESCRIPT,
        entry="short",
    ),
    Pasted(
        "several exports, all of them",
        """
        export const same = ({ outputs, referenceOutputs }: any) => ({ key: "same", score: outputs.output === referenceOutputs.output ? 1 : 0 });
        export const short = ({ outputs, referenceOutputs }: any) => ({ key: "short", score: outputs.output.length < 3 ? 1 : 0 });
        """,
        0.5,
        contract="langsmith",
        language=TYPESCRIPT,
        note="several_entries",
        metrics={"same": 1.0, "short": 0.0},
    ),
    Pasted(
        "satisfies",
        """
        type Args = { output: string; expected?: string };

        const handler = (({ output, expected }: Args) => (output === expected ? 1 : 0)) satisfies (args: Args) => number;
        """,
        contract="braintrust",
        language=TYPESCRIPT,
    ),
    Pasted(
        "module.exports of an object",
        """
        module.exports = {
          evaluate: (inputs, outputs, trace) => outputs === inputs.correct_answer ? 1 : 0,
        };
        """,
        contract="evaluate",
        language=JAVASCRIPT,
    ),
]
