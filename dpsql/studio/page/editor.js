// The editor: SQL with completion, and the place of a refusal underlined.

import {
  acceptCompletion, autocompletion, bracketMatching, closeBrackets, closeBracketsKeymap, completionKeymap,
  completionStatus, defaultKeymap, drawSelection, EditorState, EditorView, highlightSpecialChars, HighlightStyle,
  history, historyKeymap, indentOnInput, keymap, placeholder, PostgreSQL, Prec, setDiagnostics, sql,
  syntaxHighlighting, tags,
} from "/page/vendor/vendor.js";
import { charactersOf, unitsOf } from "/page/dom.js";

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--code-word)", fontWeight: "600" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-text)" },
  { tag: [tags.number, tags.bool, tags.null], color: "var(--code-number)" },
  { tag: tags.comment, color: "var(--quiet)", fontStyle: "italic" },
  { tag: [tags.typeName, tags.standard(tags.name)], color: "var(--code-name)" },
]);

const LOOK = EditorView.theme({
  "&": { backgroundColor: "transparent", color: "var(--ink)", fontSize: "15px" },
  "&.cm-focused": { outline: "none" },
  ".cm-content": { fontFamily: "var(--mono)", caretColor: "var(--accent)", padding: "14px 0", minHeight: "112px" },
  ".cm-line": { padding: "0 16px", lineHeight: "1.6" },
  ".cm-scroller": { lineHeight: "1.6", overflow: "auto", maxHeight: "46vh" },
  ".cm-cursor": { borderLeftColor: "var(--accent)", borderLeftWidth: "2px" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": {
    backgroundColor: "var(--chosen)",
  },
  ".cm-placeholder": { color: "var(--quiet)" },
  ".cm-matchingBracket, &.cm-focused .cm-matchingBracket": { backgroundColor: "var(--chosen)", outline: "none" },
  ".cm-lintRange-error": {
    backgroundImage: "none", textDecoration: "underline wavy var(--bad) 1.5px", textUnderlineOffset: "4px",
    textDecorationSkipInk: "none",
  },
  ".cm-tooltip": {
    backgroundColor: "var(--panel)", color: "var(--ink)", border: "1px solid var(--line)", borderRadius: "8px",
    boxShadow: "var(--shadow)", overflow: "hidden",
  },
  ".cm-tooltip.cm-tooltip-autocomplete > ul": { fontFamily: "var(--mono)", fontSize: "13.5px", maxHeight: "15em" },
  ".cm-tooltip.cm-tooltip-autocomplete > ul > li": { padding: "4px 10px" },
  ".cm-tooltip-autocomplete ul li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionDetail": { fontStyle: "normal", opacity: "0.75", marginLeft: "1em" },
  ".cm-completionInfo": { padding: "8px 12px", maxWidth: "320px", fontSize: "13.5px", lineHeight: "1.45" },
  ".cm-diagnostic": { padding: "8px 12px", borderLeft: "3px solid var(--bad)", maxWidth: "460px" },
});

/**
 * Make an editor in `place`. `onChange(text, cursor)`: both as the server counts, in characters; `onRun`, `onEscape`;
 * `complete(context)` offers names. Returns what the view does with it.
 */
export const makeEditor = (place, { text, onChange, onRun, onEscape, complete }) => {
  const report = (state) => onChange(state.doc.toString(), charactersOf(state.doc.toString(), state.selection.main.head));
  const view = new EditorView({
    parent: place,
    state: EditorState.create({
      doc: text,
      selection: { anchor: text.length },
      extensions: [
        EditorView.cspNonce.of(document.body.dataset.nonce),
        Prec.highest(keymap.of([
          { key: "Mod-Enter", run: () => { onRun(); return true; } },
          { key: "Tab", run: (one) => completionStatus(one.state) === "active" && acceptCompletion(one) },
        ])),
        keymap.of([
          ...closeBracketsKeymap, ...completionKeymap, ...historyKeymap,
          { key: "Escape", run: () => { onEscape(); return true; } },
          ...defaultKeymap,
        ]),
        history(), drawSelection(), highlightSpecialChars(), bracketMatching(), closeBrackets(), indentOnInput(),
        sql({ dialect: PostgreSQL }), syntaxHighlighting(COLOURS), LOOK, EditorView.lineWrapping,
        autocompletion({ override: [complete], icons: false, maxRenderedOptions: 60 }),
        placeholder("SELECT … FROM …"),
        EditorView.contentAttributes.of({ "aria-label": "Statement, in SQL", "aria-describedby": "price" }),
        EditorView.updateListener.of((update) => {
          if (update.docChanged || update.selectionSet) report(update.state);
        }),
      ],
    }),
  });
  return {
    get text() { return view.state.doc.toString(); },
    get cursor() { return charactersOf(this.text, view.state.selection.main.head); },
    focus() { view.focus(); },
    /** Replace what is between two places, in characters; without them all of it. */
    replace(written, start = 0, end = undefined) {
      const from = unitsOf(this.text, start);
      const to = end === undefined ? view.state.doc.length : unitsOf(this.text, end);
      view.dispatch({ changes: { from, to, insert: written }, selection: { anchor: from + written.length } });
      view.focus();
    },
    /** Put a name at the cursor. */
    insert(written) {
      view.dispatch(view.state.replaceSelection(written));
      view.focus();
    },
    /** Underline the word at a place, in characters; none where there is nothing to mark. */
    mark(offset, message) {
      const text = this.text, found = [];
      if (offset !== null && offset !== undefined) {
        const from = Math.min(unitsOf(text, offset), text.length);
        const word = /^(?:"(?:[^"]|"")*"|'(?:[^']|'')*'|[\p{L}\p{N}_$]+|\S)/u.exec(text.slice(from));
        const begin = word ? from : Math.max(0, from - 1);
        const to = word ? from + word[0].length : Math.max(from, begin + 1);
        if (begin < text.length) found.push({ from: begin, to: Math.min(to, text.length), severity: "error", message });
      }
      view.dispatch(setDiagnostics(view.state, found));
    },
  };
};
