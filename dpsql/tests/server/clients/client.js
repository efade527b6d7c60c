// What node's `pg` does, for test_node.py: one line of JSON for each check, [name, result or error].
const { Client, Pool } = require("pg");

const config = { host: "127.0.0.1", port: Number(process.argv[2]), user: "alice", password: process.argv[3], database: "people" };
const plain = async (result) => (await result).rows;

async function check(name, body) {
  let found;
  try {
    found = await body();
  } catch (error) {
    found = {
      code: error.code, rule: error.constraint, position: error.position, hint: Boolean(error.hint)
    };
  }
  console.log(JSON.stringify([name, found]));
}

async function main() {
  const client = new Client(config);
  const notices = [];
  client.on("notice", (notice) => notices.push(notice.message.split(";")[0]));
  await client.connect();
  const values = { small: 1, whole: 2, big: "9007199254740993", money: "12.50", single: 1.5, double: 0.1, flag: true,
    name: "ä 'quoted'", day: "2020-02-29", moment: "2020-02-29 12:30:00.000001" };
  for (const [name, value] of Object.entries(values)) {
    const sql = `SELECT id FROM thing WHERE ${name} = $1`;
    await check("parameter " + name, () => plain(client.query({ text: sql, values: [value], rowMode: "array" })));
    await check("null " + name, () => plain(client.query(sql, [null])));
  }
  await check("date", () => plain(client.query({ text: "SELECT id FROM thing WHERE day = $1", values: [new Date(2020, 1, 29)], rowMode: "array" })));
  await check("date before", () => plain(client.query({ text: "SELECT id FROM thing WHERE moment > $1", values: [new Date(0)], rowMode: "array" })));
  await check("row", () => plain(client.query({ text: "SELECT * FROM thing WHERE id = 1", rowMode: "array" })));
  await check("untyped", () => plain(client.query("SELECT $1 AS a, $2 AS b, $3 + 1 AS c", [1, "x", 2])));
  await check("limit", () => plain(client.query({ text: "SELECT i FROM number ORDER BY i LIMIT $1 OFFSET $2", values: [2, 3], rowMode: "array" })));
  await check("several", async () => (await client.query("SELECT 1 AS a; SELECT 2 AS b")).map((result) => result.rows));
  const named = (age) => ({ name: "n", text: "SELECT COUNT(*) FROM person WHERE age > $1 AND born < $2", values: [age, new Date(2000, 1, 1)] });
  await check("named", async () => {
    const counts = [await plain(client.query(named(30))), await plain(client.query(named(30)))];
    return counts[0][0].count === counts[1][0].count;
  });
  await check("notices", async () => notices);
  await check("error", () => client.query("SELECT age FROM person WHERE id = $1", [1]));
  await check("block", async () => {
    await client.query("BEGIN");
    await client.query("SAVEPOINT a");
    await client.query("SELECT nosuch").catch(() => null);
    await client.query("ROLLBACK TO SAVEPOINT a");
    return (await client.query("COMMIT")).command;
  });
  await check("many", async () => (await client.query("SELECT i FROM number")).rowCount);
  await client.end();
  await check("timeout", async () => {
    const slow = new Client({ ...config, statement_timeout: 300 });
    await slow.connect();
    await slow.query(process.argv[4]).finally(() => slow.end());
  });
  await check("pool", async () => {
    const pool = new Pool({ ...config, max: 3, application_name: "x", options: "-c statement_timeout=60000" });
    const found = await Promise.all(Array.from({ length: 10 }, () => pool.query("SELECT COUNT(*) FROM person WHERE age > 31")));
    await pool.end();
    return new Set(found.map((result) => result.rows[0].count)).size;
  });
  if (process.argv[5]) {
    await check("tls", async () => {
      const encrypted = new Client({ ...config, ssl: { rejectUnauthorized: false } });
      await encrypted.connect();
      const found = await plain(encrypted.query("SELECT 1 AS a"));
      await encrypted.end();
      return found;
    });
  }
}

main();
