// Sends the statements of a file through a driver of Node, and prints a line for each: ok, or failed and why.
import { readFileSync } from "node:fs";

const [driver, port, password, file] = process.argv.slice(2);
const at = { host: "127.0.0.1", port: Number(port), user: "alice", password, database: "people" };
const read = { i: Number, n: (text) => text, s: (text) => text, d: (text) => text };
const asked = readFileSync(file, "utf8").trimEnd().split("\n").map((line) => {
  const [sql, ...values] = line.split("\t");
  return [Buffer.from(sql, "base64").toString(), values.map((value) => read[value[0]](value.slice(2)))];
});

async function opened() {
  if (driver === "postgres.js") {
    const sql = (await import("postgres")).default({ ...at, max: 1, onnotice: () => {} });
    return [(text, values) => sql.unsafe(text, values, { prepare: true }), () => sql.end()];
  }
  const pg = (await import("pg")).default;
  if (driver === "knex") {
    const knex = (await import("knex")).default({ client: "pg", connection: at, pool: { min: 1, max: 1 } });
    return [(text, values) => knex.raw(values.length ? text.replace(/\$\d+/g, "?") : text.replace(/\?/g, "\\?"), values), () => knex.destroy()];
  }
  const pool = new pg.Pool({ ...at, max: 1 });
  if (driver === "kysely") {
    const { CompiledQuery, Kysely, PostgresDialect } = await import("kysely");
    const db = new Kysely({ dialect: new PostgresDialect({ pool }) });
    return [(text, values) => db.executeQuery(CompiledQuery.raw(text, values)), () => db.destroy()];
  }
  if (driver === "drizzle") {
    const [{ drizzle }, { sql }] = [await import("drizzle-orm/node-postgres"), await import("drizzle-orm")];
    const db = drizzle(pool);
    const query = (text, values) => {
      const parts = values.length ? text.split(/\$\d+/) : [text];
      return sql.join(parts.flatMap((part, i) => (i < values.length ? [sql.raw(part), sql`${values[i]}`] : [sql.raw(part)])));
    };
    return [(text, values) => db.execute(query(text, values)), () => pool.end()];
  }
  return [(text, values) => pool.query(text, values), () => pool.end()];
}

const [ask, close] = await opened();
for (const [text, values] of asked) {
  try {
    await ask(text, values);
    console.log("ok\t");
  } catch (error) {
    console.log(`failed\t${String(error.message).replace(/\s+/g, " ").slice(0, 200)}`);
  }
}
await close();
