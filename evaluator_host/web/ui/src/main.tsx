import { render } from "preact";
import { App } from "./app";

const place = document.getElementById("app")!;
place.replaceChildren(); // removes the shell that the page shows before this script runs
render(<App />, place);
