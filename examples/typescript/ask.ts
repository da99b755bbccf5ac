// Asks a service at a URL, inside the limit "demo" of the nodes at NODES, again as it is told.
//
//   npm install ./clients/typescript && npx tsc examples/typescript/ask.ts …
//   node ask.js http://127.0.0.1:8080/
import { Client, Denied, retry } from "quorlease";

const nodes = process.env["NODES"] ?? "http://127.0.0.1:7301,http://127.0.0.1:7302,http://127.0.0.1:7303";
const client = new Client({ endpoints: nodes.split(","), client: "notes" });

try {
  const answer = await retry(({ headers }) => client.limit(
    { limit: "demo", dimension: "requests" },
    () => fetch(process.argv[2] ?? "", { headers }),
    { maxWaitMs: 5000 },
  ));
  if (!answer.ok) throw new Error(`${answer.status}`);
  console.log(await answer.text());
} catch (err) {
  if (!(err instanceof Denied)) throw err;
  console.error(err.message);
  process.exitCode = 1;
} finally {
  await client.close();
}
