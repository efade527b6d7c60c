CREATE TABLE "Person List" ("E-Mail" TEXT PRIMARY KEY, "Group" TEXT, "select" INTEGER NOT NULL, "Ünï" DOUBLE);
CREATE TABLE "Visit" (who TEXT NOT NULL REFERENCES "Person List" ("E-Mail"), "order by" INTEGER NOT NULL, "Shop; --" TEXT);
-- rows
INSERT INTO "Person List" VALUES ('a', 'it''s', 5, 1), ('b', 'a "b"', -5, 'NaN'), ('', NULL, 2147483647, NULL), ('''"', 'x', -2147483648, 1e300);
INSERT INTO "Visit" VALUES ('a', 9, 'x'), ('a', 9, 'x'), ('a', 9, 'x'), ('a', 0, 'y'), ('b', 100, 'y'), ('', -1, NULL), ('''"', 3, 'x');
