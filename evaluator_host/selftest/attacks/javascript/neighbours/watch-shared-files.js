const fs = require("fs");

function attack(inputs) {
  try {
    fs.watch("/usr", () => {}).close();
  } catch (error) {
    return error.code === "ENOSYS" ? null : error.code;
  }
  return "a watch on files of all sandboxes";
}
