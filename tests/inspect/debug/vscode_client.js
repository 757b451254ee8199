// Drives `softgen debug --dap` with VS Code's own test client, and prints where it stops as JSON.
"use strict";
const {spawn} = require("child_process");
const [folder, python, capture] = process.argv.slice(2);
const {DebugClient} = require(require.resolve("@vscode/debugadapter-testsupport", {paths: [folder]}));

(async () => {
  const client = new DebugClient("node", "", "softgen");  // it would start an adapter with Node.js; this one is a program
  const adapter = spawn(python, ["-m", "softgen", "debug", "--dap"], {stdio: ["pipe", "pipe", "inherit"]});
  client.connect(adapter.stdout, adapter.stdin);
  client.defaultTimeout = 100000;
  const texts = [];
  const stopped = async (request) => {
    const [event] = await Promise.all([client.waitForEvent("stopped", 100000), request]);
    texts.push(`${event.body.reason} ${event.body.text}`);
    return event.body;
  };
  const initialized = client.waitForEvent("initialized", 100000);
  await client.initializeRequest();
  await client.launchRequest({capture});
  await initialized;
  const {body: {breakpoints}} = await client.setFunctionBreakpointsRequest({breakpoints: [{name: "ps if pixel == (32, 20)"}]});
  await stopped(client.configurationDoneRequest());
  const registers = async () => {
    const {body: {stackFrames}} = await client.stackTraceRequest({threadId: 1});
    const {body: {scopes}} = await client.scopesRequest({frameId: stackFrames[0].id});
    const {body: {variables}} = await client.variablesRequest({variablesReference: scopes[0].variablesReference});
    return variables.map(({name, value}) => `${name} = ${value}`).join("\n");
  };
  const states = [await registers()];
  const steps = 3;
  for (let step = 0; step < steps; step++) {
    await stopped(client.nextRequest({threadId: 1, granularity: "instruction"}));
    states.push(await registers());
  }
  let equal = true;
  for (let step = steps - 1; step >= 0; step--) {
    await stopped(client.stepBackRequest({threadId: 1, granularity: "instruction"}));
    equal = equal && await registers() === states[step];
  }
  await client.disconnectRequest();
  console.log(JSON.stringify({verified: breakpoints[0].verified, texts, equal, different: new Set(states).size}));
  process.exit(0);
})().catch((error) => { console.error(error); process.exit(1); });
