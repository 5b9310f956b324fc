import { SampleButton } from "../resources/sample-button";
import { Link } from "../router";

/** The tour of an empty workbench: the steps of the work, a link to a tutorial, and sample data. */
export function FirstSteps() {
  return (
    <>
      <ol class="first-steps">
        <li>Write or paste a function, or open one of the examples.</li>
        <li>Run the function on the test row. One click adds a missing package.</li>
        <li>Save the evaluator, and run it on a data set to see which rows fail.</li>
      </ol>
      <p>
        <Link to="/help/first-job">From your own file to a weekly job</Link> takes ten minutes. Or see jobs and a comparison at once:
      </p>
      <SampleButton />
    </>
  );
}
