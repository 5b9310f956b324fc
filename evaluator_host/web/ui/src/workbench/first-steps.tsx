import { SampleButton } from "../resources/sample-button";
import { Link } from "../router";

/** Where to go from an empty workbench: the way to one's own data, and data to try everything with. */
export function FirstSteps() {
  return (
    <>
      <p>
        New here? <Link to="/help/first-job">From your own file to a weekly job</Link> in ten minutes, or try jobs and comparisons with data that comes along:
      </p>
      <SampleButton />
    </>
  );
}
