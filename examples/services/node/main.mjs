// A tiny service. Nothing in it knows of quotas.
import { createServer } from "node:http";

const server = createServer((request, response) => {
  response.setHeader("content-type", "text/plain");
  response.end("hello from Node\n");
});

process.on("SIGTERM", () => process.exit());
// On loopback: whoever wants in comes through Envoy, and so through the quota.
server.listen(Number(process.env.PORT), "127.0.0.1");
