// What further tools of Node ask, through themselves: run by `make tools`.
// A line for each check: ok or failed, its name, what came.
import "reflect-metadata";
import { CompiledQuery, Kysely, PostgresDialect, sql } from "kysely";
import pg from "pg";
import Cursor from "pg-cursor";
import pgPromise from "pg-promise";
import QueryStream from "pg-query-stream";
import { Between, DataSource, EntitySchema, ILike, In, MoreThan } from "typeorm";

const port = Number(process.argv[2]), password = process.argv[3];
const at = { host: "127.0.0.1", port, user: "alice", password, database: "people" };
const check = async (name, ask) => {
  try {
    console.log(["ok", name, String(JSON.stringify(await ask())).slice(0, 60)].join("\t"));
  } catch (error) {
    console.log(["failed", name, `${error.code} ${error.message} ${error.query ?? ""}`.replaceAll("\n", " ")].join("\t"));
  }
};
const many = (rows, least) => {
  if (rows.length < least) throw new Error(`${rows.length} rows`);
  return rows.length;
};

const client = new pg.Client(at);
await client.connect();
const born = new Date(Date.UTC(1980, 0, 1));
await check("pg date", () => client.query("SELECT count(*) FROM person WHERE born >= $1", [born]).then((r) => r.rows));
await check("pg moment", () => client.query("SELECT count(*) FROM loan WHERE taken >= $1", [born]).then((r) => r.rows));
await check("pg array", () => client.query("SELECT count(*) FROM person WHERE age = ANY($1)", [[1, 2]]).then((r) => r.rows));
await check("pg named", () => client.query({ name: "a", text: "SELECT count(*) FROM person WHERE age > $1", values: [3] }).then((r) => r.rows));
await check("pg rowMode", () => client.query({ text: "SELECT city, count(*) FROM person GROUP BY 1", rowMode: "array" }).then((r) => many(r.rows, 2)));
await check("pg several", () => client.query("SELECT 1; SELECT 2").then((r) => many(r, 2)));
await check("pg-cursor", async () => {
  const cursor = client.query(new Cursor("SELECT i FROM number WHERE i >= $1", [0]));
  const found = [await cursor.read(100), await cursor.read(50)].map((rows) => rows.length);
  await cursor.close();
  return found;
});
await check("pg-query-stream", async () => {
  let count = 0;
  for await (const row of client.query(new QueryStream("SELECT i FROM number", [], { batchSize: 1000 }))) count += row.i !== undefined;
  return many({ length: count }, 20000);
});
await client.end();

const pgp = pgPromise();
const db = pgp({ ...at, max: 3 });
await check("pg-promise one", () => db.one("SELECT count(*) FROM person WHERE age > $1 AND city = $2", [30, "north"]));
await check("pg-promise named", () => db.one("SELECT count(*) FROM person WHERE born >= ${born} AND city IN (${cities:csv})", { born, cities: ["north", "south"] }));
await check("pg-promise names", () => db.any("SELECT ${city:name}, count(*) FROM ${t:name} GROUP BY 1", { city: "city", t: "person" }));
await check("pg-promise prepared", () => db.any(new pgp.PreparedStatement({ name: "p", text: "SELECT avg(age) FROM person WHERE city = $1", values: ["north"] })));
await check("pg-promise task", () => db.task((t) => t.batch([t.one("SELECT count(*) FROM person"), t.any("SELECT * FROM thing")])));
await check("pg-promise tx", () => db.tx({ mode: new pgp.txMode.TransactionMode({ tiLevel: pgp.txMode.isolationLevel.serializable, readOnly: true }) }, (t) => t.one("SELECT count(*) FROM person")));
await check("pg-promise multi", () => db.multi("SELECT count(*) FROM person; SELECT id FROM thing").then((r) => many(r, 2)));
await check("pg-promise none", () => db.any("SELECT * FROM person LIMIT 3"));
pgp.end();

const k = new Kysely({ dialect: new PostgresDialect({ pool: new pg.Pool(at), cursor: Cursor }) });
await check("kysely tables", () => k.introspection.getTables().then((r) => many(r, 4)));
await check("kysely group", () => k.selectFrom("person").select(["city", (e) => e.fn.countAll().as("n"), (e) => e.fn.avg("age").as("a")]).groupBy("city").orderBy("n", "desc").execute().then((r) => many(r, 2)));
await check("kysely where", () => k.selectFrom("person").select((e) => e.fn.countAll().as("n")).where("city", "ilike", "n%").where("age", "in", [1, 2]).where("born", ">", born).execute());
await check("kysely join", () => k.selectFrom("loan").innerJoin("person", "person.id", "loan.person_id").select(["city", (e) => e.fn.sum("amount").as("s")]).groupBy("city").execute().then((r) => many(r, 2)));
await check("kysely month", () => k.selectFrom("loan").select([sql`date_trunc('month', taken)`.as("m"), (e) => e.fn.countAll().as("n")]).groupBy("m").execute().then((r) => many(r, 6)));
await check("kysely case", () => k.selectFrom("person").select((e) => [e.case().when("age", ">", 40).then("old").else("young").end().as("k"), e.fn.countAll().as("n")]).groupBy("k").execute().then((r) => many(r, 2)));
await check("kysely with", () => k.with("t", (d) => d.selectFrom("person").select(["city", (e) => e.fn.countAll().as("n")]).groupBy("city")).selectFrom("t").selectAll().where("n", ">", 10).execute());
await check("kysely transaction", () => k.transaction().execute((t) => t.executeQuery(CompiledQuery.raw("SELECT count(*) FROM person"))));
await check("kysely stream", async () => {
  let count = 0;
  for await (const row of k.selectFrom("thing").selectAll().stream()) count += row.id > 0;
  return count;
});
await k.destroy();

const person = new EntitySchema({ name: "person", columns: { id: { type: Number, primary: true }, age: { type: Number }, city: { type: String }, born: { type: "date" } } });
const loan = new EntitySchema({
  name: "loan", columns: { loan_id: { type: Number, primary: true }, amount: { type: Number }, taken: { type: "timestamp" } },
  relations: { person: { target: "person", type: "many-to-one", joinColumn: { name: "person_id" } } },
});
const o = new DataSource({ type: "postgres", ...at, username: at.user, entities: [person, loan] });
await check("typeorm initialize", () => o.initialize().then(() => true));
const people = o.getRepository("person"), loans = o.getRepository("loan");
await check("typeorm count", () => people.count());
await check("typeorm countBy", () => people.countBy({ city: ILike("n%"), age: Between(10, 40) }));
await check("typeorm in", () => people.countBy({ city: In(["north"]), born: MoreThan("1980-01-01") }));
await check("typeorm average", () => people.average("age"));
await check("typeorm sum", () => people.sum("age", { city: "north" }));
await check("typeorm maximum", () => people.maximum("age"));
await check("typeorm exists", () => people.exists());
await check("typeorm find", () => people.find({ take: 5 }));
await check("typeorm group", () => people.createQueryBuilder("p").select("p.city", "city").addSelect("COUNT(*)", "n").groupBy("p.city").orderBy("n", "DESC").getRawMany().then((r) => many(r, 2)));
await check("typeorm join", () => loans.createQueryBuilder("l").innerJoin("l.person", "p").select("p.city", "city").addSelect("SUM(l.amount)", "s").where("l.taken >= :since", { since: new Date(Date.UTC(2024, 1, 1)) }).groupBy("p.city").getRawMany().then((r) => many(r, 2)));
await check("typeorm schema", async () => {
  const runner = o.createQueryRunner(), table = await runner.getTable("person");
  await runner.release();
  return many(table.columns, 7);
});
await o.destroy();
