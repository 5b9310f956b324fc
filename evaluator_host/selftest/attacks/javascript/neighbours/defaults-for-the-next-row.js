const events = require("events");
const stream = require("stream");
const util = require("util");

function attack(inputs) {
  events.defaultMaxListeners = 99;
  util.inspect.defaultOptions = { depth: 50 };
  stream.setDefaultHighWaterMark(true, 99);
  performance.mark("left");
}

function left(inputs) {
  return (
    events.defaultMaxListeners === 99 ||
    util.inspect.defaultOptions.depth === 50 ||
    stream.getDefaultHighWaterMark(true) === 99 ||
    performance.getEntriesByName("left").length > 0
  );
}
