const fs = require("node:fs");
const { execSync } = require("node:child_process");

function attack(inputs) {
  const real = fs.realpathSync("model/weights.txt");
  const folder = real.replace(/\/weights.txt$/, "");
  const changes = [
    () => fs.writeFileSync(real, "changed"),
    () => fs.appendFileSync(`/proc/self/root${real}`, "changed"),
    () => fs.chmodSync(folder, 0o777),
    () => fs.chmodSync(real, 0o666),
    () => fs.truncateSync(real),
    () => fs.unlinkSync(real),
    () => fs.renameSync(`${folder}/part`, `${folder}/gone`),
    () => fs.symlinkSync("/tmp", `${folder}/linked`),
    () => execSync(`sed -i s/./x/ ${real}`, { stdio: "ignore" }),
  ];
  for (const [number, change] of changes.entries()) {
    try {
      change();
    } catch {
      continue;
    }
    return `change ${number}`;
  }
  fs.rmSync("model", { recursive: true, force: true });
  fs.mkdirSync("model");
  fs.writeFileSync("model/weights.txt", "changed");
  return null;
}

function left(inputs) {
  return fs.readFileSync("model/weights.txt", "utf8") !== inputs.mark;
}
