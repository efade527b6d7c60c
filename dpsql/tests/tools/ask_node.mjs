// What tools of Node ask, through themselves: run by `make tools`.
// A line for each check: ok or failed, its name, what came.
import { drizzle } from "drizzle-orm/node-postgres";
import { avg, count, ilike, inArray, max } from "drizzle-orm";
import { integer, pgTable, text } from "drizzle-orm/pg-core";
import knexm from "knex";
import pg from "pg";
import postgres from "postgres";
import { DataTypes, Sequelize } from "sequelize";

const port = Number(process.argv[2]), password = process.argv[3], t = "person";
const at = { host: "127.0.0.1", port, user: "alice", password, database: "people" };
const check = async (name, ask) => {
  try {
    console.log(["ok", name, String(JSON.stringify(await ask())).slice(0, 60)].join("\t"));
  } catch (error) {
    console.log(["failed", name, `${error.code} ${error.message}`.replaceAll("\n", " ")].join("\t"));
  }
};
const s = postgres({ ...at, ssl: false, onnotice: () => {} });
await check("postgres.js count", () => s`select count(*) from ${s(t)}`);
await check("postgres.js any", () => s`select count(*) from ${s(t)} where age = any(${[1, 2, 3]})`);
await check("postgres.js in", () => s`select count(*) from ${s(t)} where age in ${s([1, 2, 3])}`);
await check("postgres.js ilike", () => s`select count(*) from ${s(t)} where city ilike ${"n%"}`);
await check("postgres.js preview", () => s`select * from ${s(t)} limit 5`);
await s.end();
const k = knexm({ client: "pg", connection: at });
await check("knex count", () => k(t).count());
await check("knex columnInfo", () => k(t).columnInfo());
await check("knex max", () => k(t).max("age"));
await check("knex whereILike", () => k(t).whereILike("city", "n%").count());
await check("knex group", () => k(t).select("city").count("* as n").groupBy("city").orderBy("n", "desc"));
await check("knex first", () => k(t).first());
await check("knex hasTable", () => k.schema.hasTable(t));
await k.destroy();
const q = new Sequelize("people", "alice", password, { host: at.host, port, dialect: "postgres", logging: false });
await check("sequelize authenticate", async () => { await q.authenticate(); return true; });
await check("sequelize describeTable", () => q.getQueryInterface().describeTable(t));
await check("sequelize showAllTables", () => q.getQueryInterface().showAllTables());
const M = q.define(
  "m",
  { id: { type: DataTypes.INTEGER, primaryKey: true }, age: DataTypes.INTEGER, city: DataTypes.TEXT },
  { tableName: t, timestamps: false },
);
await check("sequelize count", () => M.count());
await check("sequelize max", () => M.max("age"));
await check("sequelize findOne", () => M.findOne());
await check("sequelize group", () => M.findAll({ attributes: ["city", [q.fn("COUNT", q.col("*")), "n"]], group: ["city"], raw: true }));
await q.close();
const pool = new pg.Pool(at); const d = drizzle(pool);
const T = pgTable(t, { id: integer("id"), age: integer("age"), city: text("city") });
await check("drizzle count", () => d.select({ n: count() }).from(T));
await check("drizzle group", () => d.select({ city: T.city, a: avg(T.age) }).from(T).groupBy(T.city));
await check("drizzle ilike", () => d.select({ n: count() }).from(T).where(ilike(T.city, "n%")));
await check("drizzle inArray", () => d.select({ n: count() }).from(T).where(inArray(T.age, [1, 2])));
await check("drizzle max", () => d.select({ n: max(T.age) }).from(T));
await check("drizzle preview", () => d.select().from(T).limit(5));
await check("drizzle $count", () => d.$count(T));
await pool.end();
