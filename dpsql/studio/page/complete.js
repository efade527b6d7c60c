// What the editor offers: tables after FROM, columns of the tables that the statement names, declared values where a
// column is compared, settings after SET, and functions and words.

const AFTER_TABLE_WORD = /\b(?:from|join)\s+(?:[\w".]+(?:\s+(?:as\s+)?\w+)?\s*,\s*)*[\w".]*$/i;
const AFTER_SETTING_WORD = /^\s*(?:set|show|reset)\s+(?:local\s+)?[\w.]*$/i;
const COMPARED = /([\p{L}_][\p{L}\p{N}_]*|"(?:[^"]|"")+")\s*(?:=|<>|!=|\bin\s*\((?:[^()]*,)?)\s*('[^']*)?$/iu;
const WORD = /[\p{L}\p{N}_.]*$/u;

const quoted = (name) => (/^[a-z_][a-z0-9_]*$/.test(name) ? name : `"${name.replaceAll('"', '""')}"`);
const literal = (value) => `'${value.replaceAll("'", "''")}'`;

/** Return a source of completions; `names`: a promise of what the server offers. */
export const completer = (names) => {
  let known = null;
  names.then((found) => { known = found; }, () => {});
  return (context) => {
    if (!known) return null;
    const before = context.state.doc.sliceString(Math.max(0, context.pos - 2000), context.pos);
    const statement = before.slice(before.lastIndexOf(";") + 1);
    const whole = context.state.doc.toString().toLowerCase();
    const mentioned = known.tables.filter((table) =>
      new RegExp(`(^|[^\\p{L}\\p{N}_])${table.name.split(".").pop().toLowerCase().replace(/[^\p{L}\p{N}_ ]/gu, ".")}($|[^\\p{L}\\p{N}_])`, "u").test(whole));
    const tables = mentioned.length ? mentioned : known.tables;

    const compared = COMPARED.exec(statement);
    if (compared) {
      const name = compared[1].replace(/^"|"$/g, "").replaceAll('""', '"');
      const column = tables.flatMap((table) => table.columns).find((one) => one.name.toLowerCase() === name.toLowerCase());
      if (column?.values.length) {
        return {
          from: context.pos - (compared[2] ?? "").length,
          options: column.values.map((value) => ({ label: literal(value), type: "constant", detail: "declared" })),
          validFor: /^'[^']*$/,
        };
      }
    }
    const typed = WORD.exec(statement)[0];
    if (!typed && !context.explicit) return null;
    const from = context.pos - typed.length;
    if (AFTER_SETTING_WORD.test(statement)) {
      return { from, options: Object.entries(known.settings).map(([label, info]) => ({ label, info })), validFor: /^[\w.]*$/ };
    }
    const asTable = (table) => ({ label: quoted(table.name), detail: "table", info: table.said });
    if (AFTER_TABLE_WORD.test(statement)) return { from, options: known.tables.map(asTable), validFor: /^[\w.]*$/ };
    const asColumn = (column, prefix = "") => ({
      label: prefix + quoted(column.name), detail: column.type, info: column.said, boost: 3,
    });
    const point = typed.lastIndexOf(".");
    if (point > 0) {
      const prefix = typed.slice(0, point);
      const alias = new RegExp(`([\\w".]+)\\s+(?:as\\s+)?${prefix.replace(/[^\w]/g, "")}\\b`, "i").exec(whole)?.[1];
      const table = known.tables.find((one) => one.name === prefix || one.name === alias);
      return table ? { from: from + point + 1, options: table.columns.map((one) => asColumn(one)), validFor: /^\w*$/ } : null;
    }
    const isUpper = typed && typed === typed.toUpperCase();
    const cased = (word) => (isUpper ? word : word.toLowerCase());
    const seen = new Set();
    const options = [
      ...tables.flatMap((table) => table.columns.map((one) => asColumn(one))),
      ...Object.entries(known.aggregates).map(([name, info]) => ({
        label: cased(name.includes("(") ? name.trim() : name), apply: cased(name.includes("(") ? name : `${name}(`), detail: "aggregate", info, boost: 2,
      })),
      ...Object.entries(known.functions).map(([name, info]) => ({ label: cased(name), apply: cased(`${name}(`), detail: "function", info })),
      ...known.words.map((word) => ({ label: cased(word), boost: 1 })),
      ...known.tables.map(asTable),
    ].filter((one) => !seen.has(one.label) && seen.add(one.label));
    return { from, options, validFor: /^[\p{L}\p{N}_]*$/u };
  };
};
