import { render } from "preact";
import { App } from "./app";

const place = document.getElementById("app")!;
place.replaceChildren(); // the shell
render(<App />, place);
